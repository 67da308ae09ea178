/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_read: small files that are sent, read one after another (struct transfer_reading).
 *
 * Each takes five system calls: it is opened in its directory, which stays open for the next one,
 * looked at, read, looked at again, and closed.
 */
#ifndef TREE_OUTGOING_READ_H
#define TREE_OUTGOING_READ_H

#include "tree/outgoing_item.h"
#include "tree/parent.h"

/* As `read` and `read_end` of struct transfer_source; of `from` not the place counts. */
int64_t outgoing_read_small(
	const struct outgoing_from *, struct transfer_reading *, struct transfer_item *);
void outgoing_read_close(struct transfer_reading *);

/* A regular file's attributes by one system call or two.  0 or -errno: -ENXIO: it is none. */
int outgoing_stat(struct parent *, int top, const char *path, struct stat *);

#endif
