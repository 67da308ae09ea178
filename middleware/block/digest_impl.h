/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/digest_impl.h: between the files of digest and its tests only: XXH3-64, two ways.
 */
#ifndef BLOCK_DIGEST_IMPL_H
#define BLOCK_DIGEST_IMPL_H

#include <stddef.h>
#include <stdint.h>

/* By libxxhash, which takes the widest vectors that the CPU has. */
uint64_t digest_leaf_library(const void *data, size_t bytes);
/* By plain arithmetic: of few bytes, and where vectors are slow. */
uint64_t digest_leaf_scalar(const void *data, size_t bytes);

#endif
