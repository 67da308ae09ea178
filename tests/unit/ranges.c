/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/ranges: block/ranges: by hand, and at random against a plain array of bytes.
 */
#include "block/ranges.h"
#include "tests/harness.h"

static bool is(const struct ranges *r, const struct ranges_span *spans, size_t count)
{
	if (r->count != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (r->spans[i].from != spans[i].from || r->spans[i].to != spans[i].to)
			return false;
	return true;
}

static void merges_what_touches(void)
{
	struct ranges r;

	ranges_init(&r, 100);
	CHECK_EQ(ranges_add(&r, 10, 20), 0);
	CHECK_EQ(ranges_add(&r, 30, 40), 0);
	CHECK(is(&r, (struct ranges_span[]){{10, 20}, {30, 40}}, 2));
	CHECK_EQ(ranges_add(&r, 20, 25), 0); /* behind one */
	CHECK(is(&r, (struct ranges_span[]){{10, 25}, {30, 40}}, 2));
	CHECK_EQ(ranges_add(&r, 27, 30), 0); /* before one */
	CHECK(is(&r, (struct ranges_span[]){{10, 25}, {27, 40}}, 2));
	CHECK_EQ(ranges_add(&r, 50, 51), 0);
	CHECK_EQ(ranges_add(&r, 25, 27), 0); /* between two */
	CHECK(is(&r, (struct ranges_span[]){{10, 40}, {50, 51}}, 2));
	CHECK_EQ(ranges_add(&r, 0, 10), 0);
	CHECK(is(&r, (struct ranges_span[]){{0, 40}, {50, 51}}, 2));
	CHECK_EQ(ranges_bytes(&r), 41);
	CHECK_EQ(ranges_add(&r, 40, 50), 0);
	CHECK(is(&r, (struct ranges_span[]){{0, 51}}, 1));
	CHECK(ranges_complete(&r, 51));
	ranges_fini(&r);
	CHECK_EQ(r.count, 0);
	ranges_fini(&r);
}

static void refuses_what_came_already(void)
{
	static const struct ranges_span again[] = {{10, 20}, {19, 30}, {5, 11}, {12, 13}, {0, 100},
		{10, 11}, {19, 20}, {20, 31}, {25, 35}, {29, 41}, {39, 41}, {0, UINT64_MAX}};
	struct ranges r;

	ranges_init(&r, 100);
	CHECK_EQ(ranges_add(&r, 10, 20), 0);
	CHECK_EQ(ranges_add(&r, 30, 40), 0);
	for (size_t i = 0; i < sizeof again / sizeof again[0]; i++)
		CHECK_EQ(ranges_add(&r, again[i].from, again[i].to), -EEXIST);
	CHECK_EQ(ranges_add(&r, 5, 5), -EINVAL);
	CHECK_EQ(ranges_add(&r, 15, 15), -EINVAL);
	CHECK_EQ(ranges_add(&r, 9, 5), -EINVAL);
	CHECK_EQ(ranges_add(&r, UINT64_MAX, 0), -EINVAL);
	CHECK(is(&r, (struct ranges_span[]){{10, 20}, {30, 40}}, 2));
	ranges_fini(&r);
}

static void refuses_to_be_scattered(void)
{
	struct ranges r;

	ranges_init(&r, 3);
	for (uint64_t i = 0; i < 3; i++)
		CHECK_EQ(ranges_add(&r, 10 * i, 10 * i + 1), 0);
	CHECK_EQ(ranges_add(&r, 5, 6), -E2BIG);
	CHECK_EQ(ranges_add(&r, 100, 101), -E2BIG);
	CHECK_EQ(ranges_add(&r, 10, 12), -EEXIST); /* told first */
	CHECK_EQ(r.count, 3);
	CHECK_EQ(ranges_add(&r, 1, 10), 0); /* what joins needs no span */
	CHECK_EQ(ranges_add(&r, 21, 22), 0);
	CHECK_EQ(r.count, 2);
	CHECK_EQ(ranges_add(&r, 100, 101), 0);
	CHECK_EQ(ranges_add(&r, 200, 201), -E2BIG);
	ranges_fini(&r);
	ranges_init(&r, 0);
	CHECK_EQ(ranges_add(&r, 0, 1), -E2BIG);
	ranges_fini(&r);
}

static void complete_means_all_and_nothing_else(void)
{
	struct ranges r;

	ranges_init(&r, 10);
	CHECK(ranges_complete(&r, 0));
	CHECK(!ranges_complete(&r, 1));
	CHECK_EQ(ranges_bytes(&r), 0);
	CHECK_EQ(ranges_add(&r, 0, 10), 0);
	CHECK(ranges_complete(&r, 10));
	CHECK(!ranges_complete(&r, 0));
	CHECK(!ranges_complete(&r, 9));
	CHECK(!ranges_complete(&r, 11));
	CHECK_EQ(ranges_add(&r, 20, 21), 0);
	CHECK(!ranges_complete(&r, 10));
	CHECK(!ranges_complete(&r, 21));
	ranges_fini(&r);
	ranges_init(&r, 10);
	CHECK_EQ(ranges_add(&r, 1, 10), 0);
	CHECK(!ranges_complete(&r, 10));
	CHECK(!ranges_complete(&r, 9));
	ranges_fini(&r);
}

static void the_ends_of_the_number_line(void)
{
	struct ranges r;

	ranges_init(&r, 10);
	CHECK_EQ(ranges_add(&r, UINT64_MAX - 1, UINT64_MAX), 0);
	CHECK_EQ(ranges_add(&r, 0, 1), 0);
	CHECK_EQ(ranges_add(&r, 0, UINT64_MAX), -EEXIST);
	CHECK_EQ(ranges_add(&r, 1, UINT64_MAX - 1), 0);
	CHECK(ranges_complete(&r, UINT64_MAX));
	CHECK(ranges_bytes(&r) == UINT64_MAX);
	ranges_fini(&r);
}

static void any_order_is_a_set_of_bytes(void)
{
	enum { BYTES = 64 };
	uint64_t seed = harness_seed();

	for (int round = 0; round < 300; round++) {
		bool model[BYTES + 1] = {false};
		struct ranges r;
		size_t limit = 1 + harness_random(&seed) % 20;

		ranges_init(&r, limit);
		for (int step = 0; step < 200; step++) {
			uint64_t from = harness_random(&seed) % BYTES;
			uint64_t to = from + harness_random(&seed) % 6;
			size_t spans = 0, bytes = 0, at = 0;
			bool taken = false, after[BYTES + 1];
			int expected = 0;

			if (to > BYTES)
				to = BYTES;
			memcpy(after, model, sizeof after);
			for (uint64_t i = from; i < to; i++) {
				taken |= model[i];
				after[i] = true;
			}
			for (int i = 0; i < BYTES; i++)
				spans += after[i] && !after[i + 1];
			if (from >= to)
				expected = -EINVAL;
			else if (taken)
				expected = -EEXIST;
			else if (spans > limit)
				expected = -E2BIG;
			CHECK_EQ(ranges_add(&r, from, to), expected);
			if (!expected)
				memcpy(model, after, sizeof model);

			/* the same bytes, in as few spans as there can be */
			for (int i = 0; i < BYTES; i++) {
				bool starts = model[i] && (!i || !model[i - 1]);

				bytes += model[i];
				if (starts) {
					CHECK(at < r.count);
					CHECK_EQ(r.spans[at].from, i);
				}
				if (model[i] && !model[i + 1])
					CHECK_EQ(r.spans[at++].to, i + 1);
			}
			CHECK_EQ(r.count, at);
			CHECK(r.count <= limit);
			CHECK_EQ(ranges_bytes(&r), bytes);
			CHECK_EQ(ranges_complete(&r, BYTES), bytes == BYTES);
		}
		ranges_fini(&r);
	}
}

/* As blocks land: in order but for a window, which is all that the set may need to remember. */
static void a_window_of_disorder_stays_small(void)
{
	enum { BLOCKS = 200000, WINDOW = 64 };
	uint64_t seed = harness_seed(), waiting[WINDOW], next = 0;
	size_t most = 0, held = 0;
	struct ranges r;

	ranges_init(&r, WINDOW + 1);
	while (next < BLOCKS || held) {
		size_t pick;

		while (held < WINDOW && next < BLOCKS)
			waiting[held++] = next++;
		pick = harness_random(&seed) % held;
		/* the oldest is not left behind for ever */
		for (size_t i = 0; i < held; i++)
			if (waiting[i] + WINDOW <= next)
				pick = i;
		CHECK_EQ(ranges_add(&r, waiting[pick] << 20, (waiting[pick] + 1) << 20), 0);
		waiting[pick] = waiting[--held];
		if (r.count > most)
			most = r.count;
	}
	CHECK(ranges_complete(&r, (uint64_t)BLOCKS << 20));
	CHECK(most <= WINDOW + 1);
	ranges_fini(&r);
}

HARNESS_MAIN({"merges_what_touches", merges_what_touches},
	{"refuses_what_came_already", refuses_what_came_already},
	{"refuses_to_be_scattered", refuses_to_be_scattered},
	{"complete_means_all_and_nothing_else", complete_means_all_and_nothing_else},
	{"the_ends_of_the_number_line", the_ends_of_the_number_line},
	{"any_order_is_a_set_of_bytes", any_order_is_a_set_of_bytes},
	{"a_window_of_disorder_stays_small", a_window_of_disorder_stays_small})
