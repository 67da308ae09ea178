/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/log: one line a message to stderr, with level and program name.
 *
 * Thread-safe: a message is one write(2) of at most 1,024 bytes; control characters in it are
 * shown escaped, so that a peer's name cannot forge a line.  Log an error once, where it is
 * detected, with the numbers.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level {
	LOG_LEVEL_ERROR,   /* something was lost or refused */
	LOG_LEVEL_WARNING, /* works, but not as asked */
	LOG_LEVEL_INFO,    /* sessions, transfers: what an operator follows (client: -v) */
	LOG_LEVEL_DEBUG,   /* what a developer follows (client: -vv) */
};

/* Messages above `level` are dropped.  `program` must outlive all calls; shown before each line. */
void log_setup(const char *program, enum log_level level);
enum log_level log_level_get(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
