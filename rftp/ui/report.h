/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/report: everything that the program says, for people or as JSON lines; and what the
 * errors so far mean for the exit code.
 *
 * An error is reported once, by whoever finds it, naming the thing; callers above pass the -errno
 * on.
 */
#ifndef RFTP_REPORT_H
#define RFTP_REPORT_H

#include "rftp/exit_code.h"
#include "rftp/ui/progress.h"
#include "rftp/settings.h"
#include "session/pipe_ring.h"
#include "transfer/transfer.h"

#include <stdio.h>

#define REPORT_JSON_VERSION 1u /* of the events, as rftp(1) describes them */

struct report {
	const struct settings *settings; /* json, verbosity */
	FILE *out; /* results: stdout, or stderr while stdout carries a file */
	struct progress progress;
	enum exit_code code; /* of the errors since report_forget */
	uint64_t errors;
	uint64_t progress_ns; /* when the next progress or scan event is due */
	unsigned job;         /* of the shell's, that it is about: in each event; 0: none */
};

struct report_done {
	uint64_t bytes;   /* of the files that arrived */
	uint64_t sent;    /* that crossed, of those that failed, too; not what was there already */
	uint64_t crossed; /* `sent` as it crossed: less where it was compressed */
	uint64_t holes;   /* that did not have to cross, likewise */
	uint64_t files, directories, skipped, errors;
	uint64_t removed;                      /* names at the destination; of a plan: to be */
	uint64_t special;                      /* devices, FIFOs and sockets that were left out */
	double seconds, waited_seconds;        /* waited: in line at the server */
	int deadline_met;                      /* -1: there was none */
	const char *fabric, *engine, *protect; /* NULL: no transfer began */
	uint32_t channels, block;
	bool direct;
	uint64_t early_bytes;  /* of `sent`: before the server was ready for them */
	const char *early_why; /* what decided that for the last transfer; NULL: nothing did */
	struct transfer_requests requests; /* of this side, on data channels */
	bool replies_are_read;             /* and not sent: */
	struct pipe_ring_counts replies;   /* of the session so far */
};

void report_init(struct report *, const struct settings *);
void report_forget(struct report *);
/* The errors of another report are this one's, too. */
void report_join(struct report *, const struct report *other);

/* "rftp: OBJECT: TEXT".  `object` may be NULL.  `text` NULL or "": that of the status.  `code` 0:
 * that of the status. */
void report_error(struct report *, enum exit_code code, uint16_t status, const char *object,
	const char *text);
/* The same with a text made here, and a status from an errno. */
void report_errorf(struct report *, int error, const char *object, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Wrong use: exit code 2. */
void report_usage(struct report *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a status and a text, which may be NULL or say the same, are together. */
void report_reason(struct text *out, uint16_t status, const char *text);
/* What became of one file or directory of a transfer. */
struct report_file {
	const char *path;   /* here; "-": standard input or output; NULL: memory */
	const char *remote; /* at the server; NULL likewise */
	const char *shown;  /* what people are told */
	bool directory;
	bool attributes; /* of a file that is there, and stays */
	uint64_t bytes;
	uint16_t status;
	const char *text; /* of status 0: a note of what could not be kept.  May be NULL */
	bool error;       /* a failure is to be reported as one, too */
};
void report_file(struct report *, const struct report_file *);
/* A command that moves data begins: which ("get"), and with which server; `destination`: and to
 * which other one, or NULL. */
void report_start(
	struct report *, const char *command, const char *server, const char *destination);
/* How far it is; the event at most once a second. */
void report_progress(struct report *, const struct progress_state *);
/* Names are looked at, before anything moves: so many files so far, with so many bytes
 * (MESSAGE_UNKNOWN: nobody counts them); the event at most once a second. */
void report_scan(struct report *, uint64_t files, uint64_t bytes);
/* A transfer waits in line at the server; or it has waited, and goes on. */
void report_queued(struct report *, const struct message_queued *);
void report_admitted(struct report *, const struct message_queued *, uint64_t waited_ns);
/* The end of a transfer.  `summary`: people get a line too (on stderr). */
void report_done(struct report *, const struct report_done *, bool summary);

/* For people who asked with -v, on stderr. */
void report_verbose(struct report *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For people, on stderr, unless quiet. */
void report_note(struct report *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Results of commands: text for people as it is; or JSON: begin, fields, end.  report_json says
 * which.  A result that cannot be written is an error (report_flush finds it): -errno, reported
 * once.
 */
bool report_json(const struct report *);
void report_json_begin(struct text *, const char *event);
void report_json_string(struct text *, const char *name, const char *value); /* NULL: null */
void report_json_bytes(struct text *, const char *name, const void *value, size_t len);
void report_json_number(struct text *, const char *name, uint64_t value);
void report_json_bool(struct text *, const char *name, bool value);
void report_json_end(struct report *, struct text *); /* writes the line and frees */
void report_write(struct report *, const char *, size_t);
int report_flush(struct report *);

#endif
