/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/pool: block/pool.
 */
#include "block/pool.h"
#include "tests/aborts.h"
#include "tests/harness.h"

enum { COUNT = 5, BYTES = BLOCK_BYTES_MIN };

static uint8_t *memory;

static bool pool_ready(struct pool **p)
{
	if (!memory)
		memory = aligned_alloc(BLOCK_ALIGN, pool_bytes(COUNT, BYTES));
	return memory && pool_new(memory, COUNT, BYTES, p) == 0;
}

static void blocks_fill_the_memory_without_overlap(void)
{
	struct pool *p;

	CHECK(pool_ready(&p));
	CHECK_EQ(pool_stride(BYTES), BLOCK_ALIGN + BYTES);
	CHECK_EQ(pool_stride(BYTES + 1), BYTES + 2 * BLOCK_ALIGN);
	CHECK_EQ(pool_bytes(COUNT, BYTES), (size_t)COUNT * (BLOCK_ALIGN + BYTES));
	CHECK_EQ(pool_bytes(UINT32_MAX, BLOCK_BYTES_MAX),
		(size_t)UINT32_MAX * (BLOCK_ALIGN + BLOCK_BYTES_MAX));
	CHECK_EQ(pool_count(p), COUNT);
	CHECK_EQ(pool_free_count(p), COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct block *b = pool_at(p, i);

		CHECK(b);
		CHECK_EQ(b->index, i);
		CHECK_EQ(b->capacity, BYTES);
		CHECK_EQ(b->state, BLOCK_FREE);
		CHECK_EQ((uintptr_t)b->payload % BLOCK_ALIGN, 0);
		CHECK_EQ(b->payload - memory, i * (size_t)pool_stride(BYTES) + BLOCK_ALIGN);
	}
	pool_free(p);
	pool_free(NULL);
}

static void an_index_from_a_peer_may_be_anything(void)
{
	struct pool *p;

	CHECK(pool_ready(&p));
	CHECK(pool_at(p, COUNT - 1));
	CHECK(!pool_at(p, COUNT));
	CHECK(!pool_at(p, UINT32_MAX));
	CHECK(!pool_at(p, 1ull << 32)); /* index 0, were it cut to 32 bits */
	CHECK(!pool_at(p, UINT64_MAX));
	pool_free(p);
}

static void refuses_impossible_shapes(void)
{
	struct pool *p;

	CHECK(pool_ready(&p));
	pool_free(p);
	CHECK_EQ(pool_new(memory, 0, BYTES, &p), -EINVAL);
	CHECK_EQ(pool_new(memory, 1, 0, &p), -EINVAL);
	CHECK_EQ(pool_new(memory, 1, BLOCK_BYTES_MIN - BLOCK_ALIGN, &p), -EINVAL);
	CHECK_EQ(pool_new(memory, 1, BLOCK_BYTES_MIN + 1, &p), -EINVAL);
	CHECK_EQ(pool_new(memory, 1, BLOCK_BYTES_MAX + BLOCK_ALIGN, &p), -EINVAL);
}

static void takes_each_once_and_the_warmest_first(void)
{
	struct pool *p;
	struct block *taken[COUNT];
	bool seen[COUNT] = {false};

	CHECK(pool_ready(&p));
	for (uint32_t i = 0; i < COUNT; i++) {
		taken[i] = pool_take(p, BLOCK_FILLING);
		CHECK(taken[i]);
		CHECK_EQ(taken[i]->state, BLOCK_FILLING);
		CHECK(!seen[taken[i]->index]);
		seen[taken[i]->index] = true;
		CHECK_EQ(pool_free_count(p), COUNT - 1 - i);
	}
	CHECK(!pool_take(p, BLOCK_GRANTED));
	pool_give(p, taken[3]);
	pool_give(p, taken[1]);
	CHECK(pool_take(p, BLOCK_GRANTED) == taken[1]);
	CHECK(pool_take(p, BLOCK_GRANTED) == taken[3]);
	CHECK(!pool_take(p, BLOCK_GRANTED));
	for (uint32_t i = 0; i < COUNT; i++)
		pool_give(p, taken[i]);
	CHECK_EQ(pool_free_count(p), COUNT);
	pool_free(p);
}

