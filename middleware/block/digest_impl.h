/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/digest_impl.h: between the files of digest and its tests only: one hash, compiled several
 * ways.
 */
#ifndef BLOCK_DIGEST_IMPL_H
#define BLOCK_DIGEST_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define DIGEST_HAS_AVX2 1

/* XXH3-64 by AVX2 instructions; only where the CPU has them. */
uint64_t digest_leaf_avx2(const void *data, size_t bytes);
#endif

/* By the vectors that every CPU of this architecture has, if any. */
uint64_t digest_leaf_base(const void *data, size_t bytes);
/* By plain arithmetic. */
uint64_t digest_leaf_scalar(const void *data, size_t bytes);

struct digest_way {
	const char *name;
	uint64_t (*leaf)(const void *data, size_t bytes);
	bool (*here)(void); /* whether this CPU can */
};

extern const struct digest_way digest_ways[];
extern const size_t digest_way_count;

/* By trial, in some 50 us.  Not NULL. */
const struct digest_way *digest_way_fastest(void);

#endif
