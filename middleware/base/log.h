/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/log: one line a message to stderr, a file or the journal, with level and program name.
 *
 * Thread-safe: a message is one write(2) of at most 1,024 bytes; control characters in it are
 * shown escaped, so that a peer's name cannot forge a line.  Log an error once, where it is
 * detected, with the numbers.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>

enum log_level {
	LOG_LEVEL_ERROR,   /* something was lost or refused */
	LOG_LEVEL_WARNING, /* works, but not as asked */
	LOG_LEVEL_INFO,    /* sessions, transfers: what an operator follows (client: -v) */
	LOG_LEVEL_DEBUG,   /* what a developer follows (client: -vv) */
};

/* Messages above `level` are dropped.  `program` must outlive all calls; shown before each line. */
void log_setup(const char *program, enum log_level level);
enum log_level log_level_get(void);

/* Whether each line begins with the time, as in 2026-11-24T03:18:00.123Z; off at first. */
void log_stamp(bool on);
/* A file that lines are added to, made if there is none.  Nobody waits for who reads a FIFO: what
 * it does not take is lost.  A descriptor or -errno. */
int log_open(const char *path);
/*
 * To the end of a file instead of stderr; NULL: to stderr again.  Called again with the same name
 * it opens the file anew, as after somebody has renamed it.  0, or -errno, and all is as it was.
 * One thread calls this; others may write meanwhile.
 */
int log_to_file(const char *path);
/*
 * To systemd's journal, if stderr leads there anyway: each message with its level as a field, and
 * without the time, which the journal has.  `socket` is where it listens; NULL: where it usually
 * does.  0, or -errno: stderr does not lead there (-ENOTCONN), or it does not listen.  Before other
 * threads begin.
 */
int log_to_journal(const char *socket);

/* Somebody has drawn a line on the terminal that is not ended: each message first takes it away. */
void log_line_drawn(bool drawn);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same; in the journal `fields` stand beside the message: lines such as "RFTP_SESSION=3\n". */
void log_write_about(enum log_level level, const char *fields, const char *format, va_list ap)
	__attribute__((format(printf, 3, 0)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
