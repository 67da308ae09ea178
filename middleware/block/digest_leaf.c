/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/digest_leaf: the hash of a block, by the way that is faster where this runs.
 *
 * Which way that is cannot be read off the CPU's features: an emulated CPU has vectors like any
 * other, and takes half as long again for them as for plain arithmetic.  So both are tried, once.
 */
#include "block/digest.h"

#include "base/clock.h"
#include "block/digest_impl.h"

#include <stdatomic.h>

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h> /* XXH3_64bits looks at the CPU then */
#else
#include <xxhash.h>
#endif

#define TRIAL_BYTES 8192u /* of a long input, in the first cache */
#define TRIALS 8          /* the best of them: the others waited for a CPU, or for a translation */

uint64_t digest_leaf_library(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}

typedef uint64_t digest_leaf_function(const void *data, size_t bytes);

static uint64_t trial_ns(digest_leaf_function *way, const void *data)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIALS; i++) {
		volatile uint64_t kept;
		uint64_t started = clock_now_ns(), took;

		kept = way(data, TRIAL_BYTES);
		(void)kept;
		took = clock_now_ns() - started;
		if (took < best)
			best = took;
	}
	return best;
}

/* The faster of the two here, by trial, in some 50 us. */
static digest_leaf_function *digest_way_fastest(void)
{
	uint8_t data[TRIAL_BYTES] = {0};

	return trial_ns(digest_leaf_library, data) <= trial_ns(digest_leaf_scalar, data)
		       ? digest_leaf_library
		       : digest_leaf_scalar;
}

uint64_t digest_leaf(const void *data, size_t bytes)
{
	/* A property of the machine, found out once; whoever finds it out meanwhile finds one as
	 * good. */
	static _Atomic(digest_leaf_function *) chosen;
	digest_leaf_function *way = atomic_load_explicit(&chosen, memory_order_relaxed);

	if (!way) {
		way = digest_way_fastest();
		atomic_store_explicit(&chosen, way, memory_order_relaxed);
	}
	return way(data, bytes);
}
