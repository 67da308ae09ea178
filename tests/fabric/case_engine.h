/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fabric/case_engine.h: the engines on the fabric: real blocks cross by the real modules,
 * from the client to the server and the other way, over several channels.
 *
 * There are many more blocks than slots on either side, so that all that an engine has for giving
 * slots back is used.
 */
#ifndef TESTS_FABRIC_CASE_ENGINE_H
#define TESTS_FABRIC_CASE_ENGINE_H

#include "tests/fabric/engine_half.h"

/* ---- one transfer ---- */

static struct engine_env engine_half_env(struct engine_half *h, uint8_t notice, bool imm)
{
	return (struct engine_env){
		.pool = h->pool,
		.pd = h->pd,
		.mr = h->mr,
		.cq = h->cq,
		.channels = h->channels,
		.channel_count = ENGINE_CHANNELS,
		.notice = notice,
		.imm = imm,
		.verdict = &h->why,
		.put = engine_put,
		.put_ctx = h,
	};
}

static void engine_half_begin(struct engine_half *h, const struct engine_ops *ops, bool source)
{
	uint32_t blocks = source ? ENGINE_SOURCE_BLOCKS : ENGINE_SLOTS;
	struct side *s = h->side;
	unsigned access = source ? engine_source_half(ops, !s->client)->access
				 : engine_sink_half(ops, !s->client)->access;
	size_t bytes;

	/* what is fetched is of the sink's slots */
	if (source && engine_source_half(ops, !s->client)->is_fetched)
		blocks = ENGINE_SLOTS;
	bytes = pool_bytes(blocks, ENGINE_BLOCK_BYTES);
	h->engine = ops;
	h->source = source;
	h->sent = h->landed = h->drained = h->frames = h->kept_until = 0;
	h->settled = h->emptied = h->over = false;
	h->waiting = h->kept = NULL;
	memset(h->seen, 0, sizeof h->seen);
	must_eq(s, arena_init(&h->arena, bytes, false), 0);
	memset(h->arena.base, ENGINE_CLEAN, bytes);
	must_eq(s, fabric_mr_new(h->pd, h->arena.base, bytes, access, &h->mr), 0);
	must_eq(s, pool_new(h->arena.base, blocks, ENGINE_BLOCK_BYTES, &h->pool), 0);
	for (unsigned i = 0; i < ENGINE_CHANNELS; i++)
		channel_reset_counts(h->channels[i]);
}

static struct channel_counts engine_counts(const struct engine_half *h)
{
	struct channel_counts sum = {0};

	for (unsigned i = 0; i < ENGINE_CHANNELS; i++) {
		const struct channel_counts *n = &h->channels[i]->counts;

		sum.writes += n->writes;
		sum.sends += n->sends;
		sum.reads += n->reads;
		sum.receives += n->receives;
	}
	return sum;
}

/* Sends what is filled, and there is room for, at once.  Whether there was something. */
static bool source_sends(struct engine_half *h)
{
	const struct engine_source_ops *ops = h->from->ops;
	struct block *blocks[ENGINE_BATCH];
	struct side *s = h->side;
	unsigned count = 0;
	int room = ops->room(h->from, 0);

	must(s, room >= 0);
	while (h->sent < ENGINE_BLOCKS && count < ENGINE_BATCH) {
		if (!h->waiting && (h->waiting = pool_take(h->pool, BLOCK_FILLING)))
			engine_fill(h, h->waiting);
		if (!h->waiting || (int)count == room)
			break;
		blocks[count++] = h->waiting;
		h->waiting = NULL;
		h->sent++;
	}
	if (count)
		must_eq(s, ops->send(h->from, blocks, count), 0);
	return count;
}

