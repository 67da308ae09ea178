/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/reorder: block/reorder: by hand, and a shuffled stream that must come out in order.
 */
#include "block/reorder.h"
#include "tests/harness.h"

static void hands_out_in_order(void)
{
	struct block b[4] = {{.sequence = 0}, {.sequence = 1}, {.sequence = 2}, {.sequence = 3}};
	struct reorder *r;

	CHECK_EQ(reorder_new(4, &r), 0);
	CHECK(!reorder_get(r));
	CHECK_EQ(reorder_put(r, &b[2]), 0);
	CHECK_EQ(reorder_put(r, &b[1]), 0);
	CHECK(!reorder_get(r));
	CHECK_EQ(reorder_put(r, &b[0]), 0);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(reorder_get(r) == &b[i]);
	CHECK(!reorder_get(r));
	CHECK_EQ(reorder_put(r, &b[3]), 0);
	CHECK(reorder_get(r) == &b[3]);
	reorder_free(r);
	reorder_free(NULL);
}

static void refuses_what_is_outside_or_came_already(void)
{
	struct block zero = {.sequence = 0}, one = {.sequence = 1}, again = {.sequence = 1};
	struct block edge = {.sequence = 3}, outside = {.sequence = 4},
		     far = {.sequence = UINT32_MAX};
	struct reorder *r;

	CHECK_EQ(reorder_new(4, &r), 0);
	CHECK_EQ(reorder_put(r, &one), 0);
	CHECK_EQ(reorder_put(r, &again), -EEXIST);
	CHECK_EQ(reorder_put(r, &outside), -ERANGE);
	CHECK_EQ(reorder_put(r, &far), -ERANGE);
	CHECK_EQ(reorder_put(r, &edge), 0);
	CHECK_EQ(reorder_put(r, &zero), 0);
	CHECK(reorder_get(r) == &zero);
	CHECK_EQ(reorder_put(r, &zero), -ERANGE); /* handed out: behind the window */
	CHECK_EQ(reorder_put(r, &outside), 0);    /* the window moved on */
	CHECK(reorder_get(r) == &one);
	CHECK(!reorder_get(r));
	reorder_free(r);

	CHECK_EQ(reorder_new(0, &r), 0);
	CHECK_EQ(reorder_put(r, &zero), -ERANGE);
	CHECK(!reorder_get(r));
	CHECK(!reorder_drain(r));
	reorder_free(r);
}

static void drain_gives_back_all_that_is_held(void)
{
	struct block b[8];
	struct reorder *r;
	bool seen[8] = {false};
	struct block *got;

	CHECK_EQ(reorder_new(8, &r), 0);
	CHECK(!reorder_drain(r));
	for (uint32_t i = 0; i < 8; i++)
		b[i] = (struct block){.sequence = i};
	CHECK_EQ(reorder_put(r, &b[0]), 0);
	CHECK(reorder_get(r) == &b[0]);
	for (uint32_t i = 2; i < 8; i += 2)
		CHECK_EQ(reorder_put(r, &b[i]), 0);
	while ((got = reorder_drain(r))) {
		CHECK(!seen[got->sequence]);
		seen[got->sequence] = true;
	}
	for (uint32_t i = 0; i < 8; i++)
		CHECK_EQ(seen[i], i >= 2 && i % 2 == 0);
	CHECK(!reorder_get(r));
	reorder_free(r);
}

/* The model is what a set of numbers and the next one say. */
static void any_order_comes_out_in_order(void)
{
	enum { TOTAL = 300, MOST = 16 };
	uint64_t seed = harness_seed();

	for (int round = 0; round < 200; round++) {
		uint32_t window = 1 + (uint32_t)(harness_random(&seed) % MOST), next = 0;
		struct block b[TOTAL];
		bool held[TOTAL] = {false};
		struct reorder *r;

		for (uint32_t i = 0; i < TOTAL; i++)
			b[i] = (struct block){.sequence = i};
		CHECK_EQ(reorder_new(window, &r), 0);
		while (next < TOTAL) {
			struct block *got;

			if (harness_random(&seed) % 3) {
				uint32_t back = next < 3 ? next : 3;
				uint32_t i =
					next - back +
					(uint32_t)(harness_random(&seed) % (window + back + 2));
				int expected = 0;

				if (i >= TOTAL)
					continue;
				if (i < next || i - next >= window)
					expected = -ERANGE;
				else if (held[i])
					expected = -EEXIST;
				CHECK_EQ(reorder_put(r, &b[i]), expected);
				held[i] |= !expected;
				continue;
			}
			got = reorder_get(r);
			CHECK(got == (held[next] ? &b[next] : NULL));
			if (got)
				next++;
		}
		CHECK(!reorder_drain(r));
		reorder_free(r);
	}
}

HARNESS_MAIN({"hands_out_in_order", hands_out_in_order},
	{"refuses_what_is_outside_or_came_already", refuses_what_is_outside_or_came_already},
	{"drain_gives_back_all_that_is_held", drain_gives_back_all_that_is_held},
	{"any_order_comes_out_in_order", any_order_comes_out_in_order})
