/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/seen: whether a file is what it was when somebody looked at it, who may be far away.  Pure.
 */
#ifndef TREE_SEEN_H
#define TREE_SEEN_H

#include "proto/message_seen.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Another number when anything was done to the file, whatever size and modification time say; not
 * 0.  As fine as the file system's clock. */
uint64_t seen_change(const struct stat *);
bool seen_has_time(const struct stat *, int64_t mtime_s, uint32_t mtime_ns);
/* Whether a regular file that is to get this time is what was seen.  One that has the time already
 * needs only the size: its own time says what it is.  (It may be another name of a file that got it
 * a moment ago.) */
bool seen_is(const struct message_seen *, const struct stat *, int64_t mtime_s, uint32_t mtime_ns);

#endif