static bool source_round(struct engine_half *h)
{
	const struct engine_source_ops *ops = h->from->ops;
	struct side *s = h->side;
	struct block *done[ENGINE_BATCH];
	bool any = engine_notes(h);
	int n = ops->poll(h->from, done, ENGINE_BATCH);

	must(s, n >= 0 && n <= (int)ENGINE_BATCH);
	for (int i = 0; i < n; i++) {
		must_eq(s, done[i]->state, BLOCK_SENDING);
		pool_give(h->pool, done[i]);
	}
	while (source_sends(h))
		any = true;
	if (h->waiting)
		must(s, ops->room(h->from, 1) >= 0);
	return any || n > 0;
}

static bool source_settles(struct engine_half *h)
{
	bool any = source_round(h);
	int settled = h->from->ops->settle(h->from);

	must(h->side, settled >= 0);
	h->settled = settled;
	return settled || any;
}

/* What the source posted, and was sent, while it gave ENGINE_BLOCKS blocks to ENGINE_SLOTS slots.
 */
static void engine_check_source(const struct engine_half *h, bool imm, uint8_t notice)
{
	const uint32_t refills =
		(ENGINE_BLOCKS - 1) / ENGINE_SLOTS; /* slots were given back so often */
	struct channel_counts n = engine_counts(h);
	struct side *s = h->side;

	if (h->from->ops->is_fetched) {
		must_eq(s, n.writes + n.sends + n.reads + n.receives + h->frames, 0);
		return;
	}
	switch (h->engine->id) {
	case MESSAGE_ENGINE_PULL:
	case MESSAGE_ENGINE_STATUS: /* a byte behind each block, or behind several, and once more to
				       flush */
		must(s, n.writes > ENGINE_BLOCKS &&
				n.writes <= 2 * ENGINE_BLOCKS + ENGINE_CHANNELS);
		must(s, n.reads >= refills);
		must_eq(s, n.sends + n.receives + h->frames, 0);
		break;
	case MESSAGE_ENGINE_WINDOW:
		must(s, n.writes >= ENGINE_BLOCKS && n.writes <= ENGINE_BLOCKS + ENGINE_CHANNELS);
		must_eq(s, n.sends, imm ? 0 : ENGINE_BLOCKS);
		must(s, n.receives >= ENGINE_BLOCKS); /* an ACK each */
		must_eq(s, n.reads + h->frames, 0);
		break;
	default:
		must(s, n.writes >= ENGINE_BLOCKS && n.writes <= ENGINE_BLOCKS + ENGINE_CHANNELS);
		if (notice == TRANSFER_NOTICE_GATHERED)
			must(s, n.sends >= refills && n.sends <= ENGINE_BLOCKS);
		else
			must_eq(s, n.sends, imm ? 0 : ENGINE_BLOCKS);
		must(s, h->frames > refills); /* GRANTs */
		must_eq(s, n.reads, 0);
	}
}

static void engine_source(
	struct engine_half *h, const struct engine_ops *ops, uint8_t notice, bool imm)
{
	struct side *s = h->side;
	struct engine_env env;
	struct note memory, status;

	engine_half_begin(h, ops, true);
	memory = note_recv(s);
	must_eq(s, memory.w[0], ENGINE_MEMORY);
	status = note_recv(s);
	must_eq(s, status.w[0], ENGINE_STATUS);
	env = engine_half_env(h, notice, imm);
	env.remote_depth = (uint32_t)memory.w[1];
	env.remote_stride = (uint32_t)memory.w[2];
	env.remote_base = memory.w[3];
	env.remote_key = (uint32_t)memory.w[4];
	env.remote_status_base = status.w[1];
	env.remote_status_key = (uint32_t)status.w[2];
	must_eq(s, engine_source_half(ops, !s->client)->open(&env, &h->from), 0);
	while (h->sent < ENGINE_BLOCKS || !h->emptied)
		engine_wait(h, source_round);
	while (!h->settled)
		engine_wait(h, source_settles);
	must_eq(s, pool_free_count(h->pool), pool_count(h->pool));
	note_send(s, (struct note){{ENGINE_COMPLETE}, 0});
	while (!h->over) /* a GRANT may be on its way */
		engine_wait(h, source_round);
	h->from->ops->stop(h->from);
	engine_check_source(h, imm, notice);
	engine_half_end(h);
}

