/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/credit_engine: RFTP's engine (Ren et al., section IV): parallel RDMA WRITEs into blocks that the
 * sink has granted, with proactive feedback.
 *
 * Source: spends a credit for each block: WRITE, and behind it in the same posting the notice.
 * Sink: each landed block earns the source up to two more grants; grants leave in batches.
 * With TRANSFER_NOTICE_CONTROL the notice is the paper's: a frame on the control channel after the local
 * completion, one round trip later; only for fabrics where that completion means that the data is there.
 */
#include "engine/engine.h"

#include "base/log.h"
#include "block/credit.h"
#include "engine/notice.h"
#include "engine/stripe.h"
#include "proto/transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define INITIAL_GRANT 16u /* blocks; the window doubles from here */
#define POLL_BATCH 32

struct credit_engine {
	struct engine base;
	struct engine_env env;
	bool source;
	/* source */
	struct credit_book *book;
	unsigned last_lane;
	bool asked; /* a REQUEST is out */
	uint32_t out; /* blocks without completion */
	/* sink */
	struct credit_meter meter;
	struct block **noticed; /* landed by frames of the control channel, not yielded yet */
	uint32_t noticed_count;
	uint32_t batch[TRANSFER_GRANTS_MAX];        /* a GRANT under construction */
	uint8_t frame[4 + 4 * TRANSFER_GRANTS_MAX]; /* the same, encoded */
};

static struct credit_engine *self(struct engine *e)
{
	return (struct credit_engine *)e;
}

static void close_engine(struct engine *e)
{
	if (e) {
		credit_book_free(self(e)->book);
		free(self(e)->noticed);
		free(e);
	}
}

/* ---- source ---- */

static int source_open(const struct engine_env *env, struct engine **out)
{
	struct credit_engine *c = calloc(1, sizeof *c);
	int r;

	if (!c)
		return -ENOMEM;
	c->base.ops = &engine_credit;
	c->env = *env;
	c->source = true;
	r = credit_book_new(env->remote_depth, &c->book);
	if (r) {
		free(c);
		return r;
	}
	*out = &c->base;
	return 0;
}

static unsigned room(struct engine *e)
{
	return credit_book_available(self(e)->book);
}

static int send_block(struct engine *e, struct block *b)
{
	struct credit_engine *c = self(e);
	struct lane *lane = stripe_pick(c->env.lanes, c->env.lane_count, &c->last_lane);
	struct transfer_notice_msg msg;
	int r = credit_book_spend(c->book, &msg.index);

	if (r)
		return r;
	pool_move(b, BLOCK_SENDING);
	lane->outstanding_bytes += b->length;
	c->out++;
	if (c->env.notice != TRANSFER_NOTICE_CONTROL)
		return notice_post(&c->env, lane, b, msg.index, true);
	/* remembered for the completion, when the notice is due */
	transfer_put_notice(&msg, notice_pad(b), LANE_NOTICE_BYTES);
	return notice_post_alone(&c->env, lane, b, msg.index);
}

static int source_completion(struct credit_engine *c, const struct fabric_wc *wc, struct block **done)
{
	struct lane *lane = fabric_chan_context(wc->chan);
	struct block *b;

	if (LANE_ID_WHAT(wc->id) != LANE_BEHIND)
		return 0;
	b = pool_at(c->env.pool, LANE_ID_NUMBER(wc->id));
	assert(b && b->state == BLOCK_SENDING);
	lane->outstanding_bytes -= b->length;
	c->out--;
	if (c->env.notice == TRANSFER_NOTICE_CONTROL) {
		int r = c->env.put(c->env.put_ctx, TRANSFER_NOTICE, notice_pad(b), 4);

		if (r)
			return r;
	}
	*done = b;
	return 1;
}

static int source_message(struct credit_engine *c, uint16_t type, const uint8_t *data, size_t len)
{
	struct transfer_grant grant;
	uint32_t indices[64];
	int r;

	if (type != TRANSFER_GRANT)
		return 0;
	if (transfer_get_grant(&grant, data, len))
		return -EBADMSG;
	for (unsigned i = 0; i < grant.count;) {
		unsigned n = 0;

		while (n < 64 && i < grant.count)
			indices[n++] = transfer_grant_index(&grant, i++);
		r = credit_book_add(c->book, indices, n);
		if (r) {
			log_error("the sink granted a block twice, or one that it does not have");
			return -EBADMSG;
		}
	}
	c->asked = false;
	return 1;
}

static int starving(struct engine *e)
{
	struct credit_engine *c = self(e);

	if (c->asked)
		return 0;
	c->asked = true;
	return c->env.put(c->env.put_ctx, TRANSFER_REQUEST, NULL, 0);
}

static int settle(struct engine *e)
{
	return !self(e)->out;
}

/* ---- sink ---- */

