/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/clock: base/clock.
 */
#include "base/clock.h"
#include "tests/harness.h"

#include <limits.h>

static void never_goes_back(void)
{
	uint64_t before = clock_now_ns();

	CHECK(before > 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t now = clock_now_ns();

		CHECK(now >= before);
		before = now;
	}
}

static void until_rounds_up_and_stays_in_range(void)
{
	uint64_t now = clock_now_ns();

	CHECK_EQ(clock_until_ms(0), 0);
	CHECK_EQ(clock_until_ms(now), 0);
	CHECK_EQ(clock_until_ms(UINT64_MAX), INT_MAX);
	/* an hour: some of it has passed since, but never so that it becomes more */
	int ms = clock_until_ms(now + 3600 * NS_PER_S);
	CHECK(ms > 0 && ms <= 3600 * 1000);
	/* a deadline that is not past is never 0: a poll with it must not spin */
	uint64_t deadline = clock_now_ns() + NS_PER_S / 50;
	for (;;) {
		int left = clock_until_ms(deadline);

		if (clock_now_ns() >= deadline)
			break;
		CHECK(left >= 1 && left <= 20);
	}
	CHECK_EQ(clock_until_ms(deadline), 0);
}

HARNESS_MAIN({"never_goes_back", never_goes_back},
	{"until_rounds_up_and_stays_in_range", until_rounds_up_and_stays_in_range})
