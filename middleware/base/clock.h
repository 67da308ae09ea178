/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/clock: monotonic time in nanoseconds.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

uint64_t clock_now_ns(void); /* CLOCK_MONOTONIC */

/* Milliseconds from now until deadline_ns for poll(2): rounded up, 0 when passed, at most INT_MAX.
 */
int clock_until_ms(uint64_t deadline_ns);

#endif
