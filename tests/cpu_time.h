/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/cpu_time.h: what a process has cost.
 */
#ifndef TESTS_CPU_TIME_H
#define TESTS_CPU_TIME_H

#include <stdint.h>
#include <time.h>

/* User and system time of this process, all threads. */
static inline uint64_t process_cpu_ns(void)
{
	struct timespec ts = {0};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
