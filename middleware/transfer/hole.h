/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/hole: the place of holes in a file's digest: leaves of blocks of zeros, so that a file
 * has the digest that it has without holes.  Pure.
 */
#ifndef TRANSFER_HOLE_H
#define TRANSFER_HOLE_H

#include "block/digest.h"

#include <stdbool.h>

struct hole_leaves { /* zeroed: none is known yet */
	bool known;
	uint64_t leaf; /* of a whole block */
};

/* How many blocks a hole takes the place of. */
uint64_t hole_blocks(uint64_t length, uint32_t block_bytes);
/* Adds a hole that begins with a block and is of whole ones, but for the last of the file.  0 or
 * -errno as of digest_tree_add. */
int hole_add(struct hole_leaves *, struct digest_tree *, uint64_t offset, uint64_t length,
	uint32_t block_bytes);

#endif
