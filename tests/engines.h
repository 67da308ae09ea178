/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/engines.h: two engines, or one and a peer that the test plays, over two links of the loop
 * fabric.
 */
#ifndef TESTS_ENGINES_H
#define TESTS_ENGINES_H

#include "harness.h"
#include "property/pair.h"

#include "block/arena.h"
#include "engine/engine.h"
#include "fabric/loop/loop.h"
#include "proto/transfer.h"
#include "session/link.h"

#include <unistd.h>

#define RIG_BLOCK BLOCK_BYTES_MIN
#define RIG_MS 10000
#define RIG_QUEUE 256u

/* One side: memory, pool, engine. */
struct half {
	struct link *link;
	struct arena arena;
	struct fabric_mr *mr;
	struct pool *pool;
};

struct rig {
	struct pair pair;
	unsigned channels;
	struct half source, sink; /* the client's, the daemon's */
	struct engine_source *from;
	struct engine_sink *to;
	struct verdict why_from, why_to;
	struct block *queued[RIG_QUEUE]; /* filled, and not given to the engine yet */
	unsigned queued_count;
};

static void half_init(struct half *h, struct link *link, uint32_t blocks, unsigned access)
{
	size_t bytes = pool_bytes(blocks, RIG_BLOCK);
	int r = arena_init(&h->arena, bytes, false);

	h->link = link;
	if (!r)
		r = fabric_mr_new(
			control_pd(link_control(link)), h->arena.base, bytes, access, &h->mr);
	if (!r)
		r = pool_new(h->arena.base, blocks, RIG_BLOCK, &h->pool);
	assert(!r);
}

static void half_fini(struct half *h)
{
	fabric_mr_free(h->mr);
	pool_free(h->pool);
	arena_fini(&h->arena);
}

static void rig_open_on(struct rig *rig, const struct loop_faults *faults, unsigned channels,
	uint32_t source_blocks, uint32_t sink_blocks)
{
	struct fabric *fabric;
	int r = loop_open(faults, &fabric);

	memset(rig, 0, sizeof *rig);
	if (!r)
		r = pair_open(&rig->pair, fabric, channels);
	assert(!r);
	rig->channels = channels;
	half_init(&rig->source, rig->pair.client, source_blocks, FABRIC_LOCAL);
	half_init(&rig->sink, rig->pair.daemon, sink_blocks, FABRIC_REMOTE_WRITE);
	/* the daemon's side must have been sent to first */
	r = rail_wait_greeted(link_rail(rig->pair.daemon, 0), channels, RIG_MS, -1);
	assert(!r);
}

static inline void rig_open(
	struct rig *rig, unsigned channels, uint32_t source_blocks, uint32_t sink_blocks)
{
	struct loop_faults faults = {.seed = harness_seed()};

	rig_open_on(rig, &faults, channels, source_blocks, sink_blocks);
}

static void rig_close(struct rig *rig)
{
	if (rig->from)
		rig->from->ops->stop(rig->from);
	/* nothing lands in memory that is gone */
	link_close_channels(rig->source.link, 0);
	link_close_channels(rig->sink.link, 0);
	if (rig->from)
		rig->from->ops->close(rig->from);
	if (rig->to)
		rig->to->ops->close(rig->to);
	half_fini(&rig->source);
	half_fini(&rig->sink);
	pair_close(&rig->pair);
}

static struct engine_env rig_env(struct rig *rig, const struct half *h)
{
	return (struct engine_env){
		.pool = h->pool,
		.pd = control_pd(link_control(h->link)),
		.mr = h->mr,
		.cq = link_rail(h->link, 0)->cq,
		.channels = link_rail(h->link, 0)->channels,
		.channel_count = rig->channels,
		.notice = TRANSFER_NOTICE_BEHIND,
		.verdict = h == &rig->source ? &rig->why_from : &rig->why_to,
		.remote_depth = pool_count(rig->sink.pool),
		.remote_stride = pool_stride(RIG_BLOCK),
		.remote_base = fabric_mr_base(rig->sink.mr),
		.remote_key = fabric_mr_key(rig->sink.mr),
	};
}

static inline void rig_open_sink(struct rig *rig, const struct engine_ops *ops, bool imm)
{
	struct engine_env env = rig_env(rig, &rig->sink);
	int r;

	env.imm = imm;
	r = ops->sink->open(&env, &rig->to);
	assert(!r);
}

static inline void rig_open_source(struct rig *rig, const struct engine_ops *ops, bool imm)
{
	struct engine_env env = rig_env(rig, &rig->source);
	int r;

	env.imm = imm;
	if (rig->to && rig->to->status_mr) {
		env.remote_status_base = fabric_mr_base(rig->to->status_mr);
		env.remote_status_key = fabric_mr_key(rig->to->status_mr);
	}
	r = ops->source->open(&env, &rig->from);
	assert(!r);
}

