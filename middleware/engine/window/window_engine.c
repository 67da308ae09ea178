/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/window/window_engine: the sliding window that the status-byte paper compares with (its
 * section 2.3, after Tu et al.).
 *
 * The slots of the sink are a ring: filled in order, and given back in order, each by an ACK: a
 * SEND of its number from the sink, on the data channel on which the block came.  A slot that is
 * still in use holds up all behind it; that is the paper's point.
 *
 * At the source a thread takes the ACKs, as in the paper, when the loop has no time for it
 * (engine/window/window_acks); the loop sees where the window ends, and takes the completions of
 * what it has sent.  The sink has nothing to wait for beside the blocks, and no thread.
 *
 * Each side keeps receives for as many slots as there are on each lane, and posts one again before
 * the other may use it: no SEND finds none.
 */
#include "engine/engine.h"

#include "base/log.h"
#include "engine/flight.h"
#include "engine/notice.h"
#include "engine/window/window_acks.h"
#include "proto/transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define POLL_BATCH 32
#define ACKS_SILENT_MAX 16u

/* A slot, as the sink sees it. */
enum slot_state {
	SLOT_OPEN,  /* the source may fill it */
	SLOT_FULL,  /* it holds a block */
	SLOT_EMPTY, /* emptied, without its ACK: one before it is full */
};

struct window_engine {
	struct engine base;
	struct engine_env env;
	uint32_t depth;
	/* source */
	struct flight *flight;
	struct acks *acks;
	uint64_t tail; /* slots ever used: the next to fill */
	/* sink */
	uint64_t head; /* of all slots ever used: the oldest without ACK */
	enum slot_state *slots;
	struct lane **came_by;
	uint32_t *silent; /* by lane: ACKs since the last signalled one */
};

static struct window_engine *self(struct engine *e)
{
	return (struct window_engine *)e;
}

static void source_stop(struct engine *e)
{
	struct window_engine *w = self(e);
	struct fabric_wc wc;

	if (!w->acks)
		return;
	acks_stop(w->acks);
	/* a completion that is nobody's still says what the lane's send queue holds */
	while (acks_take(w->acks, &wc, 1) > 0)
		if (wc.status == FABRIC_OK)
			lane_completion(&wc);
}

static void close_engine(struct engine *e)
{
	struct window_engine *w = self(e);

	source_stop(e);
	acks_free(w->acks);
	flight_free(w->flight);
	free(w->slots);
	free(w->came_by);
	free(w->silent);
	free(w);
}

static int open_engine(const struct engine_env *env, const struct engine_ops *ops, uint32_t depth,
	struct window_engine **out)
{
	struct window_engine *w = calloc(1, sizeof *w);
	int r = 0;

	if (!w)
		return -ENOMEM;
	w->base.ops = ops;
	w->env = *env;
	w->depth = depth;
	/* all notices, or ACKs, can come by one lane */
	for (unsigned i = 0; i < env->lane_count && !r; i++)
		r = lane_post_notices(env->lanes[i], depth);
	if (r) {
		free(w);
		return r;
	}
	*out = w;
	return 0;
}

static int message(struct engine *e, uint16_t type, const uint8_t *data, size_t len)
{
	(void)e;
	(void)type;
	(void)data;
	(void)len;
	return 0;
}

/* ---- source ---- */

static unsigned room(struct engine *e)
{
	struct window_engine *w = self(e);

	return w->depth - (unsigned)(w->tail - acks_head(w->acks));
}

static int starving(struct engine *e)
{
	(void)e;
	return 0;
}

static int source_flush(struct engine *e)
{
	(void)e;
	return 0;
}

static int send_block(struct engine *e, struct block *b)
{
	struct window_engine *w = self(e);
	struct lane *lane = flight_pick(w->flight);
	bool signal = flight_signals(w->flight, lane, 1);
	int r;

	if (!room(e))
		return -EAGAIN;
	/* the ACK can be there before we are back */
	acks_expect(w->acks, w->tail + 1);
	r = notice_post(&w->env, lane, b, (uint32_t)(w->tail % w->depth), signal);
	if (r)
		return r;
	w->tail++;
	flight_add(w->flight, lane, b, signal);
	return 0;
}

static int take_behind_acks(void *ctx, struct fabric_wc *wc, int max)
{
	struct window_engine *w = ctx;

	return acks_take(w->acks, wc, (unsigned)max);
}

static int poll_source(struct engine *e, struct block **done, unsigned max)
{
	static const struct flight_ops ops = {.take = take_behind_acks};
	struct window_engine *w = self(e);

	return flight_poll(w->flight, &ops, w, done, max);
}

static int source_settle(struct engine *e)
{
	struct window_engine *w = self(e);
	int r = flight_flush(w->flight);

	if (r < 0)
		return r;
	return r && acks_head(w->acks) == w->tail;
}

static const struct engine_ops source_ops = {
	.name = "window",
	.id = MESSAGE_ENGINE_WINDOW,
	.notices = true,
	.close = close_engine,
	.message = message,
	.poll = poll_source,
	.flush = source_flush,
	.room = room,
	.send = send_block,
	.starving = starving,
	.settle = source_settle,
	.stop = source_stop,
};

