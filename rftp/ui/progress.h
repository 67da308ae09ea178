/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/progress: how far it is, for people: one line on a terminal that is drawn over and over
 * and erased at the end; where stderr is none, as in a log file, a line of its own now and then.
 */
#ifndef RFTP_PROGRESS_H
#define RFTP_PROGRESS_H

#include "proto/message.h"
#include "rftp/ui/text.h"

#include <stdint.h>

#define PROGRESS_LOG_NS UINT64_C(10000000000) /* between two lines of a log */

/* How fast it goes. */
struct progress_rate {
	double now;            /* bytes a second, of the last seconds */
	double steady;         /* of a longer while: for the time that is left */
	double age_s;          /* of the steady one: since it began to move */
	double elapsed_s;      /* since it was started */
	uint64_t bytes, at_ns; /* when it was last looked at */
};

struct progress {
	bool on;      /* stderr is a terminal, and nobody asked for quiet */
	bool logs;    /* it is none, or a dumb one */
	bool visible; /* a line stands there */
	uint64_t started_ns, drawn_ns;
	struct progress_rate rate;
};

struct progress_state {
	uint64_t bytes, total_bytes; /* that are verified; total: MESSAGE_UNKNOWN if not known */
	uint64_t had_bytes;          /* of these: from a transfer before, which took no time now */
	uint64_t files, total_files, errors;
	const char *name; /* of the file that is under way; NULL or "": not known */
};

void progress_start(struct progress *, bool on);
/* Draws, at most ten times a second; or writes a line, every PROGRESS_LOG_NS. */
void progress_draw(struct progress *, const struct progress_state *);
/* The same of names that are being looked at, before anything moves: how many files so far, and how
 * much is in them (MESSAGE_UNKNOWN: nobody counts that). */
void progress_scan(struct progress *, uint64_t files, uint64_t bytes);
/* The line on a terminal, of a transfer that waits in line at the server: "waiting: " and its
 * place; or of something else that takes its time. */
void progress_wait(struct progress *, const char *place);
void progress_say(struct progress *, const char *what);
/* Takes the line away, before other output and at the end. */
void progress_erase(struct progress *);

/* "3rd in bulk, about 4 s"; "3rd in line". */
void progress_place(struct text *out, const struct message_queued *);
/* "1st", "2nd", "11th". */
void progress_ordinal(struct text *out, unsigned number);

/* `moved` bytes have moved by then, in all. */
void progress_rate_start(struct progress_rate *, uint64_t now_ns);
void progress_rate_add(struct progress_rate *, uint64_t moved, uint64_t now_ns);
/* The line as text of at most `columns` columns. */
void progress_format(struct text *out, const struct progress_state *, const struct progress_rate *,
	unsigned columns);

#endif
