/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/standard: descriptors 0, 1 and 2, as a program finds them.
 */
#ifndef BASE_STANDARD_H
#define BASE_STANDARD_H

/*
 * Fills those that are closed, so that no socket or file gets such a number, and messages go into
 * it.  To read from, or write to, what was closed is -EBADF still.  First of all, while there is
 * one thread.  0 or -errno.
 */
int standard_fill(void);

#endif