static int source_open(const struct engine_env *env, struct engine **out)
{
	struct window_engine *w;
	int r = open_engine(env, &source_ops, env->remote_depth, &w);

	if (r)
		return r;
	r = flight_new(env, &w->flight);
	if (!r)
		r = acks_start(env, w->depth, &w->acks);
	if (r) {
		close_engine(&w->base);
		return r;
	}
	*out = &w->base;
	return 0;
}

/* ---- sink ---- */

static int land(struct window_engine *w, const struct fabric_wc *wc, struct block **done)
{
	uint32_t index;
	int r = notice_take(wc, w->env.imm, w->depth, &index);

	if (r)
		return r;
	if (w->slots[index] != SLOT_OPEN) {
		log_error("the source filled slot %u, which has no ACK", index);
		return -EBADMSG;
	}
	w->slots[index] = SLOT_FULL;
	w->came_by[index] = fabric_chan_context(wc->chan);
	*done = pool_at(w->env.pool, index);
	assert((*done)->state == BLOCK_GRANTED);
	pool_move(*done, BLOCK_LANDED);
	return 1;
}

static int poll_sink(struct engine *e, struct block **done, unsigned max)
{
	struct window_engine *w = self(e);
	struct fabric_wc wc[POLL_BATCH];
	int got = 0, n;

	/* until the queue is empty: the loop may go to sleep when nothing has landed */
	do {
		n = fabric_cq_poll(w->env.cq, wc, max < POLL_BATCH ? (int)max : POLL_BATCH);
		for (int i = 0; i < n; i++) {
			int r = lane_completion(&wc[i]);

			if (r > 0 && LANE_ID_WHAT(wc[i].id) == LANE_NOTICE)
				r = land(w, &wc[i], done + got);
			else if (r > 0)
				r = 0;
			if (r < 0)
				return r;
			got += r;
		}
	} while (n > 0 && !got);
	return n < 0 ? n : got;
}

/* 1 it was posted; 0 the lane is full of others; -errno */
static int post_ack(struct window_engine *w, uint32_t index)
{
	struct lane *lane = w->came_by[index];
	struct block *b = pool_at(w->env.pool, index);
	bool inlined = fabric_chan_caps(lane->chan)->inline_max >= LANE_NOTICE_BYTES;
	struct transfer_notice_msg msg = {.index = index};
	struct fabric_sge sge = {notice_pad(b), 0, w->env.mr};
	struct fabric_wr ack = {
		.id = LANE_ID(LANE_ACK, index),
		.opcode = FABRIC_SEND,
		.flags = inlined ? FABRIC_INLINE : 0,
		.sge = &sge,
		.sge_count = 1,
	};
	int r;

	if (!lane_send_room(lane))
		return 0;
	/* signalled before the queue can fill up with silent ones */
	if (++w->silent[lane->number] >= ACKS_SILENT_MAX ||
		lane_send_room(lane) <= ACKS_SILENT_MAX) {
		ack.flags |= FABRIC_SIGNALED;
		w->silent[lane->number] = 0;
	}
	sge.bytes = (uint32_t)transfer_put_notice(&msg, sge.addr, LANE_NOTICE_BYTES);
	r = lane_post(lane, &ack);
	return r ? r : 1;
}

static int sink_flush(struct engine *e)
{
	struct window_engine *w = self(e);
	struct block *b;

	/* GRANTED from here on for the pool; whether the source may write there, `slots` says */
	while ((b = pool_take(w->env.pool, BLOCK_GRANTED)))
		w->slots[b->index] = SLOT_EMPTY;
	for (;;) {
		uint32_t index = (uint32_t)(w->head % w->depth);
		int r;

		if (w->slots[index] != SLOT_EMPTY)
			return 0;
		r = post_ack(w, index);
		if (r <= 0)
			return r;
		w->slots[index] = SLOT_OPEN;
		w->head++;
	}
}

/* The source waits for all ACKs before it says that it is done. */
static int sink_settle(struct engine *e)
{
	(void)e;
	return 1;
}

static const struct engine_ops sink_ops = {
	.name = "window",
	.id = MESSAGE_ENGINE_WINDOW,
	.notices = true,
	.close = close_engine,
	.message = message,
	.poll = poll_sink,
	.flush = sink_flush,
	.settle = sink_settle,
};

static int sink_open(const struct engine_env *env, struct engine **out)
{
	struct window_engine *w;
	int r = open_engine(env, &sink_ops, pool_count(env->pool), &w);

	if (r)
		return r;
	w->slots = calloc(w->depth, sizeof *w->slots); /* all OPEN */
	w->came_by = calloc(w->depth, sizeof *w->came_by);
	w->silent = calloc(env->lane_count, sizeof *w->silent);
	if (!w->slots || !w->came_by || !w->silent) {
		close_engine(&w->base);
		return -ENOMEM;
	}
	while (pool_take(env->pool, BLOCK_GRANTED))
		;
	*out = &w->base;
	return 0;
}

const struct engine_ops engine_window = {
	.name = "window",
	.id = MESSAGE_ENGINE_WINDOW,
	.notices = true,
	.source_open = source_open,
	.sink_open = sink_open,
};
