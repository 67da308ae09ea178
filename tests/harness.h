/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/harness.h: the few macros that every C test uses.
 *
 * A test program lists its cases in one HARNESS_MAIN table.  Each case runs in turn in this
 * process and prints one TAP line; tests/run adds the lines of all programs up.  A failed CHECK
 * records file, line and expression, and leaves the case at once (it returns), so a case must not
 * hold what the next one needs.  SKIP says why.
 *
 * Arguments of a test program: names of cases to run (default: all).
 * Environment: RFTP_SEED sets harness_seed(), which is printed.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct harness_case {
	const char *name;
	void (*run)(void);
};

static int harness_failed;
static const char *harness_skipped;

#define CHECK(expr)                                                                                \
	do {                                                                                       \
		if (!(expr)) {                                                                     \
			printf("# %s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #expr);          \
			harness_failed = 1;                                                        \
			return;                                                                    \
		}                                                                                  \
	} while (0)

/* Both sides are converted to intmax_t; prints them when they differ. */
#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		intmax_t a_ = (intmax_t)(a), b_ = (intmax_t)(b);                                   \
		if (a_ != b_) {                                                                    \
			printf("# %s:%d: %s = %" PRIdMAX ", expected %s = %" PRIdMAX "\n",         \
				__FILE__, __LINE__, #a, a_, #b, b_);                               \
			harness_failed = 1;                                                        \
			return;                                                                    \
		}                                                                                  \
	} while (0)

#define SKIP(why)                                                                                  \
	do {                                                                                       \
		harness_skipped = (why);                                                           \
		return;                                                                            \
	} while (0)

/* The seed of this run: RFTP_SEED if set, else from the clock; printed once when first asked for.
 */
static inline uint64_t harness_seed(void)
{
	static uint64_t seed;
	const char *s = getenv("RFTP_SEED");

	if (seed)
		return seed;
	if (s)
		seed = strtoull(s, NULL, 0);
	if (!seed) {
		struct timespec ts;
		clock_gettime(CLOCK_REALTIME, &ts);
		seed = ((uint64_t)ts.tv_sec << 20) ^ (uint64_t)ts.tv_nsec;
	}
	printf("# seed %" PRIu64 " (repeat with RFTP_SEED=%" PRIu64 ")\n", seed, seed);
	return seed;
}

/* splitmix64: the next pseudo-random number of *state. */
static inline uint64_t harness_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline int harness_run(const struct harness_case *cases, int argc, char **argv)
{
	int number = 0, bad = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (const struct harness_case *c = cases; c->name; c++) {
		bool wanted = argc < 2;
		for (int i = 1; i < argc; i++)
			wanted |= !strcmp(argv[i], c->name);
		if (!wanted)
			continue;
		harness_failed = 0;
		harness_skipped = NULL;
		c->run();
		number++;
		if (harness_failed)
			printf("not ok %d - %s\n", number, c->name);
		else if (harness_skipped)
			printf("ok %d - %s # SKIP %s\n", number, c->name, harness_skipped);
		else
			printf("ok %d - %s\n", number, c->name);
		bad += harness_failed;
	}
	printf("1..%d\n", number);
	return bad ? 1 : 0;
}

#define HARNESS_MAIN(...)                                                                          \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		static const struct harness_case cases[] = {__VA_ARGS__, {NULL, NULL}};            \
		return harness_run(cases, argc, argv);                                             \
	}

#endif
