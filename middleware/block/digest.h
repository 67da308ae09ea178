/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/digest: checksums of blocks, and the digest of a file: of the tree of its blocks and of
 * what else it is.  Pure.
 *
 * Leaf:  XXH3-64 (libxxhash's algorithm, seed 0) of a block's payload.
 * Tree:  binary, over the leaves in file order.  An inner node is XXH3-64 of 16 bytes: left child,
 *        right child, each 64 bits big-endian.  A node without a right sibling rises unchanged to
 *        the next level (as in RFC 6962's trees).
 *
 * Root:  XXH3-64 of 24 bytes: file size, the top node (0 for an empty file and for a directory),
 *        and the entry, XXH3-64 of the bytes that say what the file is called, its mode and its
 *        time; all big-endian.
 *
 * Leaves arrive in any order; a pair is folded as soon as both are there, so memory is bounded by
 * what is out of order (the window), not by the file.
 */
#ifndef BLOCK_DIGEST_H
#define BLOCK_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* XXH3-64 of `bytes` bytes, by the fastest way that this machine has. */
uint64_t digest_leaf(const void *data, size_t bytes);
/* The checksum field of a block: leaf xor XXH3-64 of the header's bytes. */
uint64_t digest_block_sum(uint64_t leaf, const uint8_t header[24]);

struct digest_tree;

int digest_tree_new(struct digest_tree **out);
void digest_tree_free(struct digest_tree *);
/* Leaf number `index` (offset / block size).  -EEXIST: that leaf came already; -ENOMEM. */
int digest_tree_add(struct digest_tree *, uint64_t index, uint64_t leaf);
/* The same for `count` leaves from `first` on that are all alike, as those of a hole.  That none of
 * them came is the caller's to know (block/ranges). */
int digest_tree_add_run(struct digest_tree *, uint64_t first, uint64_t count, uint64_t leaf);
/* The leaf of so many zeros, in *leaf.  -ENOMEM. */
int digest_zeros(size_t bytes, uint64_t *leaf);
/*
 * The root over leaves 0..count-1 of a file of `size` bytes.  -ENODATA when one is missing or there
 * are more.  The tree is used up: only free it afterwards.
 */
int digest_tree_root(
	struct digest_tree *, uint64_t count, uint64_t size, uint64_t entry, uint64_t *root);
/* The root of a file of one block: its leaf is all there is; of no block if it is empty. */
uint64_t digest_small_root(uint64_t size, uint64_t leaf, uint64_t entry);
/* The root of what has no bytes of its own, a directory. */
uint64_t digest_entry_root(uint64_t entry);

#endif
