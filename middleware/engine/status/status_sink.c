/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status/status_sink: the sink's half of the engine `status`: the paper's third region of
 * status bytes, and how it is watched.
 *
 * The peer can write any byte at any time.  What each byte must be unless the source has filled its
 * slot is kept beside them in memory of our own; a difference is a landed block, or a protocol
 * error.
 *
 * A fabric in software wakes us when a byte changes.  An adapter does not: while blocks come
 * quickly the loop looks again at once; then it sleeps, for a part of the time that it has waited
 * already or of the time between blocks lately.
 */
#include "engine/status/status_engine.h"

#include "base/clock.h"
#include "block/arena.h"
#include "proto/status.h"
#include "proto/transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POLL_BATCH 32
#define WORD 8u            /* bytes looked at together */
#define SPIN_NS 10000u     /* the loop looks again at once for so long, */
#define SPIN_GAP_NS 50000u /* if blocks came so fast lately */
#define SLEEP_MIN_NS 20000u
#define SLEEP_MAX_NS 5000000u
#define WATCHED_SLEEP_NS 100000000u /* where the fabric wakes us */

struct status_sink {
	struct engine_sink base;
	struct engine_env env;
	struct arena arena;   /* the bytes: whole pages, nobody else's */
	uint8_t *expected;    /* what each byte must be, unless it became 1 where this is 0 */
	uint32_t words, next; /* slot to look at next */
	uint32_t open;        /* slots that the source may fill */
	uint64_t active_ns;   /* something landed, or was announced */
	uint64_t gap_ns;      /* between blocks lately */
	bool watched;         /* the fabric wakes us when a byte changes */
	int slack_ns;         /* of this thread, before */
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
	arena_fini(&s->arena);
	free(s->expected);
	free(s);
}

static uint8_t *byte_of(struct status_sink *s, uint32_t index)
{
	return s->arena.base + index;
}

/* The source may fill the free blocks: their bytes are 0 from here on.  All that was read in them
 * was read before. */
static void open_free(struct status_sink *s)
{
	struct block *b;

	while ((b = pool_take(s->env.pool, BLOCK_GRANTED))) {
		s->expected[b->index] = TRANSFER_BYTE_FREE;
		__atomic_store_n(byte_of(s, b->index), TRANSFER_BYTE_FREE, __ATOMIC_RELEASE);
		s->open++;
	}
}

/* A byte is not what it was.  0 or -EBADMSG. */
static int land(struct status_sink *s, uint32_t index, uint8_t byte, struct block **done)
{
	struct block *b = pool_at(s->env.pool, index);

	if (!b || byte != TRANSFER_BYTE_DATA || s->expected[index] != TRANSFER_BYTE_FREE) {
		verdict_set(s->env.verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"the source made the status byte of slot %u%s %u, where it was %u", index,
			b ? "" : ", which there is not,", byte, s->expected[index]);
		return -EBADMSG;
	}
	assert(b->state == BLOCK_GRANTED);
	pool_move(b, BLOCK_LANDED);
	s->expected[index] = TRANSFER_BYTE_DATA;
	s->open--;
	*done = b;
	return 0;
}

/* From slot `next` to the end of its word. */
static int land_word(struct status_sink *s, struct block **done, unsigned max)
{
	unsigned got = 0;

	do {
		uint32_t i = s->next;
		uint8_t byte = __atomic_load_n(byte_of(s, i), __ATOMIC_ACQUIRE);

		if (byte != s->expected[i]) {
			int err = land(s, i, byte, done + got);

			if (err)
				return err;
			got++;
		}
		s->next = (i + 1) % (s->words * WORD);
	} while (got < max && s->next % WORD);
	return (int)got;
}

static bool word_differs(struct status_sink *s, uint32_t word)
{
	uint64_t have = __atomic_load_n(
			 (uint64_t *)(void *)byte_of(s, word * WORD), __ATOMIC_RELAXED),
		 want;

	memcpy(&want, s->expected + word * WORD, sizeof want);
	return have != want;
}

/* Looks at each byte, and goes on where it stopped the last time: a slot that is filled often does
 * not keep another waiting.  The word in whose middle it begins comes last once more. */
