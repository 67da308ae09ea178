/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/digest_impl.h: between digest.c and digest_avx2.c only: one hash, compiled twice.
 */
#ifndef BLOCK_DIGEST_IMPL_H
#define BLOCK_DIGEST_IMPL_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define DIGEST_HAS_AVX2 1

/* XXH3-64 by AVX2 instructions; only where the CPU has them. */
uint64_t digest_leaf_avx2(const void *data, size_t bytes);
#endif

/* XXH3-64 by what every CPU of this architecture has. */
uint64_t digest_leaf_base(const void *data, size_t bytes);

#endif
