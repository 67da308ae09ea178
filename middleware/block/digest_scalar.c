/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/digest_scalar: XXH3-64 without vectors.  A file of its own, as what xxhash.h defines is
 * compiled into it.
 */
#include "block/digest_impl.h"

#define XXH_INLINE_ALL
#define XXH_VECTOR 0 /* XXH_SCALAR, which has no name until xxhash.h is read */
#include <xxhash.h>

#if XXH_VECTOR != XXH_SCALAR
#error "this xxhash.h numbers its vectors differently"
#endif

uint64_t digest_leaf_scalar(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}
