/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/clock: see clock.h.  This is not the calendar's clock, so that no time-out depends on
 * somebody setting the date.
 */
#include "base/clock.h"

#include <limits.h>
#include <time.h>

uint64_t clock_now_ns(void)
{
	struct timespec ts = {0};

	/* it exists on every Linux, so there is no error to report */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

int clock_until_ms(uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns(), ms;

	if (deadline_ns <= now)
		return 0;
	/* up, or a poll would return early and spin through the last millisecond */
	ms = (deadline_ns - now - 1) / NS_PER_MS + 1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