static void a_taken_block_remembers_nothing(void)
{
	struct pool *p;
	struct block *b;
	uint8_t *payload;
	uint32_t index;

	CHECK(pool_ready(&p));
	b = pool_take(p, BLOCK_FILLING);
	payload = b->payload;
	index = b->index;
	b->session = b->sequence = b->flags = b->length = 7;
	b->offset = b->leaf = 7;
	b->error = -EIO;
	b->owner = p;
	pool_give(p, b);
	CHECK(pool_take(p, BLOCK_GRANTED) == b);
	CHECK(b->payload == payload && b->index == index && b->capacity == BYTES);
	CHECK(!b->session && !b->sequence && !b->flags && !b->length && !b->offset && !b->leaf);
	CHECK(!b->error && !b->owner);
	pool_free(p);
}

/* ---- arrows ---- */

struct arrow {
	struct pool *pool;
	struct block *block;
	enum block_state to;
};

static void move(void *arg)
{
	struct arrow *a = arg;

	pool_move(a->block, a->to);
}

static void give(void *arg)
{
	struct arrow *a = arg;

	pool_give(a->pool, a->block);
}

static void take(void *arg)
{
	struct arrow *a = arg;

	pool_take(a->pool, a->to);
}

static const enum block_state ways[2][4] = {
	{BLOCK_FREE, BLOCK_FILLING, BLOCK_FILLED, BLOCK_SENDING},
	{BLOCK_FREE, BLOCK_GRANTED, BLOCK_LANDED, BLOCK_DRAINING},
};

static void both_ways_lead_round(void)
{
	struct pool *p;

	CHECK(pool_ready(&p));
	for (int way = 0; way < 2; way++) {
		struct block *b = pool_take(p, ways[way][1]);

		CHECK(b);
		for (int i = 2; i < 4; i++) {
			pool_move(b, ways[way][i]);
			CHECK_EQ(b->state, ways[way][i]);
		}
		pool_give(p, b);
		CHECK_EQ(b->state, BLOCK_FREE);
	}
	pool_free(p);
}

/* Each state against each: only the arrows of the two ways exist, the others meet an assert. */
static void every_other_arrow_aborts(void)
{
	struct pool *p;

	CHECK(pool_ready(&p));
	for (int way = 0; way < 2; way++)
		for (int at = 0; at < 4; at++)
			for (int to = BLOCK_FREE; to <= BLOCK_DRAINING; to++) {
				struct arrow a = {p, pool_at(p, 0), (enum block_state)to};
				bool exists = at >= 1 && at < 3 && ways[way][at + 1] == a.to;

				if (at > 0)
					a.block = pool_take(p, ways[way][1]);
				for (int i = 2; i <= at; i++)
					pool_move(a.block, ways[way][i]);
				if (aborts(move, &a) == exists)
					printf("# state %d > %d\n", (int)ways[way][at], (int)a.to);
				CHECK(aborts(move, &a) != exists);
				if (at > 0)
					pool_give(p, a.block); /* from any state */
				CHECK_EQ(pool_free_count(p), COUNT);
			}
	pool_free(p);
}

static void misuse_of_take_and_give_aborts(void)
{
	struct pool *p, *other;
	uint8_t *more = aligned_alloc(BLOCK_ALIGN, pool_bytes(1, BYTES));
	struct arrow a;

	CHECK(more);
	CHECK(pool_ready(&p));
	CHECK_EQ(pool_new(more, 1, BYTES, &other), 0);
	a = (struct arrow){p, pool_at(p, 0), BLOCK_FREE};
	CHECK(aborts(give, &a)); /* it is free */
	for (int to = BLOCK_FREE; to <= BLOCK_DRAINING; to++) {
		a.to = (enum block_state)to;
		CHECK_EQ(aborts(take, &a), to != BLOCK_FILLING && to != BLOCK_GRANTED);
	}
	a.block = pool_take(other, BLOCK_FILLING);
	CHECK(aborts(give, &a)); /* it is not of this pool */
	pool_free(p);
	pool_free(other);
	free(more);
}

HARNESS_MAIN({"blocks_fill_the_memory_without_overlap", blocks_fill_the_memory_without_overlap},
	{"an_index_from_a_peer_may_be_anything", an_index_from_a_peer_may_be_anything},
	{"refuses_impossible_shapes", refuses_impossible_shapes},
	{"takes_each_once_and_the_warmest_first", takes_each_once_and_the_warmest_first},
	{"a_taken_block_remembers_nothing", a_taken_block_remembers_nothing},
	{"both_ways_lead_round", both_ways_lead_round},
	{"every_other_arrow_aborts", every_other_arrow_aborts},
	{"misuse_of_take_and_give_aborts", misuse_of_take_and_give_aborts})
