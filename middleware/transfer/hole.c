/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/hole: see hole.h.
 */
#include "transfer/hole.h"

uint64_t hole_blocks(uint64_t length, uint32_t block_bytes)
{
	return length / block_bytes + (length % block_bytes != 0);
}

int hole_add(struct hole_leaves *h, struct digest_tree *tree, uint64_t offset, uint64_t length,
	uint32_t block_bytes)
{
	const uint64_t first = offset / block_bytes, whole = length / block_bytes;
	uint64_t leaf;
	int err = 0;

	if (whole && !h->known) {
		err = digest_zeros(block_bytes, &h->leaf);
		h->known = !err;
	}
	if (!err)
		err = digest_tree_add_run(tree, first, whole, h->leaf);
	if (!err && length % block_bytes) {
		err = digest_zeros(length % block_bytes, &leaf);
		if (!err)
			err = digest_tree_add(tree, first + whole, leaf);
	}
	return err;
}
