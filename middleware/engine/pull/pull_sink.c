/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/pull/pull_sink: the half of the engine `pull` that fetches.
 *
 * Slot i of the source is fetched into block i, and given back when that is FREE again.  Its block
 * is GRANTED while the source may fill the slot, and while it is fetched.
 *
 * READs cost the source's adapter work.  Records are read when all that is known is being fetched,
 * and half of what may be at once has come; once nothing is known and nothing under way, at the
 * times that `lookout` says.
 */
#include "engine/pull/pull_engine.h"
#include "engine/pull/pull_slots.h"

#include "base/clock.h"
#include "engine/lookout.h"
#include "engine/notice.h"
#include "proto/status.h"
#include "proto/transfer_expose.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POLL_BATCH 32
#define GIVE_RUN FABRIC_WATCHED_BYTES /* neighbours given back by one WRITE */
#define GIVE_MAX 16u                  /* slots given back by one posting */
#define GIVE_SHARE 4u                 /* so much of the slots makes a posting */
#define SIGNAL_SHARE 8u               /* of a send queue may be silent */

struct pull_sink {
	struct engine_sink base;
	struct engine_env env; /* of EXPOSE: the source's memory */
	struct transfer_expose source;
	uint32_t slot_count; /* of the source; 0: EXPOSE has not come */
	struct pull_slots slots;
	struct lookout lookout;
	uint64_t next_ns;  /* no READ of records before */
	uint64_t *records; /* what the READ puts here */
	uint8_t *given;    /* of each slot: how often it was given back */
	struct fabric_mr *mr;
	unsigned fetching[MESSAGE_CHANNELS_MAX], fetches, fetches_max; /* READs of blocks */
	bool reading, closing; /* records are; no block is to come */
	uint32_t idle_slots;   /* that the source has not got */
	struct block **landed; /* and not yielded: a ring */
	uint32_t landed_head, landed_count;
	unsigned last_channel;
};

static struct pull_sink *self(struct engine_sink *e)
{
	return (struct pull_sink *)e;
}

static void sink_close(struct engine_sink *e)
{
	struct pull_sink *s = self(e);

	fabric_mr_free(s->mr);
	free(s->records);
	pull_slots_fini(&s->slots);
	free(s->landed);
	free(s);
}

/* ---- reading records ---- */

/* READs of blocks that a channel may have: one more is left for records, if it takes several. */
static unsigned channel_limit(const struct channel *channel)
{
	unsigned most = fabric_chan_caps(channel->chan)->max_reads;

	return most > 1 ? most - 1 : most;
}

/* The one with the fewest READs under way; among equals they take turns. */
static struct channel *pick_channel(struct pull_sink *s)
{
	unsigned best = 0;

	for (unsigned k = 1; k <= s->env.channel_count; k++) {
		unsigned i = (s->last_channel + k) % s->env.channel_count;

		if (k == 1 || s->fetching[i] < s->fetching[best])
			best = i;
	}
	s->last_channel = best;
	return s->env.channels[best];
}

static int read_records(struct pull_sink *s)
{
	struct channel *channel = pick_channel(s);
	struct fabric_sge all = {s->records, transfer_records_bytes(s->slot_count), s->mr};
	struct fabric_wr read = {
		.id = CHANNEL_ID(CHANNEL_RECORDS, 0),
		.opcode = FABRIC_READ,
		.flags = FABRIC_SIGNALED,
		.sge = &all,
		.sge_count = 1,
		.remote_addr = s->source.records_base,
		.remote_key = s->source.records_key,
	};

	if (!send_queue_room(&channel->queue))
		return 0;
	s->reading = true;
	return channel_post(channel, &read, 0);
}

static bool records_due(const struct pull_sink *s, uint64_t now)
{
	/* with no slot that the source may have filled there is nothing to learn */
	return s->slot_count && !s->reading && !s->closing && !pull_slots_can_fetch(&s->slots) &&
	       s->idle_slots + s->fetches < s->slot_count && s->fetches <= s->fetches_max / 2 &&
	       now >= s->next_ns;
}

static int take_records(struct pull_sink *s)
{
	uint64_t now = clock_now_ns();
	uint32_t found = 0;

	s->reading = false;
	if (s->closing)
		return 0;
	for (uint32_t i = 0; i < s->slot_count; i++) {
		int n = pull_slots_take(&s->slots, i, s->records[i],
			pool_at(s->env.pool, i)->capacity, s->env.verdict);

		if (n < 0)
			return n;
		found += (uint32_t)n;
	}
	s->idle_slots += found;
	if (found)
		lookout_came(&s->lookout, found, now);
	s->next_ns = found ? now : lookout_next_ns(&s->lookout, now);
	return 0;
}

/* ---- fetching blocks ---- */

