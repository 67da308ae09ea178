/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/digest: block/digest.  Leaves: published values of XXH3, and one result by every way
 * of computing it.  The tree: any order of arrival against a plain level-by-level one.
 */
#include "block/digest.h"
#include "block/digest_impl.h"
#include "tests/harness.h"

static uint64_t model_pair(uint64_t left, uint64_t right)
{
	uint8_t bytes[16];

	for (int i = 0; i < 8; i++) {
		bytes[i] = (uint8_t)(left >> (56 - 8 * i));
		bytes[8 + i] = (uint8_t)(right >> (56 - 8 * i));
	}
	return digest_leaf(bytes, sizeof bytes);
}

#define ENTRY 0x0123456789abcdefull /* digest of what else the files are */

static uint64_t model_entry(uint64_t size, uint64_t top, uint64_t entry)
{
	const uint64_t parts[3] = {size, top, entry};
	uint8_t bytes[24];

	for (int i = 0; i < 24; i++)
		bytes[i] = (uint8_t)(parts[i / 8] >> (56 - i % 8 * 8));
	return digest_leaf(bytes, sizeof bytes);
}

/* The definition, word for word; uses up `leaves`. */
static uint64_t model_root(uint64_t *leaves, size_t count, uint64_t size)
{
	uint64_t top = 0;

	if (count) {
		while (count > 1) {
			size_t parents = 0;

			for (size_t i = 0; i + 1 < count; i += 2)
				leaves[parents++] = model_pair(leaves[i], leaves[i + 1]);
			if (count % 2)
				leaves[parents++] = leaves[count - 1];
			count = parents;
		}
		top = leaves[0];
	}
	return model_entry(size, top, ENTRY);
}

static void shuffle(uint64_t *order, size_t count, uint64_t *seed)
{
	for (size_t i = count; i > 1; i--) {
		size_t j = harness_random(seed) % i;
		uint64_t swap = order[i - 1];

		order[i - 1] = order[j];
		order[j] = swap;
	}
}

/* ---- leaves ---- */

/* The values that xxHash's own sanity check expects with seed 0, over its generated buffer. */
static void leaf_is_xxh3(void)
{
	static const struct {
		size_t bytes;
		uint64_t leaf;
	} rows[] = {{0, 0x2d06800538d394c2}, {1, 0xc44bdff4074eecdb}, {6, 0x27b56a84cd2d7325},
		{12, 0xa713daf0dfbb77e7}, {24, 0xa3fe70bf9d3510eb}, {48, 0x397da259ecba1f11},
		{80, 0xbcdefbbb2c47c90a}, {195, 0xcd94217ee362ec3a}, {403, 0xcdeb804d65c6dea4},
		{512, 0x617e49599013cb6b}, {2048, 0xdd59e2c3a5f038e0}, {2240, 0x6e73a90539cf2948},
		{2367, 0xcb37aeb9e5d361ed}};
	uint8_t data[2367];
	uint64_t state = 2654435761u;

	for (size_t i = 0; i < sizeof data; i++) {
		data[i] = (uint8_t)(state >> 56);
		state *= 11400714785074694797u;
	}
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		CHECK(digest_leaf(data, rows[i].bytes) == rows[i].leaf);
	}
}

static void every_way_gives_one_result(void)
{
	enum { MOST = 70000 };
	uint64_t seed = harness_seed();
	uint8_t *data = malloc(MOST + 64);

	CHECK(data);
	for (size_t i = 0; i < MOST + 64; i++)
		data[i] = (uint8_t)harness_random(&seed);
	/* every length of the short ways and past some stripes, then at random */
	for (size_t n = 0; n < 5000; n++) {
		size_t bytes = n < 2200 ? n : harness_random(&seed) % MOST;
		const uint8_t *at = data + harness_random(&seed) % 64;
		uint64_t leaf = digest_leaf(at, bytes);

		CHECK(digest_leaf_library(at, bytes) == leaf);
		CHECK(digest_leaf_scalar(at, bytes) == leaf);
	}
	free(data);
}

static void a_changed_bit_changes_the_leaf(void)
{
	uint64_t seed = harness_seed();
	static uint8_t data[65536];
	uint64_t before;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)harness_random(&seed);
	before = digest_leaf(data, sizeof data);
	for (int i = 0; i < 100; i++) {
		size_t bit = harness_random(&seed) % (sizeof data * 8);

		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK(digest_leaf(data, sizeof data) != before);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	CHECK(digest_leaf(data, sizeof data) == before);
}

static void the_sum_covers_payload_and_header(void)
{
	uint8_t header[24];
	uint64_t sum;

	for (int i = 0; i < 24; i++)
		header[i] = (uint8_t)(i * 7);
	sum = digest_block_sum(0x1234, header);
	CHECK(sum == (0x1234 ^ digest_leaf(header, 24)));
	CHECK(sum != digest_block_sum(0x1235, header));
	for (int i = 0; i < 24; i++) {
		header[i] ^= 1;
		CHECK(sum != digest_block_sum(0x1234, header));
		header[i] ^= 1;
	}
}

/* ---- trees ---- */