static int sink_open(const struct engine_env *env, struct engine **out)
{
	struct credit_engine *c = calloc(1, sizeof *c);
	uint32_t blocks = pool_count(env->pool);
	int r = 0;

	if (!c)
		return -ENOMEM;
	c->base.ops = &engine_credit;
	c->env = *env;
	c->noticed = calloc(blocks, sizeof(struct block *));
	if (!c->noticed)
		r = -ENOMEM;
	/* all notices can come by one channel, so each has receives for every block */
	for (unsigned i = 0; i < env->lane_count && !r; i++)
		r = lane_post_notices(env->lanes[i], blocks);
	if (r) {
		close_engine(&c->base);
		return r;
	}
	credit_meter_init(&c->meter, blocks, blocks < INITIAL_GRANT ? blocks : INITIAL_GRANT);
	*out = &c->base;
	return 0;
}

/* A notice named block `index`: it must be one that the source was granted. */
static int land(struct credit_engine *c, uint32_t index, struct block **done)
{
	struct block *b = pool_at(c->env.pool, index);

	if (!b || b->state != BLOCK_GRANTED) {
		log_error("the source filled block %u, which it was not granted", index);
		return -EBADMSG;
	}
	pool_move(b, BLOCK_LANDED);
	credit_meter_landed(&c->meter);
	*done = b;
	return 1;
}

static int sink_completion(struct credit_engine *c, const struct fabric_wc *wc, struct block **done)
{
	struct lane *lane = fabric_chan_context(wc->chan);
	struct transfer_notice_msg msg = {0};
	const uint8_t *bytes;
	int r;

	if (LANE_ID_WHAT(wc->id) != LANE_NOTICE)
		return 0; /* sends of an earlier transfer in the other direction */
	bytes = lane_take_notice(lane, LANE_ID_NUMBER(wc->id));
	if (c->env.notice != TRANSFER_NOTICE_BEHIND || c->env.imm != (wc->opcode == FABRIC_RECV_IMM) ||
		(!c->env.imm && transfer_get_notice(&msg, bytes, wc->bytes))) {
		log_error("data channel %u: not a notice: %u bytes", lane->number, wc->bytes);
		return -EBADMSG;
	}
	/* the receive is back before the block can be granted again: the source never meets RNR */
	r = lane_post_notices(lane, pool_count(c->env.pool));
	return r ? r : land(c, c->env.imm ? wc->imm : msg.index, done);
}

static int sink_message(struct credit_engine *c, uint16_t type, const uint8_t *data, size_t len)
{
	struct transfer_notice_msg msg;
	int r;

	switch (type) {
	case TRANSFER_REQUEST:
		credit_meter_asked(&c->meter);
		return 1;
	case TRANSFER_NOTICE:
		if (c->env.notice != TRANSFER_NOTICE_CONTROL || transfer_get_notice(&msg, data, len))
			return -EBADMSG;
		/* each is a block that was GRANTED, so there is a place for each */
		r = land(c, msg.index, &c->noticed[c->noticed_count]);
		if (r == 1)
			c->noticed_count++;
		return r;
	default:
		return 0;
	}
}

static int flush(struct engine *e)
{
	struct credit_engine *c = self(e);
	uint32_t grants;

	if (c->source)
		return 0;
	grants = credit_meter_grant(&c->meter, pool_free_count(c->env.pool));
	while (grants) {
		uint32_t count = 0;
		ssize_t len;
		int r;

		while (count < grants && count < TRANSFER_GRANTS_MAX)
			c->batch[count++] = pool_take(c->env.pool, BLOCK_GRANTED)->index;
		len = transfer_put_grant(c->batch, count, c->frame, sizeof c->frame);
		assert(len > 0);
		r = c->env.put(c->env.put_ctx, TRANSFER_GRANT, c->frame, (size_t)len);
		if (r)
			return r;
		grants -= count;
	}
	return 0;
}

/* ---- both ---- */

static int poll_engine(struct engine *e, struct block **done, unsigned max)
{
	struct credit_engine *c = self(e);
	struct fabric_wc wc[POLL_BATCH];
	int got = 0, n;

	if (c->noticed_count) {
		while (c->noticed_count && (unsigned)got < max)
			done[got++] = c->noticed[--c->noticed_count];
		return got;
	}
	/* until the queue is empty: the loop may go to sleep when there is nothing */
	do {
		n = fabric_cq_poll(c->env.cq, wc, max < POLL_BATCH ? (int)max : POLL_BATCH);
		for (int i = 0; i < n; i++) {
			int r = lane_completion(&wc[i]);

			if (r > 0 && c->source)
				r = source_completion(c, &wc[i], done + got);
			else if (r > 0)
				r = sink_completion(c, &wc[i], done + got);
			if (r < 0)
				return r;
			got += r;
		}
	} while (n > 0 && !got);
	return n < 0 ? n : got;
}

static int message(struct engine *e, uint16_t type, const uint8_t *data, size_t len)
{
	struct credit_engine *c = self(e);

	return c->source ? source_message(c, type, data, len) : sink_message(c, type, data, len);
}

const struct engine_ops engine_credit = {
	.name = "credit",
	.id = MESSAGE_ENGINE_CREDIT,
	.notices = true,
	.source_open = source_open,
	.sink_open = sink_open,
	.close = close_engine,
	.message = message,
	.poll = poll_engine,
	.flush = flush,
	.room = room,
	.send = send_block,
	.starving = starving,
	.settle = settle,
};
