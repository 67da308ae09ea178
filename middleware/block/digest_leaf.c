/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/digest_leaf: the hash of a block, by the way that is fastest where this runs.
 *
 * Which way that is cannot be read off the CPU's features: an emulated CPU has AVX2 like any other,
 * and takes three times as long for it as for plain 64-bit arithmetic.  So the ways are tried,
 * once.
 */
#include "block/digest.h"

#include "base/clock.h"
#include "block/digest_impl.h"

#include <stdatomic.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TRIAL_BYTES 8192u /* of a long input, in the first cache */
#define TRIALS 8          /* the best of them: the others waited for a CPU, or for a translation */

uint64_t digest_leaf_base(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}

#ifdef DIGEST_HAS_AVX2
static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}
#endif

static bool always(void)
{
	return true;
}

const struct digest_way digest_ways[] = {
#ifdef DIGEST_HAS_AVX2
	{"avx2", digest_leaf_avx2, has_avx2},
#endif
	{"base", digest_leaf_base, always},
	{"scalar", digest_leaf_scalar, always},
};
const size_t digest_way_count = sizeof digest_ways / sizeof digest_ways[0];

static uint64_t trial_ns(const struct digest_way *way, const void *data)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIALS; i++) {
		volatile uint64_t kept;
		uint64_t started = clock_now_ns(), took;

		kept = way->leaf(data, TRIAL_BYTES);
		(void)kept;
		took = clock_now_ns() - started;
		if (took < best)
			best = took;
	}
	return best;
}

const struct digest_way *digest_way_fastest(void)
{
	const struct digest_way *fastest = NULL;
	uint8_t data[TRIAL_BYTES] = {0};
	uint64_t best = UINT64_MAX;

	for (size_t i = 0; i < digest_way_count; i++) {
		uint64_t ns;

		if (!digest_ways[i].here())
			continue;
		ns = trial_ns(&digest_ways[i], data);
		if (ns < best) {
			best = ns;
			fastest = &digest_ways[i];
		}
	}
	return fastest;
}

uint64_t digest_leaf(const void *data, size_t bytes)
{
	/* A property of the machine, found out once; whoever finds it out meanwhile finds one as
	 * good. */
	static _Atomic(const struct digest_way *) chosen;
	const struct digest_way *way = atomic_load_explicit(&chosen, memory_order_relaxed);

	if (!way) {
		way = digest_way_fastest();
		atomic_store_explicit(&chosen, way, memory_order_relaxed);
	}
	return way->leaf(data, bytes);
}
