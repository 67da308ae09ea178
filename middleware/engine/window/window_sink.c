/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/window/window_sink: the sink's half of the engine `window`.
 */
#include "engine/window/window_engine.h"

#include "engine/notice.h"
#include "proto/status.h"
#include "proto/transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define POLL_BATCH 32
#define ACKS_SILENT_MAX 16u

static const struct send_count acks_every = {.requests = ACKS_SILENT_MAX, .blocks = UINT32_MAX};

/* A slot, as the sink sees it. */
enum slot_state {
	SLOT_OPEN,  /* the source may fill it */
	SLOT_FULL,  /* it holds a block */
	SLOT_EMPTY, /* emptied, without its ACK: one before it is full */
};

struct window_sink {
	struct engine_sink base;
	struct engine_env env;
	uint32_t depth;
	uint64_t head; /* of all slots ever used: the oldest without ACK */
	enum slot_state *slots;
	struct channel **came_by;
};

static struct window_sink *self(struct engine_sink *e)
{
	return (struct window_sink *)e;
}

static int land(struct window_sink *w, const struct fabric_wc *wc, struct block **done)
{
	uint32_t index;
	int err = notice_take(wc, w->env.imm, w->depth, &index, w->env.verdict);

	if (err)
		return err;
	if (w->slots[index] != SLOT_OPEN) {
		verdict_set(w->env.verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"the source filled slot %u, which has no ACK", index);
		return -EBADMSG;
	}
	w->slots[index] = SLOT_FULL;
	w->came_by[index] = fabric_chan_context(wc->chan);
	*done = pool_at(w->env.pool, index);
	assert((*done)->state == BLOCK_GRANTED);
	pool_move(*done, BLOCK_LANDED);
	return 1;
}

static int sink_poll(struct engine_sink *e, struct block **done, unsigned max)
{
	struct window_sink *w = self(e);
	struct fabric_wc wc[POLL_BATCH];
	int got = 0, n;

	/* until the queue is empty: the loop may go to sleep when nothing has landed */
	do {
		n = fabric_cq_poll(w->env.cq, wc, max < POLL_BATCH ? (int)max : POLL_BATCH);
		for (int i = 0; i < n; i++) {
			uint32_t sent;
			int err = channel_completion(&wc[i], &sent, w->env.verdict);

			if (err > 0 && CHANNEL_ID_WHAT(wc[i].id) == CHANNEL_NOTICE)
				err = land(w, &wc[i], done + got);
			else if (err > 0)
				err = 0;
			if (err < 0)
				return err;
			got += err;
		}
	} while (n > 0 && !got);
	return n < 0 ? n : got;
}

/* 1 it was posted; 0 the channel is full of others; -errno */
static int post_ack(struct window_sink *w, uint32_t index)
{
	struct channel *channel = w->came_by[index];
	struct block *b = pool_at(w->env.pool, index);
	bool inlined = fabric_chan_caps(channel->chan)->inline_max >= CHANNEL_NOTICE_BYTES;
	const struct send_count one = {.requests = 1};
	struct transfer_notice_msg msg = {.index = index};
	struct fabric_sge sge = {notice_pad(b), 0, w->env.mr};
	struct fabric_wr ack = {
		.id = CHANNEL_ID(CHANNEL_ACK, index),
		.opcode = FABRIC_SEND,
		.flags = inlined ? FABRIC_INLINE : 0,
		.sge = &sge,
		.sge_count = 1,
	};
	int err;

	if (!send_queue_room(&channel->queue))
		return 0;
	/* signalled before the queue can fill up with silent ones */
	if (send_queue_due(&channel->queue, one, acks_every) ||
		send_queue_room(&channel->queue) <= ACKS_SILENT_MAX)
		ack.flags |= FABRIC_SIGNALED;
	sge.bytes = (uint32_t)transfer_put_notice(&msg, sge.addr, CHANNEL_NOTICE_BYTES);
	err = channel_post(channel, &ack, 0);
	return err ? err : 1;
}

static int sink_flush(struct engine_sink *e)
{
	struct window_sink *w = self(e);
	struct block *b;

	/* GRANTED from here on for the pool; whether the source may write there, `slots` says */
	for (; (b = pool_take(w->env.pool, BLOCK_GRANTED)); e->idle++)
		w->slots[b->index] = SLOT_EMPTY;
	for (;;) {
		uint32_t index = (uint32_t)(w->head % w->depth);
		int got;

		if (w->slots[index] != SLOT_EMPTY)
			return 0;
		got = post_ack(w, index);
		if (got <= 0)
			return got;
		w->slots[index] = SLOT_OPEN;
		w->head++;
		e->idle--;
	}
}

static void sink_close(struct engine_sink *e)
{
	struct window_sink *w = self(e);

	free(w->slots);
	free(w->came_by);
	free(w);
}

static int sink_open(const struct engine_env *env, struct engine_sink **out)
{
	struct window_sink *w = calloc(1, sizeof *w);
	int err = -ENOMEM;

	if (!w)
		return err;
	w->base.ops = &window_sink_ops;
	w->base.common.wake_ns = ENGINE_NEVER;
	w->env = *env;
	w->depth = pool_count(env->pool);
	w->slots = calloc(w->depth, sizeof *w->slots); /* all OPEN */
	w->came_by = calloc(w->depth, sizeof *w->came_by);
	if (w->slots && w->came_by)
		err = window_post_receives(env, w->depth);
	if (err) {
		sink_close(&w->base);
		return err;
	}
	while (pool_take(env->pool, BLOCK_GRANTED))
		;
	*out = &w->base;
	return 0;
}

const struct engine_sink_ops window_sink_ops = {
	.access = FABRIC_REMOTE_WRITE,
	.open = sink_open,
	.poll = sink_poll,
	.flush = sink_flush,
	.again = engine_sink_never_again,
	.settle = engine_sink_is_settled,
	.close = sink_close,
};
