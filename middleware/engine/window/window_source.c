/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/window/window_source: the source's half of the engine `window`.
 */
#include "engine/window/window_engine.h"

#include "engine/notice.h"
#include "engine/window/window_acks.h"

#include <errno.h>
#include <stdlib.h>

struct window_source {
	struct engine_source base;
	struct engine_env env;
	uint32_t depth;
	struct acks *acks;
	uint64_t tail;    /* slots ever used: the next to fill */
	uint64_t emptied; /* of these: known to be empty */
};

static struct window_source *self(struct engine_source *e)
{
	return (struct window_source *)e;
}

static int source_room(struct engine_source *e, unsigned wanted)
{
	struct window_source *w = self(e);

	(void)wanted; /* the ACKs come unasked */
	for (uint64_t head = acks_head(w->acks); w->emptied < head; w->emptied++)
		slots_empty(&e->slots, (uint32_t)(w->emptied % w->depth));
	return (int)(w->depth - (uint32_t)(w->tail - w->emptied));
}

static int source_send(struct engine_source *e, struct block *const *blocks, unsigned count)
{
	struct window_source *w = self(e);
	int err = 0;

	for (unsigned i = 0; i < count && !err; i++) {
		/* the ACK can be there before we are back */
		acks_expect(w->acks, w->tail + 1);
		err = notice_post(&w->env, e->sender, sender_pick(e->sender), blocks[i],
			(uint32_t)(w->tail % w->depth));
		if (!err)
			slots_fill(&e->slots, (uint32_t)(w->tail % w->depth), blocks[i]->length);
		w->tail += !err;
	}
	return err;
}

static int source_poll(struct engine_source *e, struct block **done, unsigned max)
{
	struct window_source *w = self(e);
	unsigned got = sender_done(e->sender, done, max);

	/* until the queue is empty: the loop may go to sleep when there is nothing */
	while (!got) {
		struct fabric_wc wc[SENDER_POLL_BATCH];
		int n = acks_take(w->acks, wc, SENDER_POLL_BATCH, w->env.verdict);

		if (n <= 0)
			return n;
		for (int i = 0; i < n; i++) {
			int err = sender_completion(e->sender, &wc[i]);

			if (err < 0)
				return err;
		}
		got = sender_done(e->sender, done, max);
	}
	return (int)got;
}

static int source_settle(struct engine_source *e)
{
	struct window_source *w = self(e);
	int err = sender_flush(e->sender);

	if (err < 0)
		return err;
	return err && acks_head(w->acks) == w->tail;
}

static void source_stop(struct engine_source *e)
{
	struct window_source *w = self(e);
	struct fabric_wc wc;

	acks_stop(w->acks);
	/* the queue is left alone; but what was taken from it says what the channels' send queues
	 * hold */
	while (acks_take(w->acks, &wc, 1, w->env.verdict) > 0)
		if (wc.status == FABRIC_OK)
			sender_completion(e->sender, &wc);
}

static void source_close(struct engine_source *e)
{
	struct window_source *w = self(e);

	if (w->acks)
		source_stop(e);
	acks_free(w->acks);
	slots_fini(&e->slots);
	sender_free(e->sender);
	free(w);
}

static int source_open(const struct engine_env *env, struct engine_source **out)
{
	struct window_source *w = calloc(1, sizeof *w);
	int err;

	if (!w) {
		sender_free(env->sender);
		return -ENOMEM;
	}
	w->base.ops = &window_source_ops;
	w->base.common.wake_ns = ENGINE_NEVER;
	w->env = *env;
	w->depth = env->remote_depth;
	err = sender_of(env, &w->base.sender);
	if (!err)
		err = slots_init(&w->base.slots, w->depth);
	if (!err)
		err = window_post_receives(env, w->depth);
	if (!err)
		err = acks_start(env, w->depth, &w->acks);
	if (err) {
		source_close(&w->base);
		return err;
	}
	*out = &w->base;
	return 0;
}

const struct engine_source_ops window_source_ops = {
	.access = FABRIC_LOCAL,
	.open = source_open,
	.poll = source_poll,
	.room = source_room,
	.send = source_send,
	.settle = source_settle,
	.stop = source_stop,
	.close = source_close,
};
