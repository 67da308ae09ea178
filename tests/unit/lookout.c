/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/lookout: engine/lookout and engine/changes: when somebody looks for what nobody tells
 * of, and what is found.
 */
#include "../harness.h"

#include "engine/changes.h"
#include "engine/lookout.h"

#include <string.h>

#define US 1000ull
#define MS 1000000ull

static void it_looks_less_often_the_longer_it_waits(void)
{
	const uint64_t start = 1000 * MS;
	struct lookout l;
	uint64_t before = 0;

	lookout_init(&l, false, start);
	CHECK_EQ(lookout_next_ns(&l, start), start); /* at once */
	for (uint64_t idle = 100 * US; idle < 100 * MS; idle *= 2) {
		uint64_t nap = lookout_next_ns(&l, start + idle) - (start + idle);

		CHECK(nap >= before && nap <= 5 * MS);
		CHECK(nap <= idle);
		before = nap;
	}
	CHECK_EQ(before, 5 * MS);
	lookout_foretold(&l, start + 200 * MS);
	CHECK_EQ(lookout_next_ns(&l, start + 200 * MS), start + 200 * MS);
}

static void it_looks_as_often_as_they_come(void)
{
	uint64_t now = 1000 * MS;
	struct lookout l;

	lookout_init(&l, false, now);
	for (unsigned i = 0; i < 50; i++) {
		now += MS;
		lookout_came(&l, 1, now);
	}
	CHECK(lookout_next_ns(&l, now) > now + MS / 4 && lookout_next_ns(&l, now) <= now + MS / 2);
	for (unsigned i = 0; i < 50; i++) {
		now += MS;
		lookout_came(&l, 100, now); /* every 10 us */
	}
	CHECK_EQ(lookout_next_ns(&l, now), now);
}

static void who_is_woken_looks_as_a_precaution(void)
{
	struct lookout l;

	lookout_init(&l, true, MS);
	CHECK_EQ(lookout_next_ns(&l, MS), 101 * MS);
}

/* From a byte in the middle of a word on, each byte is looked at once. */
static void each_change_is_found_once_a_turn(void)
{
	uint64_t random = harness_seed();
	struct changes c;

	CHECK_EQ(changes_init(&c, 61), 0);
	CHECK_EQ(c.bytes, 64);
	for (unsigned round = 0; round < 300; round++) {
		uint32_t left = c.bytes, index, first = (uint32_t)(harness_random(&random) % 64);
		bool want[64] = {false};
		unsigned count = 0, found = 0;
		uint8_t byte;

		memset(c.expected, 0, c.bytes);
		memset(c.arena.base, 0, c.bytes);
		c.next = first;
		for (unsigned i = 0; i < round % 9; i++) {
			uint32_t at = (uint32_t)(harness_random(&random) % 64);

			count += !want[at];
			want[at] = true;
			*changes_at(&c, at) = 7;
		}
		while (changes_next(&c, &left, &index, &byte)) {
			CHECK(want[index]);
			CHECK_EQ(byte, 7);
			want[index] = false;
			found++;
		}
		CHECK_EQ(found, count);
		CHECK_EQ(left, 0);
		CHECK_EQ(c.next, first);
	}
	changes_fini(&c);
	changes_fini(&c);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"it looks less often the longer it waits",
			it_looks_less_often_the_longer_it_waits},
		{"it looks as often as they come", it_looks_as_often_as_they_come},
		{"who is woken looks as a precaution", who_is_woken_looks_as_a_precaution},
		{"each change is found once a turn", each_change_is_found_once_a_turn},
		{NULL, NULL},
	};

	return harness_run(cases, argc, argv);
}
