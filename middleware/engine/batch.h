/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/batch: which blocks that are ready at the same time leave together: on one channel, with
 * one notice behind them.
 *
 * No block waits for one that is not there yet.  A batch is only so large that the sink is busy
 * with those before it: if three large blocks for three slots were one batch, nobody would have
 * anything to do meanwhile.
 */
#ifndef ENGINE_BATCH_H
#define ENGINE_BATCH_H

#include "engine/engine.h"

#define BATCH_BLOCKS_MAX 8u

struct batch_limit {
	unsigned blocks;
	uint32_t bytes; /* of payload; one block may have more */
};

struct batch_limit batch_limit_for(const struct engine_env *);
/* How many of the blocks, from the first on, make the next batch: at least one. */
unsigned batch_next(const struct batch_limit *, struct block *const *blocks, unsigned count);

#endif