static bool tree_agrees(const uint64_t *order, size_t count, uint64_t *seed)
{
	uint64_t *leaves = malloc((count + 1) * sizeof *leaves);
	uint64_t size = harness_random(seed), root = 0;
	struct digest_tree *t;
	bool same = leaves && digest_tree_new(&t) == 0;

	if (!same)
		return false;
	for (size_t i = 0; i < count; i++)
		leaves[i] = harness_random(seed);
	for (size_t i = 0; i < count; i++)
		same &= digest_tree_add(t, order[i], leaves[order[i]]) == 0;
	same &= digest_tree_root(t, count, size, ENTRY, &root) == 0;
	same &= root == model_root(leaves, count, size);
	if (!same)
		printf("# %zu leaves\n", count);
	digest_tree_free(t);
	free(leaves);
	return same;
}

static void any_order_gives_the_root_of_the_definition(void)
{
	enum { MOST = 600 };
	uint64_t seed = harness_seed(), order[MOST] = {0};

	for (size_t count = 0; count < MOST; count += count < 70 ? 1 : 13) {
		for (size_t i = 0; i < count; i++)
			order[i] = i;
		CHECK(tree_agrees(order, count, &seed));
		for (size_t i = 0; i < count; i++)
			order[i] = count - 1 - i;
		CHECK(tree_agrees(order, count, &seed));
		for (int times = 0; times < 4; times++) {
			shuffle(order, count, &seed);
			CHECK(tree_agrees(order, count, &seed));
		}
	}
}

static void a_large_file_in_a_window_of_disorder(void)
{
	enum { COUNT = 100003, WINDOW = 128 };
	uint64_t seed = harness_seed();
	uint64_t *order = malloc(COUNT * sizeof *order);

	CHECK(order);
	for (size_t i = 0; i < COUNT; i++)
		order[i] = i;
	for (size_t i = 0; i + WINDOW <= COUNT; i += WINDOW / 2)
		shuffle(order + i, WINDOW, &seed);
	CHECK(tree_agrees(order, COUNT, &seed));
	shuffle(order, COUNT, &seed); /* and with no window at all */
	CHECK(tree_agrees(order, COUNT, &seed));
	/* the odd ones first: nothing can be folded until the end, the table grows to hold half */
	for (size_t i = 0; i < COUNT; i++)
		order[i] = i < COUNT / 2 ? 2 * i + 1 : 2 * (i - COUNT / 2);
	CHECK(tree_agrees(order, COUNT, &seed));
	free(order);
}

static void a_leaf_comes_once(void)
{
	enum { COUNT = 64 };
	uint64_t seed = harness_seed();

	for (int round = 0; round < 300; round++) {
		bool came[COUNT] = {false};
		uint64_t leaves[COUNT], root, expected;
		struct digest_tree *t;
		size_t left = COUNT;

		CHECK_EQ(digest_tree_new(&t), 0);
		for (size_t i = 0; i < COUNT; i++)
			leaves[i] = harness_random(&seed);
		while (left) {
			uint64_t i = harness_random(&seed) % COUNT;

			CHECK_EQ(digest_tree_add(t, i, came[i] ? ~leaves[i] : leaves[i]),
				came[i] ? -EEXIST : 0);
			left -= !came[i];
			came[i] = true;
		}
		/* what was refused left no trace */
		CHECK_EQ(digest_tree_root(t, COUNT, 1, ENTRY, &root), 0);
		expected = model_root(leaves, COUNT, 1);
		CHECK(root == expected);
		digest_tree_free(t);
	}
}

static void a_missing_or_surplus_leaf_is_told(void)
{
	enum { COUNT = 20 };
	uint64_t root;

	for (uint64_t missing = 0; missing < COUNT; missing++) {
		struct digest_tree *t;

		CHECK_EQ(digest_tree_new(&t), 0);
		for (uint64_t i = 0; i < COUNT; i++)
			if (i != missing)
				CHECK_EQ(digest_tree_add(t, i, i), 0);
		CHECK_EQ(digest_tree_root(t, COUNT, 1, ENTRY, &root), -ENODATA);
		CHECK_EQ(digest_tree_root(t, COUNT - 1, 1, ENTRY, &root),
			missing == COUNT - 1 ? 0 : -ENODATA);
		CHECK_EQ(digest_tree_root(t, COUNT + 1, 1, ENTRY, &root), -ENODATA);
		digest_tree_free(t);
	}
}

static void the_empty_file_and_the_far_index(void)
{
	struct digest_tree *t;
	uint64_t root;

	CHECK_EQ(digest_tree_new(&t), 0);
	CHECK_EQ(digest_tree_root(t, 0, 0, ENTRY, &root), 0);
	CHECK(root == model_entry(0, 0, ENTRY));
	CHECK(digest_entry_root(ENTRY) == root);
	/* a peer's offset may be anything */
	CHECK_EQ(digest_tree_add(t, UINT64_MAX, 1), 0);
	CHECK_EQ(digest_tree_add(t, UINT64_MAX, 1), -EEXIST);
	CHECK_EQ(digest_tree_add(t, UINT64_MAX - 1, 2), 0);
	CHECK_EQ(digest_tree_add(t, UINT64_MAX, 1), -EEXIST);
	CHECK_EQ(digest_tree_add(t, 1ull << 63, 2), 0);
	CHECK_EQ(digest_tree_add(t, 1ull << 63, 2), -EEXIST);
	CHECK_EQ(digest_tree_root(t, 0, 0, ENTRY, &root), -ENODATA);
	digest_tree_free(t);
	digest_tree_free(NULL);
}

