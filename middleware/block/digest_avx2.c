/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/digest_avx2: XXH3-64 with 32-byte vectors.  A file of its own, for the instruction set is
 * chosen for all that xxhash.h defines; a package built for any x86-64 then still runs at the speed
 * of the CPU it meets.
 */
#include "block/digest_impl.h"

#ifdef DIGEST_HAS_AVX2

/* before the pragma: what these define is for every CPU */
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define XXH_INLINE_ALL
#define XXH_VECTOR 2 /* XXH_AVX2, which has no name until xxhash.h is read */
#include <xxhash.h>

#if XXH_VECTOR != XXH_AVX2
#error "this xxhash.h numbers its vectors differently"
#endif

uint64_t digest_leaf_avx2(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
