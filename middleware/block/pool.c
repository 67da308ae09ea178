/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/pool: owns the struct blocks of one end of a transfer and the stack of free ones.
 */
#include "block/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct pool {
	uint32_t count, block_bytes, free_count;
	struct block **free; /* a stack: [free_count - 1] was freed last */
	struct block blocks[];
};

/* The one state that each may move to; those that end in FREE move there by pool_give only. */
static const enum block_state pool_arrows[] = {
	[BLOCK_FREE] = BLOCK_FREE,
	[BLOCK_FILLING] = BLOCK_FILLED,
	[BLOCK_FILLED] = BLOCK_SENDING,
	[BLOCK_SENDING] = BLOCK_FREE,
	[BLOCK_GRANTED] = BLOCK_LANDED,
	[BLOCK_LANDED] = BLOCK_DRAINING,
	[BLOCK_DRAINING] = BLOCK_FREE,
};

#define POOL_STATES (sizeof pool_arrows / sizeof pool_arrows[0])

uint32_t pool_stride(uint32_t block_bytes)
{
	return BLOCK_ALIGN + ((block_bytes + BLOCK_ALIGN - 1) & ~(BLOCK_ALIGN - 1));
}

size_t pool_bytes(uint32_t count, uint32_t block_bytes)
{
	return (size_t)count * pool_stride(block_bytes);
}

int pool_new(void *memory, uint32_t count, uint32_t block_bytes, struct pool **out)
{
	struct pool *p;

	assert((uintptr_t)memory % BLOCK_ALIGN == 0);
	if (!count || block_bytes % BLOCK_ALIGN || block_bytes < BLOCK_BYTES_MIN ||
		block_bytes > BLOCK_BYTES_MAX)
		return -EINVAL;
	p = calloc(1, sizeof *p + count * sizeof p->blocks[0]);
	if (!p)
		return -ENOMEM;
	p->free = malloc(count * sizeof *p->free);
	if (!p->free) {
		free(p);
		return -ENOMEM;
	}
	p->count = p->free_count = count;
	p->block_bytes = block_bytes;
	for (uint32_t i = 0; i < count; i++) {
		struct block *b = &p->blocks[i];

		b->payload = (uint8_t *)memory + pool_bytes(i, block_bytes) + BLOCK_ALIGN;
		b->index = i;
		b->capacity = block_bytes;
		b->state = BLOCK_FREE;
		p->free[count - 1 - i] = b; /* the first one is taken first */
	}
	*out = p;
	return 0;
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	free(p->free);
	free(p);
}

uint32_t pool_count(const struct pool *p)
{
	return p->count;
}

uint32_t pool_free_count(const struct pool *p)
{
	return p->free_count;
}

struct block *pool_at(struct pool *p, uint64_t index)
{
	return index < p->count ? &p->blocks[index] : NULL;
}

/* Nothing of its last use may show in the next one. */
static void renew(struct block *b, enum block_state state)
{
	*b = (struct block){
		.payload = b->payload, .index = b->index, .capacity = b->capacity, .state = state};
}

struct block *pool_take(struct pool *p, enum block_state state)
{
	struct block *b;

	assert(state == BLOCK_FILLING || state == BLOCK_GRANTED);
	if (!p->free_count)
		return NULL;
	b = p->free[--p->free_count];
	assert(b->state == BLOCK_FREE);
	renew(b, state);
	return b;
}

void pool_regrant(struct block *b)
{
	assert(b->state == BLOCK_DRAINING);
	renew(b, BLOCK_GRANTED);
}

void pool_give(struct pool *p, struct block *b)
{
	assert(b >= p->blocks && b < p->blocks + p->count);
	assert(b->state != BLOCK_FREE);
	b->state = BLOCK_FREE;
	p->free[p->free_count++] = b;
}

void pool_move(struct block *b, enum block_state to)
{
	assert(b->state < POOL_STATES && to != BLOCK_FREE && pool_arrows[b->state] == to);
	b->state = to;
}
