/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/secret: reading a password without leaving copies of it behind.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stddef.h>

/*
 * A line without its end, into the caller's buffer and nowhere else.  `cancel_fd` (-1: none) ends
 * it. 0; -ENODATA: it is empty, or there is none; -E2BIG; -EINVAL: it has a NUL; -ECANCELED;
 * -errno.  After an error nothing is left in the buffer.
 */
int secret_read_line(int fd, int cancel_fd, char *line, size_t size);
/* The same from the terminal of the process, without an echo, behind a prompt.  -ENOTTY: it has
 * none.
 */
int secret_ask(const char *prompt, int cancel_fd, char *line, size_t size);

#endif