static void size_order_count_and_entry_all_matter(void)
{
	uint64_t roots[5];

	for (int i = 0; i < 5; i++) {
		struct digest_tree *t;

		CHECK_EQ(digest_tree_new(&t), 0);
		CHECK_EQ(digest_tree_add(t, 0, i == 1 ? 2 : 1), 0);
		CHECK_EQ(digest_tree_add(t, 1, i == 1 ? 1 : 2), 0);
		if (i == 2)
			CHECK_EQ(digest_tree_add(t, 2, 0), 0);
		CHECK_EQ(digest_tree_root(
				 t, i == 2 ? 3 : 2, i == 3 ? 8 : 9, ENTRY + (i == 4), &roots[i]),
			0);
		for (int j = 0; j < i; j++)
			CHECK(roots[j] != roots[i]);
		digest_tree_free(t);
	}
}

/* Runs and single leaves, in any order, make the tree that single leaves in order make. */
static void runs_are_so_many_leaves(void)
{
	uint64_t seed = harness_seed(), zero, root, want;

	CHECK_EQ(digest_zeros(65536, &zero), 0);
	for (int round = 0; round < 300; round++) {
		uint64_t count = 1 + harness_random(&seed) % 200, at = 0, parts = 0;
		uint64_t firsts[200], lengths[200], order[200];
		struct digest_tree *runs, *singles;

		CHECK_EQ(digest_tree_new(&runs), 0);
		CHECK_EQ(digest_tree_new(&singles), 0);
		while (at < count) {
			firsts[parts] = at;
			lengths[parts] = 1 + harness_random(&seed) % (count - at);
			order[parts] = parts;
			at += lengths[parts++];
		}
		shuffle(order, parts, &seed);
		for (uint64_t i = 0; i < parts; i++) {
			uint64_t part = order[i];

			if (part % 2)
				CHECK_EQ(digest_tree_add_run(
						 runs, firsts[part], lengths[part], zero),
					0);
			else
				for (uint64_t k = lengths[part]; k--;)
					CHECK_EQ(digest_tree_add(
							 runs, firsts[part] + k, firsts[part] + k),
						0);
		}
		for (uint64_t part = 0; part < parts; part++)
			for (uint64_t k = 0; k < lengths[part]; k++)
				CHECK_EQ(digest_tree_add(singles, firsts[part] + k,
						 part % 2 ? zero : firsts[part] + k),
					0);
		CHECK_EQ(digest_tree_root(runs, count, 5, ENTRY, &root), 0);
		CHECK_EQ(digest_tree_root(singles, count, 5, ENTRY, &want), 0);
		CHECK(root == want);
		digest_tree_free(runs);
		digest_tree_free(singles);
	}
}

/* As many as a file of 2^63 bytes can have, in no time; what was there already is told. */
static void a_run_of_any_length(void)
{
	struct digest_tree *t;
	uint64_t root;

	CHECK_EQ(digest_tree_new(&t), 0);
	CHECK_EQ(digest_tree_add_run(t, 7, (1ull << 47) - 7, 1), 0);
	CHECK_EQ(digest_tree_add(t, 7, 1), -EEXIST);
	CHECK_EQ(digest_tree_add(t, 1ull << 40, 1), -EEXIST);
	CHECK_EQ(digest_tree_add_run(t, 0, 7, 1), 0);
	CHECK_EQ(digest_tree_add_run(t, 3, 1, 1), -EEXIST);
	CHECK_EQ(digest_tree_root(t, 1ull << 47, 5, ENTRY, &root), 0);
	digest_tree_free(t);
}

HARNESS_MAIN({"leaf_is_xxh3", leaf_is_xxh3}, {"runs_are_so_many_leaves", runs_are_so_many_leaves},
	{"a_run_of_any_length", a_run_of_any_length},
	{"every_way_gives_one_result", every_way_gives_one_result},
	{"a_changed_bit_changes_the_leaf", a_changed_bit_changes_the_leaf},
	{"the_sum_covers_payload_and_header", the_sum_covers_payload_and_header},
	{"any_order_gives_the_root_of_the_definition", any_order_gives_the_root_of_the_definition},
	{"a_large_file_in_a_window_of_disorder", a_large_file_in_a_window_of_disorder},
	{"a_leaf_comes_once", a_leaf_comes_once},
	{"a_missing_or_surplus_leaf_is_told", a_missing_or_surplus_leaf_is_told},
	{"the_empty_file_and_the_far_index", the_empty_file_and_the_far_index},
	{"size_order_count_and_entry_all_matter", size_order_count_and_entry_all_matter})
