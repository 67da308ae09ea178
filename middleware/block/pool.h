/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/pool: the blocks of one end of a transfer, and their states.
 *
 * It holds the states and the arrows between them (block.h); a wrong arrow is our bug and asserts.
 * Pure: no lock, no I/O; the transfer's thread owns it.  (Blocks are lent to workers through
 * queues; pool_move is then called by the owner of the block.)
 */
#ifndef BLOCK_POOL_H
#define BLOCK_POOL_H

#include "block/block.h"

#include <stddef.h>

struct pool;

/* Bytes of memory that `count` blocks of `block_bytes` payload need. */
size_t pool_bytes(uint32_t count, uint32_t block_bytes);
uint32_t pool_stride(uint32_t block_bytes);

/*
 * Cuts `memory` (BLOCK_ALIGN-aligned, pool_bytes long, outlives the pool) into blocks, all FREE.
 * block_bytes: a multiple of BLOCK_ALIGN within BLOCK_BYTES_MIN..MAX.  0, -EINVAL, -ENOMEM.
 */
int pool_new(void *memory, uint32_t count, uint32_t block_bytes, struct pool **out);
void pool_free(struct pool *);

uint32_t pool_count(const struct pool *);
uint32_t pool_free_count(const struct pool *);
/* The block of an index from a peer: NULL when there is none of that number. */
struct block *pool_at(struct pool *, uint64_t index);

/* A FREE block, moved to `state` (FILLING or GRANTED); NULL when none is free.  Most recently freed
 * first: its memory is warm in the cache. */
struct block *pool_take(struct pool *, enum block_state state);
/* A DRAINING block that is to land once more, in the same place: GRANTED. */
void pool_regrant(struct block *);
/* Back to FREE, from any state (an aborted transfer frees what was on its way). */
void pool_give(struct pool *, struct block *);
/* One arrow along the state machine; asserts that the arrow exists.  Those from FREE are
 * pool_take's and those to FREE pool_give's. */
void pool_move(struct block *, enum block_state to);

#endif