/* Slots that the source's engine knows to be free; -errno. */
static inline int rig_room(const struct rig *rig)
{
	return rig->from->ops->room(rig->from, 0);
}

/* Fills one block with `mark`, for rig_leave to send: 1; 0 no block of ours, or no slot, is free;
 * -errno. */
static int rig_queue(struct rig *rig, uint8_t mark)
{
	int room = rig_room(rig);
	struct block *b;

	if (room <= (int)rig->queued_count)
		return rig->queued_count ? 0 : rig->from->ops->room(rig->from, 1);
	b = pool_take(rig->source.pool, BLOCK_FILLING);
	if (!b)
		return 0;
	memset(b->payload - BLOCK_PREFIX_BYTES, mark, BLOCK_PREFIX_BYTES + RIG_BLOCK);
	b->length = RIG_BLOCK;
	pool_move(b, BLOCK_FILLED);
	assert(rig->queued_count < RIG_QUEUE);
	rig->queued[rig->queued_count++] = b;
	return 1;
}

/* Sends what is queued, at once. */
static inline int rig_leave(struct rig *rig)
{
	unsigned count = rig->queued_count;

	rig->queued_count = 0;
	return count ? rig->from->ops->send(rig->from, rig->queued, count) : 0;
}

/* As rig_queue, and it leaves. */
static inline int rig_send(struct rig *rig, uint8_t mark)
{
	int sent = rig_queue(rig, mark), r = rig_leave(rig);

	return r ? r : sent;
}

/* Sends the blocks from *sent on to `most`, marked by their numbers, while there is room.  0 or
 * -errno. */
static inline int rig_send_to(struct rig *rig, unsigned *sent, unsigned most)
{
	int r = 1;

	while (*sent < most && r > 0) {
		r = rig_send(rig, (uint8_t)*sent);
		*sent += r > 0;
	}
	return r < 0 ? r : 0;
}

/* Takes the source's completions in: 0 or -errno. */
static int rig_poll_source(struct rig *rig)
{
	struct block *done[32];
	int n = rig->from->ops->poll(rig->from, done, 32);

	for (int i = 0; i < n; i++)
		pool_give(rig->source.pool, done[i]);
	return n < 0 ? n : 0;
}

/* Waits for one landed block of the sink.  0 or -errno. */
static int rig_land(struct rig *rig, struct block **b)
{
	static struct block *queued[32];
	static int count;
	int waited = 0;

	/* blocks of another case */
	if (b == NULL)
		return count = 0;
	while (!count) {
		count = rig->to->ops->poll(rig->to, queued, 32);
		if (count < 0) {
			int r = count;

			count = 0;
			return r;
		}
		if (!count) {
			usleep(50);
			if (++waited > RIG_MS * 20)
				return -ETIMEDOUT;
		}
	}
	*b = queued[0];
	memmove(queued, queued + 1, (size_t)--count * sizeof *queued);
	return 0;
}

/* Whether the block holds `mark` from end to end. */
static bool rig_holds(const struct block *b, uint8_t mark)
{
	const uint8_t *at = b->payload - BLOCK_PREFIX_BYTES;

	for (size_t i = 0; i < BLOCK_PREFIX_BYTES + RIG_BLOCK; i++)
		if (at[i] != mark)
			return false;
	return true;
}

/* The sink has emptied it. */
static int rig_drain(struct rig *rig, struct block *b)
{
	if (b->state == BLOCK_LANDED)
		pool_move(b, BLOCK_DRAINING);
	pool_give(rig->sink.pool, b);
	return engine_sink_flush(rig->to);
}

/* Sink: what poll says once it says something: blocks or -errno. */
static inline int rig_poll_sink_until(struct rig *rig)
{
	struct block *done[32];
	int n = 0;

	for (int i = 0; i < RIG_MS * 20 && !n; i++) {
		n = rig->to->ops->poll(rig->to, done, 32);
		if (!n)
			usleep(50);
	}
	return n;
}

/* A request of the test's own on a channel of the client's.  0 or -errno. */
static inline int rig_post(
	struct rig *rig, unsigned channel, struct fabric_wr *wr, void *data, uint32_t bytes)
{
	struct fabric_sge sge = {data, bytes, NULL};

	wr->id = CHANNEL_ID(CHANNEL_ACK, 0);
	wr->flags = FABRIC_SIGNALED | FABRIC_INLINE;
	wr->sge = &sge;
	wr->sge_count = 1;
	return channel_post(link_rail(rig->source.link, 0)->channels[channel], wr, 0);
}

#endif