static int fetch(struct pull_sink *s, struct channel *channel, uint32_t index)
{
	struct block *b = pool_at(s->env.pool, index);
	uint32_t prefix = notice_prefix(&s->env);
	struct fabric_sge all = {
		b->payload - prefix, prefix + pull_slots_length(&s->slots, index), s->env.mr};
	struct fabric_wr read = {
		.id = CHANNEL_ID(CHANNEL_FETCH, index),
		.opcode = FABRIC_READ,
		.flags = FABRIC_SIGNALED,
		.sge = &all,
		.sge_count = 1,
		.remote_addr = notice_slot_addr(&s->env, index),
		.remote_key = s->env.remote_key,
	};

	assert(b->state == BLOCK_GRANTED);
	s->fetching[channel->number]++;
	s->fetches++;
	s->idle_slots--;
	return channel_post(channel, &read, 0);
}

static int fetch_all(struct pull_sink *s)
{
	int err = 0;

	while (!err && s->fetches < s->fetches_max && pull_slots_can_fetch(&s->slots)) {
		struct channel *channel = pick_channel(s);

		if (s->fetching[channel->number] >= channel_limit(channel) ||
			!send_queue_room(&channel->queue))
			break;
		err = fetch(s, channel, pull_slots_next(&s->slots));
	}
	return err;
}

static void land(struct pull_sink *s, struct channel *channel, uint32_t index)
{
	struct block *b = pool_at(s->env.pool, index);

	s->fetching[channel->number]--;
	s->fetches--;
	s->idle_slots++;
	pool_move(b, BLOCK_LANDED);
	s->landed[(s->landed_head + s->landed_count++) % pool_count(s->env.pool)] = b;
}

static bool sink_again(struct engine_sink *e, struct block *b)
{
	struct pull_sink *s = self(e);

	if (!pull_slots_again(&s->slots, b->index))
		return false;
	pool_regrant(b);
	return true;
}

/* ---- giving slots back ---- */

/* The smallest slots first. */
static void sort_slots(uint32_t *slots, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		uint32_t slot = slots[i];
		unsigned at = i;

		for (; at && slots[at - 1] > slot; at--)
			slots[at] = slots[at - 1];
		slots[at] = slot;
	}
}

/* Posts the bytes of some slots, those of neighbours by one WRITE. */
static int give(struct pull_sink *s, struct channel *channel, uint32_t *slots, unsigned count)
{
	const struct send_count every = {
		.requests = channel->queue.size / SIGNAL_SHARE, .blocks = UINT32_MAX};
	bool inlined = fabric_chan_caps(channel->chan)->inline_max >= GIVE_RUN;
	struct fabric_wr wr[GIVE_MAX];
	struct fabric_sge sge[GIVE_MAX];
	unsigned n = 0;

	sort_slots(slots, count);
	for (unsigned i = 0, run; i < count; i += run, n++) {
		for (run = 1; i + run < count && run < GIVE_RUN && slots[i + run] == slots[i] + run;
			run++)
			;
		/* not inline they are read later; but none changes before the source has it */
		sge[n] = (struct fabric_sge){s->given + slots[i], run, s->mr};
		wr[n] = (struct fabric_wr){
			.next = &wr[n + 1],
			.id = CHANNEL_ID(CHANNEL_GIVE, slots[i]),
			.opcode = FABRIC_WRITE,
			.flags = inlined ? FABRIC_INLINE : 0,
			.sge = &sge[n],
			.sge_count = 1,
			.remote_addr = s->source.given_base + slots[i],
			.remote_key = s->source.given_key,
		};
	}
	wr[n - 1].next = NULL;
	if (send_queue_due(&channel->queue, (struct send_count){.requests = n}, every))
		wr[n - 1].flags |= FABRIC_SIGNALED;
	return channel_post(channel, wr, 0);
}

/* Whether slots that are free are worth a posting: many are, or the source may wait for them. */
static bool give_is_due(const struct pull_sink *s)
{
	uint32_t free = pool_free_count(s->env.pool);

	return free && (free >= s->slot_count / GIVE_SHARE || !(s->slots.known + s->fetches));
}

static int sink_flush(struct engine_sink *e)
{
	struct pull_sink *s = self(e);
	int err = 0;

	while (!err && give_is_due(s)) {
		struct channel *channel = pick_channel(s);
		uint32_t slots[GIVE_MAX];
		unsigned count = 0, most = send_queue_room(&channel->queue);
		struct block *b;

		if (!most)
			break;
		most = most < GIVE_MAX ? most : GIVE_MAX;
		while (count < most && (b = pool_take(s->env.pool, BLOCK_GRANTED))) {
			s->given[b->index]++;
			pull_slots_give(&s->slots, b->index);
			slots[count++] = b->index;
		}
		s->idle_slots -= count;
		err = give(s, channel, slots, count);
	}
	return err;
}

