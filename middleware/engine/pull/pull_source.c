/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/pull/pull_source: the half of the engine `pull` that blocks are fetched from.  It posts
 * nothing.
 *
 * All that a peer reaches is memory of this transfer: the blocks and their records, to be read, and
 * the bytes by which slots are given back, to be written.  A slot is not filled again before it was
 * given back; a byte that changes to anything but the next number of a slot that is out is a
 * protocol error.
 */
#include "engine/pull/pull_engine.h"

#include "base/clock.h"
#include "engine/changes.h"
#include "engine/lookout.h"
#include "proto/status.h"
#include "proto/transfer_expose.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct pull_source {
	struct engine_source base;
	struct engine_env env;
	struct arena records; /* of whole pages, as the bytes are: nobody else's */
	struct fabric_mr *records_mr, *given_mr;
	struct changes given;
	uint32_t sequence, out; /* of the last block; blocks that were not given back */
	struct lookout lookout;
};

static struct pull_source *self(struct engine_source *e)
{
	return (struct pull_source *)e;
}

static void source_close(struct engine_source *e)
{
	struct pull_source *s = self(e);

	fabric_mr_free(s->records_mr);
	fabric_mr_free(s->given_mr);
	arena_fini(&s->records);
	changes_fini(&s->given);
	free(s);
}

static void plan_wake(struct pull_source *s, uint64_t now)
{
	s->base.common.wake_ns = s->out ? lookout_next_ns(&s->lookout, now) : ENGINE_NEVER;
}

/* ---- blocks go out ---- */

static int source_room(struct engine_source *e, unsigned wanted)
{
	struct pull_source *s = self(e);

	(void)wanted; /* a block that is filled is in its slot already */
	return (int)(pool_count(s->env.pool) - s->out);
}

/* All that is in the block was written before its record says so. */
static void publish(struct pull_source *s, struct block *b)
{
	struct transfer_record record = {.sequence = ++s->sequence, .length = block_crossing(b)};
	uint64_t *word = (uint64_t *)(void *)s->records.base + b->index;

	pool_move(b, BLOCK_SENDING);
	__atomic_store_n(word, transfer_put_record(&record), __ATOMIC_RELEASE);
}

static int source_send(struct engine_source *e, struct block *const *blocks, unsigned count)
{
	struct pull_source *s = self(e);
	uint64_t now = clock_now_ns();

	for (unsigned i = 0; i < count; i++)
		publish(s, blocks[i]);
	if (!s->out)
		lookout_foretold(&s->lookout, now);
	s->out += count;
	plan_wake(s, now);
	return 0;
}

/* ---- and come back ---- */

/* The byte of a slot is not what it was.  0 or -EBADMSG. */
static int take_back(struct pull_source *s, uint32_t index, uint8_t byte, struct block **done)
{
	struct block *b = pool_at(s->env.pool, index);

	if (!b || b->state != BLOCK_SENDING || byte != (uint8_t)(s->given.expected[index] + 1)) {
		verdict_set(s->env.verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"the sink gave slot %u back%s: %u, where it was %u", index,
			!b                          ? ", which there is not"
			: b->state == BLOCK_SENDING ? " by a wrong number"
						    : ", which it had not been given",
			byte, s->given.expected[index]);
		return -EBADMSG;
	}
	s->given.expected[index] = byte;
	*done = b;
	return 0;
}

static int source_poll(struct engine_source *e, struct block **done, unsigned max)
{
	struct pull_source *s = self(e);
	uint32_t left = s->given.bytes, index;
	uint64_t now;
	unsigned got = 0;
	uint8_t byte;

	while (got < max && changes_next(&s->given, &left, &index, &byte)) {
		int err = take_back(s, index, byte, &done[got]);

		if (err)
			return err;
		got++;
	}
	now = clock_now_ns();
	s->out -= got;
	if (got)
		lookout_came(&s->lookout, got, now);
	plan_wake(s, now);
	return got ? (int)got
		   : channel_check_idle(
			     s->env.cq, s->env.channels, s->env.channel_count, s->env.verdict);
}

static int source_settle(struct engine_source *e)
{
	return !self(e)->out;
}

static void source_stop(struct engine_source *e)
{
	(void)e;
}

/* ---- opening ---- */

static int expose(struct pull_source *s)
{
	const struct engine_env *env = &s->env;
	struct transfer_expose msg = {
		.blocks = pool_count(env->pool),
		.stride = pool_stride(pool_at(env->pool, 0)->capacity),
		.base = fabric_mr_base(env->mr),
		.key = fabric_mr_key(env->mr),
		.records_base = fabric_mr_base(s->records_mr),
		.records_key = fabric_mr_key(s->records_mr),
		.given_base = fabric_mr_base(s->given_mr),
		.given_key = fabric_mr_key(s->given_mr),
	};
	uint8_t data[64];
	ssize_t len = transfer_put_expose(&msg, data, sizeof data);

	return len < 0 ? (int)len : env->put(env->put_ctx, TRANSFER_EXPOSE, data, (size_t)len);
}

static int source_open(const struct engine_env *env, struct engine_source **out)
{
	struct pull_source *s = calloc(1, sizeof *s);
	uint32_t slots = pool_count(env->pool), bytes = transfer_records_bytes(slots);
	int err;

	assert(!env->sender); /* early blocks are a client's */
	if (!s)
		return -ENOMEM;
	s->base.ops = &pull_source_ops;
	s->base.common.wake_ns = ENGINE_NEVER;
	s->env = *env;
	err = arena_init(&s->records, bytes, false);
	if (!err)
		err = changes_init(&s->given, slots);
	if (!err)
		err = fabric_mr_new(
			env->pd, s->records.base, bytes, FABRIC_REMOTE_READ, &s->records_mr);
	/* bytes behind those of the slots cannot be written to */
	if (!err)
		err = fabric_mr_new(
			env->pd, s->given.arena.base, slots, FABRIC_REMOTE_WRITE, &s->given_mr);
	if (!err)
		lookout_init(&s->lookout, !fabric_mr_watch(s->given_mr, env->cq), clock_now_ns());
	if (!err)
		err = expose(s);
	if (err) {
		source_close(&s->base);
		return err;
	}
	*out = &s->base;
	return 0;
}

const struct engine_source_ops pull_source_ops = {
	.access = FABRIC_REMOTE_READ,
	.is_fetched = true,
	.open = source_open,
	.poll = source_poll,
	.room = source_room,
	.send = source_send,
	.settle = source_settle,
	.stop = source_stop,
	.close = source_close,
};
