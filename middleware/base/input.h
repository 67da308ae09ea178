/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/input: reading what may keep us waiting for ever, until somebody gives it up.
 */
#ifndef BASE_INPUT_H
#define BASE_INPUT_H

#include <stddef.h>
#include <sys/types.h>

/* As read(2), and not interrupted by signals: how many bytes; 0: the end; -ECANCELED: `cancel_fd`
 * (-1: none) is readable; -errno.  Blocks. */
ssize_t input_read(int fd, int cancel_fd, void *data, size_t size);

#endif