/* ---- the engine ---- */

static int take_completion(struct pull_sink *s, const struct fabric_wc *wc)
{
	struct channel *channel = fabric_chan_context(wc->chan);
	uint32_t sent;
	int got = channel_completion(wc, &sent, s->env.verdict);

	if (got <= 0)
		return got;
	if (CHANNEL_ID_WHAT(wc->id) == CHANNEL_RECORDS)
		return take_records(s);
	if (CHANNEL_ID_WHAT(wc->id) == CHANNEL_FETCH)
		land(s, channel, CHANNEL_ID_NUMBER(wc->id));
	return 0;
}

static int take_completions(struct pull_sink *s)
{
	struct fabric_wc wc[POLL_BATCH];
	int n;

	while ((n = fabric_cq_poll(s->env.cq, wc, POLL_BATCH)) > 0)
		for (int i = 0; i < n; i++) {
			int err = take_completion(s, &wc[i]);

			if (err < 0)
				return err;
		}
	return n;
}

/* Completions wake the loop, unless nothing is under way. */
static void plan_wake(struct pull_sink *s)
{
	bool waits = s->slot_count && !s->reading && !s->closing && !s->fetches &&
		     s->idle_slots < s->slot_count;

	s->base.common.wake_ns = waits ? s->next_ns : ENGINE_NEVER;
}

static int sink_poll(struct engine_sink *e, struct block **done, unsigned max)
{
	struct pull_sink *s = self(e);
	unsigned got = 0;
	int err = take_completions(s);

	if (e->heard) { /* frames foretell blocks */
		uint64_t now = clock_now_ns();

		lookout_foretold(&s->lookout, now);
		s->next_ns = now;
		e->heard = false;
	}
	if (!err)
		err = fetch_all(s);
	if (!err && records_due(s, clock_now_ns()))
		err = read_records(s);
	if (err)
		return err;
	while (got < max && s->landed_count) {
		done[got++] = s->landed[s->landed_head];
		s->landed_head = (s->landed_head + 1) % pool_count(s->env.pool);
		s->landed_count--;
	}
	plan_wake(s);
	return got ? (int)got
		   : channel_check(s->env.channels, s->env.channel_count, s->env.verdict);
}

static int sink_settle(struct engine_sink *e)
{
	struct pull_sink *s = self(e);

	s->closing = true;
	return !s->reading && !s->fetches;
}

static int take_expose(struct engine_sink *e, const uint8_t *data, size_t len)
{
	struct pull_sink *s = self(e);
	struct transfer_expose msg;

	if (s->slot_count || transfer_get_expose(&msg, data, len) ||
		msg.blocks > pool_count(s->env.pool) ||
		msg.stride != pool_stride(pool_at(s->env.pool, 0)->capacity))
		return -EBADMSG;
	s->source = msg;
	s->slot_count = msg.blocks;
	s->env.remote_base = msg.base;
	s->env.remote_stride = msg.stride;
	s->env.remote_key = msg.key;
	if (s->fetches_max > s->slot_count)
		s->fetches_max = s->slot_count;
	return 0;
}

/* All slots are the source's, and nothing needs to be told. */
static void grant_all(struct pull_sink *s)
{
	struct block *b;

	while ((b = pool_take(s->env.pool, BLOCK_GRANTED)))
		pull_slots_give(&s->slots, b->index);
}

static int sink_open(const struct engine_env *env, struct engine_sink **out)
{
	struct pull_sink *s = calloc(1, sizeof *s);
	uint32_t slots = pool_count(env->pool), words = transfer_records_bytes(slots);
	int err = -ENOMEM;

	if (!s)
		return err;
	s->base.ops = &pull_sink_ops;
	s->base.common.wake_ns = ENGINE_NEVER;
	s->env = *env;
	s->records = calloc(1, words + slots);
	s->landed = calloc(slots, sizeof *s->landed);
	if (!s->records || !s->landed || pull_slots_init(&s->slots, slots))
		goto err_close;
	s->given = (uint8_t *)s->records + words;
	err = fabric_mr_new(env->pd, s->records, words + slots, FABRIC_READ_INTO, &s->mr);
	if (err)
		goto err_close;
	for (unsigned i = 0; i < env->channel_count; i++)
		s->fetches_max += channel_limit(env->channels[i]);
	lookout_init(&s->lookout, false, clock_now_ns());
	grant_all(s);
	*out = &s->base;
	return 0;

err_close:
	sink_close(&s->base);
	return err;
}

const struct engine_sink_ops pull_sink_ops = {
	.access = FABRIC_READ_INTO,
	.frames = {{TRANSFER_EXPOSE, take_expose}},
	.open = sink_open,
	.poll = sink_poll,
	.flush = sink_flush,
	.again = sink_again,
	.settle = sink_settle,
	.close = sink_close,
};
