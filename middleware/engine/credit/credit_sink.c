/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/credit/credit_sink: the sink's half of the engine `credit`.
 */
#include "engine/credit/credit_engine.h"

#include "base/clock.h"
#include "block/credit.h"
#include "proto/status.h"
#include "proto/transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INITIAL_GRANT 16u /* blocks; the window doubles from here */
#define POLL_BATCH 32
#define HOLD_NS (NS_PER_S / 5) /* grants that are worth no message yet: no longer than this */

struct credit_sink {
	struct engine_sink base;
	struct engine_env env;
	struct credit_meter meter;
	uint64_t held_ns;       /* since when grants are held back; 0: none are */
	struct block **noticed; /* landed and not yielded yet: a ring */
	uint32_t noticed_head, noticed_count;
	uint32_t batch[TRANSFER_GRANTS_MAX];        /* a GRANT under construction */
	uint8_t frame[4 + 4 * TRANSFER_GRANTS_MAX]; /* the same, encoded */
};

static struct credit_sink *self(struct engine_sink *e)
{
	return (struct credit_sink *)e;
}

/* ---- blocks ---- */

/* A notice named block `index`: it must be one that the source was granted.  `header`: of a
 * gathered notice, for the place where other notices have it; NULL: it is there. */
static int land(struct credit_sink *c, uint32_t index, const uint8_t *header)
{
	struct block *b = pool_at(c->env.pool, index);

	if (!b || b->state != BLOCK_GRANTED) {
		verdict_set(c->env.verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"the source filled block %u without a grant, which is not allowed", index);
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

static int land_gathered(struct credit_sink *c, const uint8_t *bytes, uint32_t count)
{
	struct transfer_gathered notice;
	int err = transfer_get_gathered(&notice, bytes, count);

	for (unsigned i = 0; !err && i < notice.count; i++)
		err = land(c, transfer_gathered_index(&notice, i),
			transfer_gathered_header(&notice, i));
	return err;
}

static int land_single(struct credit_sink *c, const struct fabric_wc *wc, const uint8_t *bytes)
{
	struct transfer_notice_msg msg = {.index = wc->imm};

	if (c->env.imm != (wc->opcode == FABRIC_RECV_IMM) ||
		(!c->env.imm && transfer_get_notice(&msg, bytes, wc->bytes)))
		return -EBADMSG;
	return land(c, msg.index, NULL);
}

static int sink_completion(struct credit_sink *c, const struct fabric_wc *wc)
{
	struct channel *channel = fabric_chan_context(wc->chan);
	const uint8_t *bytes;
	int err = -EBADMSG;

	if (CHANNEL_ID_WHAT(wc->id) != CHANNEL_NOTICE)
		return 0; /* sends of an earlier transfer in the other direction */
	bytes = channel_take_notice(channel, CHANNEL_ID_NUMBER(wc->id));
	if (c->env.notice == TRANSFER_NOTICE_GATHERED && wc->opcode == FABRIC_RECV)
		err = land_gathered(c, bytes, wc->bytes);
	else if (c->env.notice == TRANSFER_NOTICE_BEHIND)
		err = land_single(c, wc, bytes);
	if (err) {
		verdict_set(c->env.verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"a notice of %u bytes on data channel %u is not allowed", wc->bytes,
			channel->number);
		return err;
	}
	/* the receive is back before the blocks can be granted again: the source never meets RNR */
	return channel_post_notices(channel, pool_count(c->env.pool));
}

static int sink_take(struct credit_sink *c, struct block **done, unsigned max)
{
	unsigned got = 0;

	for (; got < max && c->noticed_count; c->noticed_count--) {
		done[got++] = c->noticed[c->noticed_head];
		c->noticed_head = (c->noticed_head + 1) % pool_count(c->env.pool);
	}
	return (int)got;
}

static int sink_poll(struct engine_sink *e, struct block **done, unsigned max)
{
	struct credit_sink *c = self(e);
	int got = sink_take(c, done, max);

	/* until the queue is empty: the loop may go to sleep when there is nothing */
	while (!got) {
		struct fabric_wc wc[POLL_BATCH];
		int n = fabric_cq_poll(c->env.cq, wc, POLL_BATCH);

		if (n <= 0)
			return n;
		for (int i = 0; i < n; i++) {
			uint32_t sent;
			int err = channel_completion(&wc[i], &sent, c->env.verdict);

			if (err > 0)
				err = sink_completion(c, &wc[i]);
			if (err < 0)
				return err;
		}
		got = sink_take(c, done, max);
	}
	return got;
}

/* ---- credits ---- */

static int take_request(struct engine_sink *e, const uint8_t *data, size_t len)
{
	(void)data;
	if (len)
		return -EBADMSG;
	credit_meter_asked(&self(e)->meter);
	return 0;
}

/* From a source that is slow, and will not ask for long, they are not held back for ever: it learns
 * from them what was verified.  No wake is set for that: the loop looks every 100 ms (engine.h), so
 * that grants are held at most that much longer, also when the source has nothing more to send. */
static uint32_t grants_now(struct credit_sink *c)
{
	uint32_t free_blocks = pool_free_count(c->env.pool);
	uint32_t grants = credit_meter_grant(&c->meter, free_blocks);
	uint64_t now;

	if (!grants && c->meter.debt && free_blocks) {
		now = clock_now_ns();
		if (!c->held_ns)
			c->held_ns = now;
		if (now - c->held_ns < HOLD_NS)
			return 0;
		c->meter.asked = true;
		grants = credit_meter_grant(&c->meter, free_blocks);
	}
	c->held_ns = 0;
	return grants;
}

static int sink_flush(struct engine_sink *e)
{
	struct credit_sink *c = self(e);
	uint32_t grants = grants_now(c);

	while (grants) {
		uint32_t count = 0;
		ssize_t len;
		int err;

		while (count < grants && count < TRANSFER_GRANTS_MAX)
			c->batch[count++] = pool_take(c->env.pool, BLOCK_GRANTED)->index;
		len = transfer_put_grant(c->batch, count, c->frame, sizeof c->frame);
		assert(len > 0);
		err = c->env.put(c->env.put_ctx, TRANSFER_GRANT, c->frame, (size_t)len);
		if (err)
			return err;
		grants -= count;
	}
	return 0;
}

/* ---- beginning and end ---- */

static void sink_close(struct engine_sink *e)
{
	free(self(e)->noticed);
	free(e);
}

static int sink_open(const struct engine_env *env, struct engine_sink **out)
{
	struct credit_sink *c = calloc(1, sizeof *c);
	uint32_t blocks = pool_count(env->pool);
	int err = 0;

	if (!c)
		return -ENOMEM;
	c->base.ops = &credit_sink_ops;
	c->base.common.wake_ns = ENGINE_NEVER;
	c->env = *env;
	c->noticed = calloc(blocks, sizeof(struct block *));
	if (!c->noticed)
		err = -ENOMEM;
	/* all notices can come by one channel, so each has receives for every block */
	for (unsigned i = 0; i < env->channel_count && !err; i++)
		err = channel_post_notices(env->channels[i], blocks);
	if (err) {
		sink_close(&c->base);
		return err;
	}
	credit_meter_init(&c->meter, blocks, blocks < INITIAL_GRANT ? blocks : INITIAL_GRANT);
	*out = &c->base;
	return 0;
}

const struct engine_sink_ops credit_sink_ops = {
	.access = FABRIC_REMOTE_WRITE,
	.frames = {{TRANSFER_REQUEST, take_request}},
	.open = sink_open,
	.poll = sink_poll,
	.flush = sink_flush,
	.again = engine_sink_never_again,
	.settle = engine_sink_is_settled,
	.close = sink_close,
};
