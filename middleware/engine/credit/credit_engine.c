/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/credit/credit_engine: RFTP's engine (Ren et al., section IV): parallel RDMA WRITEs into
 * blocks that the sink has granted, with proactive feedback.
 *
 * Source: spends a credit for each block: WRITE, and behind it in the same posting the notice.
 * Blocks that are ready at the same time go together: their WRITEs, and one SEND that tells of all
 * and has their headers (TRANSFER_NOTICE_GATHERED).  Small blocks gain most: per block a packet, a
 * completion and a posting less, and payloads that begin and end with their pages. Sink: each
 * landed block earns the source up to two more grants; grants leave in batches. With
 * TRANSFER_NOTICE_CONTROL the notice is the paper's: a frame on the control channel after the local
 * completion, one round trip later; only for fabrics where that completion means that the data is
 * there.
 */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/log.h"
#include "block/credit.h"
#include "engine/flight.h"
#include "engine/gather.h"
#include "engine/notice.h"
#include "proto/transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INITIAL_GRANT 16u /* blocks; the window doubles from here */
#define POLL_BATCH 32
#define LAST_WORD_NS NS_PER_S /* the sink says why it closes a channel: on the control channel */
_Static_assert(GATHER_MAX == TRANSFER_GATHERED_MAX, "one notice has room for all that is gathered");

struct credit_engine {
	struct engine base;
	struct engine_env env;
	bool source;
	/* source */
	struct credit_book *book;
	struct flight *flight;
	struct gather gather;
	bool asked;         /* a REQUEST is out */
	uint64_t broken_ns; /* since when a lane is dead; 0: none is */
	/* sink */
	struct credit_meter meter;
	struct block **noticed; /* landed and not yielded yet: a ring */
	uint32_t noticed_head, noticed_count;
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
		flight_free(self(e)->flight);
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
	if (!r)
		r = flight_new(env, &c->flight);
	gather_init(&c->gather, env);
	if (r) {
		close_engine(&c->base);
		return r;
	}
	*out = &c->base;
	return 0;
}

static unsigned room(struct engine *e)
{
	return credit_book_available(self(e)->book);
}

/* Hands over to the fabric what has been gathered. */
static int post_gathered(struct credit_engine *c)
{
	struct gather *g = &c->gather;
	bool signal;
	int r;

	if (!g->count)
		return 0;
	signal = flight_signals(c->flight, g->lane, g->count);
	r = notice_post_gathered(&c->env, g->lane, g->blocks, g->indices, g->count, signal);
	for (unsigned i = 0; i < g->count && !r; i++)
		flight_add(c->flight, g->lane, g->blocks[i], signal && i + 1 == g->count);
	gather_clear(g);
	return r;
}

static int gather(struct credit_engine *c, struct block *b, uint32_t index)
{
	struct gather *g = &c->gather;
	int r = gather_takes(g, b) ? 0 : post_gathered(c);

	if (r)
		return r;
	if (!g->count)
		g->lane = flight_pick(c->flight);
	gather_add(g, b, index);
	return 0;
}

/* One block and its notice. */
static int send_alone(struct credit_engine *c, struct block *b, uint32_t index)
{
	struct lane *lane = flight_pick(c->flight);
	/* a notice on the control channel waits for its block's completion */
	bool signal =
		c->env.notice == TRANSFER_NOTICE_CONTROL || flight_signals(c->flight, lane, 1);
	int r;

	if (c->env.notice == TRANSFER_NOTICE_CONTROL) {
		struct transfer_notice_msg msg = {.index = index};

		transfer_put_notice(&msg, notice_pad(b), LANE_NOTICE_BYTES);
		r = notice_post_alone(&c->env, lane, b, index);
	} else {
		r = notice_post(&c->env, lane, b, index, signal);
	}
	if (!r)
		flight_add(c->flight, lane, b, signal);
	return r;
}

static int send_block(struct engine *e, struct block *b)
{
	struct credit_engine *c = self(e);
	uint32_t index;
	int r = credit_book_spend(c->book, &index);

	if (r)
		return r;
	return c->env.notice == TRANSFER_NOTICE_GATHERED ? gather(c, b, index)
							 : send_alone(c, b, index);
}

