/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/digest: owns the tree of a file's leaves.
 *
 * The tree is kept in two parts:
 * - the spine: all leaves below `next` have come, and are folded into one subtree for each bit set
 *   in `next` (a binary counter: adding a leaf carries).  In order, that is all there is.
 * - the table: subtrees that came ahead of `next`, as large as they could be folded, in open
 *   addressing under the number of their first leaf.  That number alone is the key: subtrees that
 *   are not yet folded do not overlap.
 */
#include "block/digest.h"

#include "block/digest_impl.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define DIGEST_LEVELS 64
#define DIGEST_ROOM_FIRST 64u /* slots in the first table: a power of two, as every size */
#define DIGEST_EMPTY 0xffu    /* a slot's level when nothing is in it */

struct digest_node {
	uint64_t first; /* its first leaf: a multiple of 1 << level */
	uint64_t value;
	uint8_t level; /* it spans 1 << level leaves */
};

struct digest_tree {
	uint64_t next;
	uint64_t spine[DIGEST_LEVELS]; /* [l] is meant where bit l of `next` is set */
	struct digest_node *table;
	size_t room, count;
	unsigned top_level; /* no subtree in the table was ever higher */
};

uint64_t digest_block_sum(uint64_t leaf, const uint8_t header[24])
{
	return leaf ^ digest_leaf_scalar(header, 24);
}

/* XXH3-64 of both, each big-endian. */
static uint64_t digest_pair(uint64_t left, uint64_t right)
{
	uint8_t bytes[16];

	for (int i = 0; i < 8; i++) {
		bytes[i] = (uint8_t)(left >> (56 - 8 * i));
		bytes[8 + i] = (uint8_t)(right >> (56 - 8 * i));
	}
	return digest_leaf_scalar(bytes, sizeof bytes);
}

int digest_tree_new(struct digest_tree **out)
{
	*out = calloc(1, sizeof **out);
	return *out ? 0 : -ENOMEM;
}

void digest_tree_free(struct digest_tree *t)
{
	if (!t)
		return;
	free(t->table);
	free(t);
}

/* ---- the table ---- */

static size_t digest_slot(const struct digest_tree *t, uint64_t first)
{
	/* Fibonacci hashing; high bits, for `first` often ends in zeros */
	return (size_t)((first * 0x9e3779b97f4a7c15ull) >> 32) & (t->room - 1);
}

static struct digest_node *digest_find(const struct digest_tree *t, uint64_t first)
{
	if (!t->count)
		return NULL;
	for (size_t i = digest_slot(t, first); t->table[i].level != DIGEST_EMPTY;
		i = (i + 1) & (t->room - 1))
		if (t->table[i].first == first)
			return &t->table[i];
	return NULL;
}

/* There is room for it, and nothing under its key. */
static void digest_insert(struct digest_tree *t, const struct digest_node *node)
{
	size_t i = digest_slot(t, node->first);

	while (t->table[i].level != DIGEST_EMPTY)
		i = (i + 1) & (t->room - 1);
	t->table[i] = *node;
	t->count++;
}

static void digest_remove(struct digest_tree *t, struct digest_node *node)
{
	size_t hole = (size_t)(node - t->table), mask = t->room - 1;

	/* Moves back what the hole would cut off from its own slot: no tombstones to sweep up. */
	for (size_t i = (hole + 1) & mask; t->table[i].level != DIGEST_EMPTY; i = (i + 1) & mask) {
		size_t home = digest_slot(t, t->table[i].first);

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			t->table[hole] = t->table[i];
			hole = i;
		}
	}
	t->table[hole].level = DIGEST_EMPTY;
	t->count--;
}

/* Makes sure that one more fits with at least half of the slots left empty. */
static int digest_reserve(struct digest_tree *t)
{
	struct digest_node *old = t->table;
	size_t old_room = t->room, room = old_room ? old_room * 2 : DIGEST_ROOM_FIRST;

	if ((t->count + 1) * 2 <= old_room)
		return 0;
	t->table = malloc(room * sizeof *t->table);
	if (!t->table) {
		t->table = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < room; i++)
		t->table[i].level = DIGEST_EMPTY;
	t->room = room;
	t->count = 0;
	for (size_t i = 0; i < old_room; i++)
		if (old[i].level != DIGEST_EMPTY)
			digest_insert(t, &old[i]);
	free(old);
	return 0;
}

