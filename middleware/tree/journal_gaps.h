/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal_gaps: of a partial file with holes, all that is not proved becomes a hole.
 *
 * Zeros of such a file are not written, and its holes do not come again: whatever was left there by
 * a transfer before, and is not known to be right, would be taken for them.
 */
#ifndef TREE_JOURNAL_GAPS_H
#define TREE_JOURNAL_GAPS_H

#include "transfer/transfer.h"

#include <stdint.h>

/* Whether the file system can make holes in a file of that size: 0 or -errno.  Changes nothing. */
int journal_gaps_check(int fd, uint64_t size);
/* Leaves of a file of that size only these blocks, which are ascending.  0 or -errno: there may be
 * anything between them. */
int journal_gaps_empty(
	int fd, uint64_t size, const struct transfer_notes *proved, uint32_t block_bytes);

#endif