static int poll_source(struct credit_engine *c, struct block **done, unsigned max)
{
	static const struct flight_ops ops = {0};
	int got = flight_poll(c->flight, &ops, c, done, max);
	int r = 0;

	for (int i = 0; i < got && !r && c->env.notice == TRANSFER_NOTICE_CONTROL; i++)
		r = c->env.put(c->env.put_ctx, TRANSFER_NOTICE, notice_pad(done[i]), 4);
	return r ? r : got;
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

/* With nothing posted no completion tells of a lane that broke, and the sink may never notice. */
static int check_lanes(struct credit_engine *c)
{
	unsigned i = 0;

	while (i < c->env.lane_count && !c->env.lanes[i]->dead)
		i++;
	if (i == c->env.lane_count)
		return 0;
	if (!c->broken_ns)
		c->broken_ns = clock_now_ns();
	if (clock_now_ns() - c->broken_ns < LAST_WORD_NS)
		return 0;
	log_error("data channel %u: broken, or closed by the peer", i);
	return -ECONNRESET;
}

static int starving(struct engine *e)
{
	struct credit_engine *c = self(e);
	int r = check_lanes(c);

	if (r || c->asked)
		return r;
	c->asked = true;
	return c->env.put(c->env.put_ctx, TRANSFER_REQUEST, NULL, 0);
}

static int settle(struct engine *e)
{
	struct credit_engine *c = self(e);
	int r = post_gathered(c);

	return r ? r : flight_flush(c->flight);
}

static uint64_t lull(struct engine *e)
{
	return self(e)->source ? flight_lull_ns(self(e)->flight) : 0;
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

/* A notice named block `index`: it must be one that the source was granted.  `header`: of a
 * gathered notice, for the place where other notices have it; NULL: it is there. */
static int land(struct credit_engine *c, uint32_t index, const uint8_t *header)
{
	struct block *b = pool_at(c->env.pool, index);

	if (!b || b->state != BLOCK_GRANTED) {
		log_error("the source filled block %u, which it was not granted", index);
		return -EBADMSG;
	}
	if (header)
		memcpy(b->payload - BLOCK_PREFIX_BYTES, header, BLOCK_PREFIX_BYTES);
	pool_move(b, BLOCK_LANDED);
	credit_meter_landed(&c->meter);
	/* each is a block that was GRANTED, so there is a place for each */
	c->noticed[(c->noticed_head + c->noticed_count++) % pool_count(c->env.pool)] = b;
	return 0;
}

static int land_gathered(struct credit_engine *c, const uint8_t *bytes, uint32_t count)
{
	struct transfer_gathered notice;
	int r = transfer_get_gathered(&notice, bytes, count);

	for (unsigned i = 0; !r && i < notice.count; i++)
		r = land(c, transfer_gathered_index(&notice, i),
			transfer_gathered_header(&notice, i));
	return r;
}

static int land_single(struct credit_engine *c, const struct fabric_wc *wc, const uint8_t *bytes)
{
	struct transfer_notice_msg msg = {.index = wc->imm};

	if (c->env.imm != (wc->opcode == FABRIC_RECV_IMM) ||
		(!c->env.imm && transfer_get_notice(&msg, bytes, wc->bytes)))
		return -EBADMSG;
	return land(c, msg.index, NULL);
}

static int sink_completion(struct credit_engine *c, const struct fabric_wc *wc)
{
	struct lane *lane = fabric_chan_context(wc->chan);
	const uint8_t *bytes;
	int r = -EBADMSG;

	if (LANE_ID_WHAT(wc->id) != LANE_NOTICE)
		return 0; /* sends of an earlier transfer in the other direction */
	bytes = lane_take_notice(lane, LANE_ID_NUMBER(wc->id));
	if (c->env.notice == TRANSFER_NOTICE_GATHERED && wc->opcode == FABRIC_RECV)
		r = land_gathered(c, bytes, wc->bytes);
	else if (c->env.notice == TRANSFER_NOTICE_BEHIND)
		r = land_single(c, wc, bytes);
	if (r) {
		log_error("data channel %u: a notice that is not allowed: %u bytes", lane->number,
			wc->bytes);
		return r;
	}
	/* the receive is back before the blocks can be granted again: the source never meets RNR */
	return lane_post_notices(lane, pool_count(c->env.pool));
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
		if (c->env.notice != TRANSFER_NOTICE_CONTROL ||
			transfer_get_notice(&msg, data, len))
			return -EBADMSG;
		r = land(c, msg.index, NULL);
		return r ? r : 1;
	default:
		return 0;
	}
}

static int flush(struct engine *e)
{
	struct credit_engine *c = self(e);
	uint32_t grants;

	if (c->source)
		return post_gathered(c);
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

static int sink_take(struct credit_engine *c, struct block **done, unsigned max)
{
	unsigned got = 0;

	for (; got < max && c->noticed_count; c->noticed_count--) {
		done[got++] = c->noticed[c->noticed_head];
		c->noticed_head = (c->noticed_head + 1) % pool_count(c->env.pool);
	}
	return (int)got;
}

static int poll_sink(struct credit_engine *c, struct block **done, unsigned max)
{
	int got = sink_take(c, done, max);

	/* until the queue is empty: the loop may go to sleep when there is nothing */
	while (!got) {
		struct fabric_wc wc[POLL_BATCH];
		int n = fabric_cq_poll(c->env.cq, wc, POLL_BATCH);

		if (n <= 0)
			return n;
		for (int i = 0; i < n; i++) {
			int r = lane_completion(&wc[i]);

			if (r > 0)
				r = sink_completion(c, &wc[i]);
			if (r < 0)
				return r;
		}
		got = sink_take(c, done, max);
	}
	return got;
}

/* ---- both ---- */

static int poll_engine(struct engine *e, struct block **done, unsigned max)
{
	struct credit_engine *c = self(e);

	return c->source ? poll_source(c, done, max) : poll_sink(c, done, max);
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
	.lull_ns = lull,
};
