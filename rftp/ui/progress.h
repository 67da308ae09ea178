/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/progress: one line on stderr that is drawn over and over, and erased at the end.
 */
#ifndef RFTP_PROGRESS_H
#define RFTP_PROGRESS_H

#include "proto/message.h"
#include "rftp/ui/text.h"

#include <stdint.h>

struct progress {
	bool on;      /* stderr is a terminal, and nobody asked for quiet */
	bool visible; /* a line stands there */
	uint64_t started_ns, drawn_ns;
	double rate; /* smoothed, bytes a second */
	uint64_t last_bytes;
};

struct progress_state {
	uint64_t bytes, total_bytes; /* total: MESSAGE_UNKNOWN if not known */
	uint64_t files, total_files, errors;
};

void progress_start(struct progress *, bool on);
/* Draws, at most ten times a second. */
void progress_draw(struct progress *, const struct progress_state *);
/* The same line, of a transfer that waits in line at the server: "waiting: " and its place. */
void progress_wait(struct progress *, const char *place);
/* Takes the line away, before other output and at the end. */
void progress_erase(struct progress *);

/* "3rd in bulk, about 4 s"; "3rd in line". */
void progress_place(struct text *out, const struct message_queued *);
/* "1st", "2nd", "11th". */
void progress_ordinal(struct text *out, unsigned number);
/* The line as text of at most `columns` columns.  `elapsed_s` and `rate` as measured. */
void progress_format(struct text *out, const struct progress_state *, double elapsed_s, double rate,
	unsigned columns);

#endif
