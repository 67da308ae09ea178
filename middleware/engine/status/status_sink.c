/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status/status_sink: the sink's half of the engine `status`: the paper's third region of
 * status bytes, and how it is watched.
 *
 * What each byte must be unless the source has filled its slot is known (engine/changes); a
 * difference is a landed block, or a protocol error.
 *
 * A fabric in software wakes us when a byte changes.  An adapter does not: then the loop looks by
 * itself (engine/lookout).
 */
#include "engine/status/status_engine.h"

#include "base/clock.h"
#include "engine/changes.h"
#include "engine/lookout.h"
#include "proto/status.h"
#include "proto/transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct status_sink {
	struct engine_sink base;
	struct engine_env env;
	struct changes bytes; /* the slots' */
	uint32_t open;        /* slots that the source may fill */
	struct lookout lookout;
	int slack_ns; /* of this thread, before */
};

static struct status_sink *self(struct engine_sink *e)
{
	return (struct status_sink *)e;
}

static void sink_close(struct engine_sink *e)
{
	struct status_sink *s = self(e);

	status_sleeps_coarse(s->slack_ns);
	engine_sink_revoke(e);
	changes_fini(&s->bytes);
	free(s);
}

/* What a byte is from here on, unless the source changes it. */
static void set_byte(struct status_sink *s, uint32_t index, uint8_t byte)
{
	s->bytes.expected[index] = byte;
	__atomic_store_n(changes_at(&s->bytes, index), byte, __ATOMIC_RELEASE);
}

/* The source may fill the free blocks: their bytes are 0 from here on.  All that was read in them
 * was read before. */
static void open_free(struct status_sink *s)
{
	struct block *b;

	while ((b = pool_take(s->env.pool, BLOCK_GRANTED))) {
		set_byte(s, b->index, TRANSFER_BYTE_FREE);
		s->open++;
	}
}

/* A byte is not what it was.  0 or -EBADMSG. */
static int land(struct status_sink *s, uint32_t index, uint8_t byte, struct block **done)
{
	struct block *b = pool_at(s->env.pool, index);

	if (!b || byte != TRANSFER_BYTE_DATA || s->bytes.expected[index] != TRANSFER_BYTE_FREE) {
		verdict_set(s->env.verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"the source made the status byte of slot %u%s %u, where it was %u", index,
			b ? "" : ", which there is not,", byte, s->bytes.expected[index]);
		return -EBADMSG;
	}
	assert(b->state == BLOCK_GRANTED);
	pool_move(b, BLOCK_LANDED);
	s->bytes.expected[index] = TRANSFER_BYTE_DATA;
	s->open--;
	*done = b;
	return 0;
}

static int look(struct status_sink *s, struct block **done, unsigned max)
{
	uint32_t left = s->bytes.bytes, index;
	unsigned got = 0;
	uint8_t byte;

	while (got < max && changes_next(&s->bytes, &left, &index, &byte)) {
		int err = land(s, index, byte, done + got);

		if (err)
			return err;
		got++;
	}
	return (int)got;
}

/* When the loop is to look again, as of now. */
static void plan_wake(struct status_sink *s, uint64_t now)
{
	/* with no slot that can be filled a block that is drained comes first */
	s->base.common.wake_ns = s->open ? lookout_next_ns(&s->lookout, now) : ENGINE_NEVER;
}

static int sink_poll(struct engine_sink *e, struct block **done, unsigned max)
{
	struct status_sink *s = self(e);
	int got = look(s, done, max);
	uint64_t now;

	if (got < 0)
		return got;
	now = clock_now_ns();
	if (got)
		lookout_came(&s->lookout, (uint32_t)got, now);
	else if (e->heard) /* frames foretell blocks */
		lookout_foretold(&s->lookout, now);
	e->heard = false;
	plan_wake(s, now);
	/* nothing is posted on the channels: a broken one shows by its event */
	return got ? got
		   : channel_check_idle(
			     s->env.cq, s->env.channels, s->env.channel_count, s->env.verdict);
}

/* Slots whose blocks stay for a while: the source is told to go round them. */
static void close_retained(struct status_sink *s)
{
	for (struct block *b = s->base.retained; b; b = b->next) {
		if (b->state != BLOCK_LANDED)
			continue; /* it was not for long */
		set_byte(s, b->index, TRANSFER_BYTE_UNAVAILABLE);
	}
}

static int sink_flush(struct engine_sink *e)
{
	struct status_sink *s = self(e);
	bool closed = !s->open;

	close_retained(s);
	open_free(s);
	if (closed && s->open)
		plan_wake(s, clock_now_ns());
	return 0;
}

static int sink_open(const struct engine_env *env, struct engine_sink **out)
{
	struct status_sink *s = calloc(1, sizeof *s);
	uint32_t bytes = transfer_status_bytes(pool_count(env->pool));
	uint64_t now;
	int err;

	if (!s)
		return -ENOMEM;
	s->base.ops = &status_sink_ops;
	s->env = *env;
	err = changes_init(&s->bytes, bytes);
	/* no more than the region can be written to, so that what we look at behind it stays 0;
	 * what is written in it behind the bytes of the slots is found as a byte that is of no slot
	 */
	if (!err)
		err = fabric_mr_new(env->pd, s->bytes.arena.base, bytes,
			FABRIC_REMOTE_WRITE | FABRIC_REMOTE_READ, &s->base.status_mr);
	if (err) {
		sink_close(&s->base);
		return err;
	}
	now = clock_now_ns();
	lookout_init(&s->lookout, !fabric_mr_watch(s->base.status_mr, env->cq), now);
	s->slack_ns = status_sleeps_fine();
	open_free(s);
	plan_wake(s, now);
	*out = &s->base;
	return 0;
}

const struct engine_sink_ops status_sink_ops = {
	.access = FABRIC_REMOTE_WRITE,
	.open = sink_open,
	.poll = sink_poll,
	.flush = sink_flush,
	.again = engine_sink_never_again,
	.settle = engine_sink_is_settled,
	.close = sink_close,
};
