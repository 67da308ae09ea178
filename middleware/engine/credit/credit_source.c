/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/credit/credit_source: the source's half of the engine `credit`.
 */
#include "engine/credit/credit_engine.h"

#include "base/clock.h"
#include "block/credit.h"
#include "engine/batch.h"
#include "engine/notice.h"
#include "proto/status.h"
#include "proto/transfer.h"

#include <errno.h>
#include <stdlib.h>

#define LAST_WORD_NS NS_PER_S /* the sink says why it closes a channel: on the control channel */
_Static_assert(BATCH_BLOCKS_MAX == TRANSFER_GATHERED_MAX, "one notice has room for a batch");

struct credit_source {
	struct engine_source base;
	struct engine_env env;
	struct credit_book *book;
	struct batch_limit limit;
	bool asked;         /* a REQUEST is out */
	uint64_t broken_ns; /* since when a channel is dead; 0: none is */
};

static struct credit_source *self(struct engine_source *e)
{
	return (struct credit_source *)e;
}

/* ---- blocks ---- */

/* They leave on one channel, with one notice. */
static int send_batch(struct credit_source *c, struct block *const *blocks, unsigned count)
{
	uint32_t indices[BATCH_BLOCKS_MAX];
	int err = 0;

	for (unsigned i = 0; i < count && !err; i++) {
		err = credit_book_spend(c->book, &indices[i]);
		if (!err)
			slots_fill(&c->base.slots, indices[i], blocks[i]->length);
	}
	return err ? err
		   : notice_post_gathered(&c->env, c->base.sender, sender_pick(c->base.sender),
			     blocks, indices, count);
}

/* One block and its notice. */
static int send_alone(struct credit_source *c, struct block *b)
{
	uint32_t index;
	int err = credit_book_spend(c->book, &index);

	if (!err)
		slots_fill(&c->base.slots, index, b->length);
	return err ? err
		   : notice_post(&c->env, c->base.sender, sender_pick(c->base.sender), b, index);
}

static int source_send(struct engine_source *e, struct block *const *blocks, unsigned count)
{
	struct credit_source *c = self(e);
	bool gathered = c->env.notice == TRANSFER_NOTICE_GATHERED;
	int err = 0;

	for (unsigned n; count && !err; blocks += n, count -= n) {
		n = gathered ? batch_next(&c->limit, blocks, count) : 1;
		err = gathered ? send_batch(c, blocks, n) : send_alone(c, blocks[0]);
	}
	return err;
}

static int source_poll(struct engine_source *e, struct block **done, unsigned max)
{
	return sender_poll(e->sender, self(e)->env.cq, done, max);
}

/* ---- credits ---- */

static int take_grant(struct engine_source *e, const uint8_t *data, size_t len)
{
	struct credit_source *c = self(e);
	struct transfer_grant grant;
	uint32_t indices[64];

	if (transfer_get_grant(&grant, data, len))
		return -EBADMSG;
	for (unsigned i = 0; i < grant.count;) {
		unsigned n = 0;

		while (n < 64 && i < grant.count)
			indices[n++] = transfer_grant_index(&grant, i++);
		if (credit_book_add(c->book, indices, n)) {
			verdict_set(c->env.verdict, VERDICT_SESSION, STATUS_PROTOCOL,
				"the sink granted a block twice, or one that it does not have");
			return -EBADMSG;
		}
		while (n)
			slots_empty(&c->base.slots, indices[--n]);
	}
	c->asked = false;
	return 0;
}

/* With nothing posted no completion tells of a channel that broke, and the sink may never notice.
 */
static int check_channels(struct credit_source *c)
{
	struct verdict broken = {0};
	int err = channel_check(c->env.channels, c->env.channel_count, &broken);

	if (!err)
		return 0;
	if (!c->broken_ns)
		c->broken_ns = clock_now_ns();
	if (clock_now_ns() - c->broken_ns < LAST_WORD_NS)
		return 0;
	verdict_join(c->env.verdict, &broken);
	return err;
}

static int source_room(struct engine_source *e, unsigned wanted)
{
	struct credit_source *c = self(e);
	uint32_t room = credit_book_available(c->book);
	int err;

	if (room || !wanted)
		return (int)room;
	err = check_channels(c);
	if (err || c->asked)
		return err;
	c->asked = true;
	return c->env.put(c->env.put_ctx, TRANSFER_REQUEST, NULL, 0);
}

/* ---- beginning and end ---- */

static int source_settle(struct engine_source *e)
{
	return sender_flush(e->sender);
}

static void source_stop(struct engine_source *e)
{
	sender_drain(e->sender, self(e)->env.cq);
}

static void source_close(struct engine_source *e)
{
	struct credit_source *c = self(e);

	credit_book_free(c->book);
	slots_fini(&c->base.slots);
	sender_free(c->base.sender);
	free(c);
}

static int source_open(const struct engine_env *env, struct engine_source **out)
{
	struct credit_source *c = calloc(1, sizeof *c);
	int err;

	if (!c) {
		sender_free(env->sender);
		return -ENOMEM;
	}
	c->base.ops = &credit_source_ops;
	c->base.common.wake_ns = ENGINE_NEVER;
	c->env = *env;
	c->limit = batch_limit_for(env);
	err = sender_of(env, &c->base.sender);
	if (!err)
		err = slots_init(&c->base.slots, env->remote_depth);
	if (!err)
		err = credit_book_new(env->remote_depth, &c->book);
	if (err) {
		source_close(&c->base);
		return err;
	}
	*out = &c->base;
	return 0;
}

const struct engine_source_ops credit_source_ops = {
	.access = FABRIC_LOCAL,
	.moderate = true,
	.frames = {{TRANSFER_GRANT, take_grant}},
	.open = source_open,
	.poll = source_poll,
	.room = source_room,
	.send = source_send,
	.settle = source_settle,
	.stop = source_stop,
	.close = source_close,
};
