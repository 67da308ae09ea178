/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gather: blocks that a source was given at the same time, and that are to leave together:
 * on one lane, with one word to the sink behind them.
 *
 * No block waits for one that is not there yet, and only so many for each other that the sink is
 * busy with those before them: while three large blocks were gathered for three slots, nobody would
 * do anything.
 */
#ifndef ENGINE_GATHER_H
#define ENGINE_GATHER_H

#include "engine/engine.h"

#define GATHER_MAX 8u

struct gather {
	unsigned most;       /* blocks, */
	uint32_t most_bytes; /* and bytes of payload; one block may have more */
	struct lane *lane;   /* the user's, with the first block */
	struct block *blocks[GATHER_MAX];
	uint32_t indices[GATHER_MAX]; /* of the sink's */
	unsigned count;
	uint32_t bytes;
};

void gather_init(struct gather *, const struct engine_env *);
/* Whether a block may wait for those that are in it to leave, and leave with them. */
bool gather_takes(const struct gather *, const struct block *);
void gather_add(struct gather *, struct block *, uint32_t index);
/* They have left. */
void gather_clear(struct gather *);

#endif
