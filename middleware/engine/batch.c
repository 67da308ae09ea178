/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/batch: see batch.h.
 */
#include "engine/batch.h"

#define SHARE 8u                /* of all that the sink has room for, */
#define LEAST_BYTES (16u << 10) /* but so little takes no time, */
#define MOST_BYTES (512u << 10) /* and so much has nothing left to gain */

struct batch_limit batch_limit_for(const struct engine_env *env)
{
	uint64_t share = (uint64_t)env->remote_depth * pool_at(env->pool, 0)->capacity / SHARE;
	/* with few slots and all in one the sink would wait for the source, then the source for the
	 * sink */
	uint32_t half = env->remote_depth / 2;

	return (struct batch_limit){
		.blocks = half < BATCH_BLOCKS_MAX ? half : BATCH_BLOCKS_MAX,
		.bytes = share < LEAST_BYTES  ? LEAST_BYTES
			 : share < MOST_BYTES ? (uint32_t)share
					      : MOST_BYTES,
	};
}

unsigned batch_next(const struct batch_limit *limit, struct block *const *blocks, unsigned count)
{
	uint64_t bytes = block_crossing(blocks[0]);
	unsigned n = 1;

	while (n < count && n < limit->blocks && bytes + block_crossing(blocks[n]) <= limit->bytes)
		bytes += block_crossing(blocks[n++]);
	return n;
}
