/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/limit: limits of this process.
 */
#ifndef BASE_LIMIT_H
#define BASE_LIMIT_H

#include <stdint.h>

/* Lets this process have as many open files as its hard limit says: sessions and files on their way
 * need a few descriptors each.  0 or -errno; it then goes on with what it had. */
int limit_raise_files(void);
/* Descriptors that this process may still open.  Others open some meanwhile. */
uint64_t limit_free_files(void);

#endif
