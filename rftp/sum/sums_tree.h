/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/sum/sums_tree: all files of a directory, and of all directories beneath it, for their sums.
 */
#ifndef RFTP_SUMS_TREE_H
#define RFTP_SUMS_TREE_H

#include "rftp/sum/sums.h"

/* The regular files of a directory, sorted by the bytes of their names, as the filter has it; of
 * anything else that name alone.  Of `item` only shown, path, server and remote count, and are the
 * caller's; one that is remote is of the server that is open.  0 or -errno (reported). */
int sums_tree_add(struct sums *, const struct sums_item *);

#endif