static bool sink_round(struct engine_half *h)
{
	struct block *done[ENGINE_BATCH];
	bool any = engine_notes(h);
	struct side *s = h->side;
	int n = h->to->ops->poll(h->to, done, ENGINE_BATCH);

	must(s, n >= 0 && n <= (int)ENGINE_BATCH);
	for (int i = 0; i < n; i++) {
		uint32_t sequence = engine_check(h, done[i]);

		if (++h->landed % ENGINE_KEEP_EVERY || h->kept) {
			engine_drain(h, done[i]);
			continue;
		}
		h->kept = done[i];
		h->kept_until = h->landed + ENGINE_KEEP_FOR;
		h->kept_alone = sequence + ENGINE_SLOTS;
		engine_sink_retain(h->to, h->kept);
	}
	/* one that came late, by its channel, may be what all slots of a sliding window wait for:
	 * no block behind them comes while it is kept */
	if (h->kept && (h->landed >= h->kept_until || h->landed == h->kept_alone ||
			       h->landed == ENGINE_BLOCKS)) {
		engine_drain(h, h->kept);
		h->kept = NULL;
	}
	must_eq(s, engine_sink_flush(h->to), 0);
	if (h->drained == ENGINE_BLOCKS && !h->emptied) {
		h->emptied = true;
		note_send(s, (struct note){{ENGINE_EMPTIED}, 0});
	}
	return any || n > 0;
}

static bool sink_settles(struct engine_half *h)
{
	bool any = sink_round(h);
	int settled = h->to->ops->settle(h->to);

	must(h->side, settled >= 0);
	h->settled = settled;
	return settled || any;
}

/* Whether this sink's half fetches blocks. */
static bool engine_fetches(const struct engine_half *h)
{
	return engine_source_half(h->engine, h->side->client)->is_fetched;
}

static void engine_check_sink(const struct engine_half *h)
{
	struct channel_counts n = engine_counts(h);
	struct side *s = h->side;

	must_eq(s, h->landed, ENGINE_BLOCKS);
	for (unsigned i = 0; i < ENGINE_BLOCKS; i++)
		must(s, h->seen[i]);
	if (engine_fetches(h)) {
		must(s, n.reads > ENGINE_BLOCKS);
		must(s, n.writes > 0 && n.writes <= ENGINE_BLOCKS);
		must_eq(s, n.sends + n.receives, 0);
		must_eq(s, h->frames, 1); /* EXPOSE */
		return;
	}
	must_eq(s, n.writes + n.reads, 0);
	must_eq(s, n.sends, h->engine->id == MESSAGE_ENGINE_WINDOW ? ENGINE_BLOCKS : 0);
	if (h->engine->id == MESSAGE_ENGINE_STATUS || h->engine->id == MESSAGE_ENGINE_PULL)
		must_eq(s, n.receives, 0);
}

static void engine_sink(
	struct engine_half *h, const struct engine_ops *ops, uint8_t notice, bool imm)
{
	struct side *s = h->side;
	const struct fabric_mr *mr;
	struct engine_env env;

	engine_half_begin(h, ops, false);
	env = engine_half_env(h, notice, imm);
	must_eq(s, engine_sink_half(ops, !s->client)->open(&env, &h->to), 0);
	mr = h->to->status_mr;
	note_send(s,
		(struct note){{ENGINE_MEMORY, pool_count(h->pool), pool_stride(ENGINE_BLOCK_BYTES),
				      fabric_mr_base(h->mr), fabric_mr_key(h->mr)},
			0});
	note_send(s, (struct note){{ENGINE_STATUS, mr ? fabric_mr_base(mr) : 0,
					   mr ? fabric_mr_key(mr) : 0},
			     0});
	while (!h->over)
		engine_wait(h, sink_round);
	while (!h->settled)
		engine_wait(h, sink_settles);
	must(s, h->emptied);
	engine_check_sink(h);
	engine_sink_revoke(h->to);
	engine_half_end(h);
	note_send(s, (struct note){{ENGINE_CLOSED}, 0});
}