static int look(struct status_sink *s, struct block **done, unsigned max)
{
	unsigned got = 0;

	for (uint32_t k = 0; k <= s->words && got < max; k++) {
		int n;

		if (!word_differs(s, s->next / WORD)) {
			s->next = (s->next / WORD + 1) % s->words * WORD;
			continue;
		}
		n = land_word(s, done + got, max - got);
		if (n < 0)
			return n;
		got += (unsigned)n;
	}
	return (int)got;
}

/* Nothing is posted on the channels: a broken one shows by its event, or by receives of an earlier
 * transfer. */
static int check_channels(struct status_sink *s)
{
	struct fabric_wc wc[POLL_BATCH];
	int n;

	while ((n = fabric_cq_poll(s->env.cq, wc, POLL_BATCH)) > 0)
		for (int i = 0; i < n; i++) {
			uint32_t sent;
			int err = channel_completion(&wc[i], &sent, s->env.verdict);

			if (err < 0)
				return err;
		}
	return n ? n : channel_check(s->env.channels, s->env.channel_count, s->env.verdict);
}

/* When the loop is to look again, as of now. */
static void plan_wake(struct status_sink *s, uint64_t now)
{
	uint64_t idle = now - s->active_ns, sleep_ns;

	if (!s->open) {
		s->base.common.wake_ns = ENGINE_NEVER; /* a block that is drained comes first */
	} else if (s->watched) {
		s->base.common.wake_ns = now + WATCHED_SLEEP_NS;
	} else if (idle < SPIN_NS && s->gap_ns < SPIN_GAP_NS) {
		s->base.common.wake_ns = now;
	} else {
		sleep_ns = idle > s->gap_ns ? idle / 2 : s->gap_ns / 2;
		s->base.common.wake_ns = now + (sleep_ns < SLEEP_MIN_NS          ? SLEEP_MIN_NS
						       : sleep_ns > SLEEP_MAX_NS ? SLEEP_MAX_NS
										 : sleep_ns);
	}
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
		s->gap_ns = (3 * s->gap_ns + (now - s->active_ns) / (uint64_t)got) / 4;
	if (got || e->heard) /* frames foretell blocks */
		s->active_ns = now;
	e->heard = false;
	plan_wake(s, now);
	return got ? got : check_channels(s);
}

/* Slots whose blocks stay for a while: the source is told to go round them. */
static void close_retained(struct status_sink *s)
{
	for (struct block *b = s->base.retained; b; b = b->next) {
		if (b->state != BLOCK_LANDED)
			continue; /* it was not for long */
		s->expected[b->index] = TRANSFER_BYTE_UNAVAILABLE;
		__atomic_store_n(byte_of(s, b->index), TRANSFER_BYTE_UNAVAILABLE, __ATOMIC_RELEASE);
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
	int err;

	if (!s)
		return -ENOMEM;
	s->base.ops = &status_sink_ops;
	s->env = *env;
	s->words = (bytes + WORD - 1) / WORD;
	s->expected = calloc(s->words, WORD);
	err = s->expected ? arena_init(&s->arena, (size_t)s->words * WORD, false) : -ENOMEM;
	/* no more than the region can be written to, so that what we look at behind it stays 0;
	 * what is written in it behind the bytes of the slots is found as a byte that is of no slot
	 */
	if (!err)
		err = fabric_mr_new(env->pd, s->arena.base, bytes,
			FABRIC_REMOTE_WRITE | FABRIC_REMOTE_READ, &s->base.status_mr);
	if (err) {
		sink_close(&s->base);
		return err;
	}
	s->watched = !fabric_mr_watch(s->base.status_mr, env->cq);
	s->slack_ns = status_sleeps_fine();
	s->active_ns = clock_now_ns();
	open_free(s);
	plan_wake(s, s->active_ns);
	*out = &s->base;
	return 0;
}

const struct engine_sink_ops status_sink_ops = {
	.access = FABRIC_REMOTE_WRITE,
	.open = sink_open,
	.poll = sink_poll,
	.flush = sink_flush,
	.close = sink_close,
};
