/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gather: see gather.h.
 */
#include "engine/gather.h"

#define SHARE 8u                /* of all that the sink has room for, */
#define LEAST_BYTES (16u << 10) /* but so little takes no time, */
#define MOST_BYTES (512u << 10) /* and so much has nothing left to gain */

void gather_init(struct gather *g, const struct engine_env *env)
{
	uint64_t share = (uint64_t)env->remote_depth * pool_at(env->pool, 0)->capacity / SHARE;
	/* with few slots and all in one the sink would wait for the source, then the source for the
	 * sink */
	uint32_t half = env->remote_depth / 2;

	*g = (struct gather){
		.most = half < GATHER_MAX ? half : GATHER_MAX,
		.most_bytes = share < LEAST_BYTES  ? LEAST_BYTES
			      : share < MOST_BYTES ? (uint32_t)share
						   : MOST_BYTES,
	};
}

bool gather_takes(const struct gather *g, const struct block *b)
{
	return !g->count || (g->count < g->most && g->bytes + b->length <= g->most_bytes);
}

void gather_add(struct gather *g, struct block *b, uint32_t index)
{
	g->blocks[g->count] = b;
	g->indices[g->count++] = index;
	g->bytes += b->length;
}

void gather_clear(struct gather *g)
{
	g->count = g->bytes = 0;
}