static void engine_transfer(struct engine_half *h, const struct engine_ops *ops, bool to_server,
	uint8_t notice, bool imm)
{
	h->seed += 1000000; /* other blocks than before */
	if (to_server == h->side->client)
		engine_source(h, ops, notice, imm);
	else
		engine_sink(h, ops, notice, imm);
	meet(h->side);
	for (unsigned i = 0; i < ENGINE_CHANNELS; i++)
		must_eq(h->side, h->links[i]->ended, 0);
}

/* What a channel must be able to do for an engine, or the engine says what is missing. */
static bool engine_can(struct engine_half *h, const struct engine_ops *ops)
{
	const struct fabric_caps *caps = fabric_chan_caps(h->channels[0]->chan);
	const char *lacks = engine_lacks(ops, caps);
	struct side *s = h->side;

	if (ops->id != MESSAGE_ENGINE_STATUS && ops->id != MESSAGE_ENGINE_PULL)
		must(s, !lacks);
	else if (!caps->has_read)
		must(s, lacks && strstr(lacks, "READ"));
	else if (!caps->write_ordered)
		must(s, lacks && strstr(lacks, "order"));
	else
		must(s, !lacks);
	if (lacks)
		printf("# engine %s refuses this fabric: it lacks %s\n", ops->name, lacks);
	return least_of_both(s, !lacks);
}

static void engine_agree_on_seed(struct engine_half *h)
{
	struct side *s = h->side;

	if (s->client) {
		h->seed = harness_seed();
		note_send(s, (struct note){{h->seed}, 0});
	} else {
		h->seed = note_recv(s).w[0];
	}
}

/* The channels stay from one transfer to the next, as they do in a session. */
static void engine_half(struct side *s, const struct engine_ops *ops)
{
	struct engine_half *h = engine_half_new(s);
	const struct fabric_caps *caps = fabric_chan_caps(h->channels[0]->chan);
	bool imm = least_of_both(s, caps->has_imm) && ops->notices;

	engine_agree_on_seed(h);
	if (!engine_can(h, ops))
		return;
	engine_transfer(h, ops, true, TRANSFER_NOTICE_BEHIND, imm);
	engine_transfer(h, ops, false, TRANSFER_NOTICE_BEHIND, imm);
	if (imm)
		engine_transfer(h, ops, true, TRANSFER_NOTICE_BEHIND, false);
	if (ops->id != MESSAGE_ENGINE_CREDIT)
		return;
	engine_transfer(h, ops, true, TRANSFER_NOTICE_GATHERED, false);
	engine_transfer(h, ops, false, TRANSFER_NOTICE_GATHERED, false);
}

static void engine_credit_half(struct side *s)
{
	engine_half(s, &engine_credit);
}

static void engine_status_half(struct side *s)
{
	engine_half(s, &engine_status);
}

static void engine_window_half(struct side *s)
{
	engine_half(s, &engine_window);
}

static void engine_pull_half(struct side *s)
{
	engine_half(s, &engine_pull);
}

/* One engine leaves the channels, and their completion queue, to the next: another, or the other
 * way. */
static void engines_in_turn_half(struct side *s)
{
	static const struct engine_ops *const turns[] = {&engine_window, &engine_credit,
		&engine_window, &engine_pull, &engine_window, &engine_window, &engine_status,
		&engine_pull, &engine_credit};
	struct engine_half *h = engine_half_new(s);
	bool imm = least_of_both(s, fabric_chan_caps(h->channels[0]->chan)->has_imm);

	engine_agree_on_seed(h);
	for (unsigned i = 0; i < 2 * sizeof turns / sizeof *turns; i++) {
		const struct engine_ops *ops = turns[i / 2];

		if (engine_can(h, ops))
			engine_transfer(h, ops, i & 1, TRANSFER_NOTICE_BEHIND, imm && ops->notices);
	}
}

#endif