/* Whether a subtree in the table spans this leaf. */
static bool digest_pending(const struct digest_tree *t, uint64_t index)
{
	uint64_t first = index;

	if (!t->count)
		return false;
	/* Its first leaf is `index` with some low bits cleared. */
	for (;;) {
		const struct digest_node *node = digest_find(t, first);

		if (node)
			return index - first < 1ull << node->level;
		if (!first)
			return false;
		first &= first - 1;
		if (first < t->next || index - first >= 1ull << t->top_level)
			return false;
	}
}

/* ---- the spine ---- */

/* A subtree that begins at `next`: carries as far as it goes. */
static void digest_absorb(struct digest_tree *t, uint64_t value, unsigned level)
{
	uint64_t leaves = 1ull << level;

	while (t->next >> level & 1)
		value = digest_pair(t->spine[level++], value);
	t->spine[level] = value;
	t->next += leaves;
}

/* A subtree with leaves before it that have not come. */
static int digest_insert_ahead(struct digest_tree *t, struct digest_node node)
{
	struct digest_node *sibling;
	int err = digest_reserve(t);

	if (err)
		return err;
	for (;;) {
		sibling = digest_find(t, node.first ^ 1ull << node.level);
		if (!sibling || sibling->level != node.level)
			break;
		if (sibling->first < node.first) {
			node.value = digest_pair(sibling->value, node.value);
			node.first = sibling->first;
		} else {
			node.value = digest_pair(node.value, sibling->value);
		}
		node.level++;
		digest_remove(t, sibling);
	}
	if (node.level > t->top_level)
		t->top_level = node.level;
	digest_insert(t, &node);
	return 0;
}

static int digest_add_subtree(struct digest_tree *t, const struct digest_node *node)
{
	struct digest_node *after;

	if (node->first < t->next)
		return -EEXIST;
	if (node->first > t->next)
		return digest_pending(t, node->first) ? -EEXIST : digest_insert_ahead(t, *node);
	digest_absorb(t, node->value, node->level);
	while ((after = digest_find(t, t->next))) {
		digest_absorb(t, after->value, after->level);
		digest_remove(t, after);
	}
	return 0;
}

int digest_tree_add(struct digest_tree *t, uint64_t index, uint64_t leaf)
{
	return digest_add_subtree(t, &(struct digest_node){.first = index, .value = leaf});
}

int digest_tree_add_run(struct digest_tree *t, uint64_t first, uint64_t count, uint64_t leaf)
{
	uint64_t values[DIGEST_LEVELS] = {leaf};
	unsigned known = 0;
	int err = 0;

	/* as few subtrees as there can be: each as large as its place and what is left allow */
	while (count && !err) {
		struct digest_node node = {.first = first};

		while (node.level < DIGEST_LEVELS - 2 && !(first >> node.level & 1) &&
			2ull << node.level <= count)
			node.level++;
		for (; known < node.level; known++)
			values[known + 1] = digest_pair(values[known], values[known]);
		node.value = values[node.level];
		err = digest_add_subtree(t, &node);
		first += 1ull << node.level;
		count -= 1ull << node.level;
	}
	return err;
}

int digest_zeros(size_t bytes, uint64_t *leaf)
{
	void *zeros = calloc(1, bytes);

	if (!zeros)
		return -ENOMEM;
	*leaf = digest_leaf(zeros, bytes);
	free(zeros);
	return 0;
}

static uint64_t digest_root(uint64_t size, uint64_t top, uint64_t entry)
{
	const uint64_t parts[3] = {size, top, entry};
	uint8_t bytes[24];

	for (int i = 0; i < 24; i++)
		bytes[i] = (uint8_t)(parts[i / 8] >> (56 - i % 8 * 8));
	return digest_leaf_scalar(bytes, sizeof bytes);
}

uint64_t digest_small_root(uint64_t size, uint64_t leaf, uint64_t entry)
{
	return digest_root(size, size ? leaf : 0, entry);
}

uint64_t digest_entry_root(uint64_t entry)
{
	return digest_root(0, 0, entry);
}

int digest_tree_root(
	struct digest_tree *t, uint64_t count, uint64_t size, uint64_t entry, uint64_t *root)
{
	uint64_t top = 0;
	bool any = false;

	if (t->next != count || t->count)
		return -ENODATA;
	/* From the right: what has no right sibling rises until it meets the next larger subtree.
	 */
	for (unsigned level = 0; level < DIGEST_LEVELS; level++) {
		if (!(count >> level & 1))
			continue;
		top = any ? digest_pair(t->spine[level], top) : t->spine[level];
		any = true;
	}
	*root = digest_root(size, top, entry);
	return 0;
}
