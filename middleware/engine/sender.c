/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/sender: see sender.h.
 */
#include "engine/sender.h"

#include "base/clock.h"
#include "engine/moderation.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define EVERY_MAX 16u /* blocks that one completion may tell of */

/* One channel's blocks, in the order of posting: a ring. */
struct sender_channel {
	struct block **ring;
	uint64_t posts, done; /* blocks, ever; their difference is in the ring */
};

struct sender {
	struct channel *const *channels;
	unsigned channel_count, last_channel;
	struct verdict *verdict;
	uint32_t blocks;
	struct send_count every;  /* that is signalled */
	bool local;               /* completions say that a block has left, no more */
	uint32_t out;             /* blocks with the fabric */
	uint64_t gap_ns, last_ns; /* between two that were done, lately; the last */
	struct block **ready;     /* done and not taken: a ring */
	uint32_t ready_head, ready_count;
	struct sender_channel channel[];
};

int sender_of(const struct engine_env *env, struct sender **out)
{
	if (!env->sender)
		return sender_new(env, out);
	*out = env->sender;
	return 0;
}

int sender_poll(struct sender *s, struct fabric_cq *cq, struct block **done, unsigned max)
{
	unsigned got = sender_done(s, done, max);

	/* until the queue is empty: the loop may go to sleep when there is nothing */
	while (!got) {
		struct fabric_wc wc[SENDER_POLL_BATCH];
		int n = fabric_cq_poll(cq, wc, SENDER_POLL_BATCH);

		if (n <= 0)
			return n;
		for (int i = 0; i < n; i++) {
			int err = sender_completion(s, &wc[i]);

			if (err < 0)
				return err;
		}
		got = sender_done(s, done, max);
	}
	return (int)got;
}

int sender_new(const struct engine_env *env, struct sender **out)
{
	struct sender *s = calloc(1, sizeof *s + env->channel_count * sizeof s->channel[0]);
	uint32_t every;
	bool good;

	if (!s)
		return -ENOMEM;
	s->channels = env->channels;
	s->channel_count = env->channel_count;
	s->verdict = env->verdict;
	s->blocks = pool_count(env->pool);
	s->local = !fabric_chan_caps(env->channels[0]->chan)->write_delivered;
	s->last_ns = clock_now_ns();
	every = s->blocks / (2 * s->channel_count + 2);
	s->every.requests = UINT32_MAX;
	s->every.blocks = every < 1 ? 1 : every > EVERY_MAX ? EVERY_MAX : every;
	s->ready = calloc(s->blocks, sizeof *s->ready);
	good = s->ready;
	for (unsigned i = 0; i < s->channel_count; i++) {
		s->channel[i].ring = calloc(s->blocks, sizeof *s->channel[i].ring);
		good = good && s->channel[i].ring;
	}
	if (!good) {
		sender_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void sender_free(struct sender *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->channel_count; i++)
		free(s->channel[i].ring);
	free(s->ready);
	free(s);
}

struct channel *sender_pick(struct sender *s)
{
	struct channel *const *channels = s->channels;
	unsigned best = 0;

	for (unsigned k = 1; k <= s->channel_count; k++) {
		unsigned i = (s->last_channel + k) % s->channel_count;

		if (k == 1 || channels[i]->outstanding_bytes < channels[best]->outstanding_bytes)
			best = i;
	}
	s->last_channel = best;
	return channels[best];
}

int sender_post(struct sender *s, struct channel *channel, const struct fabric_wr *list,
	struct fabric_wr *last, struct block *const *blocks, unsigned count)
{
	struct sender_channel *l = &s->channel[channel->number];
	/* how many requests it is does not matter here: `every` has blocks */
	struct send_count posting = {.requests = 1, .blocks = count};
	int err;

	if (send_queue_due(&channel->queue, posting, s->every))
		last->flags |= FABRIC_SIGNALED;
	err = channel_post(channel, list, count);
	if (err)
		return err;
	for (unsigned i = 0; i < count; i++) {
		pool_move(blocks[i], BLOCK_SENDING);
		l->ring[l->posts++ % s->blocks] = blocks[i];
		channel->outstanding_bytes += block_crossing(blocks[i]);
	}
	s->out += count;
	assert(s->out <= s->blocks);
	return 0;
}

uint64_t sender_posts(const struct sender *s, const struct channel *channel)
{
	return s->channel[channel->number].posts;
}

static void note_pace(struct sender *s, uint32_t done)
{
	uint64_t now;

	if (!s->local || s->blocks < MODERATION_BLOCKS_MIN)
		return;
	now = clock_now_ns();
	s->gap_ns = (3 * s->gap_ns + (now - s->last_ns) / done) / 4;
	s->last_ns = now;
}

uint64_t sender_moderation_ns(const struct sender *s)
{
	return s->local ? moderation_ns(s->blocks, s->out, s->gap_ns) : 0;
}

int sender_completion(struct sender *s, const struct fabric_wc *wc)
{
	struct channel *channel = fabric_chan_context(wc->chan);
	struct sender_channel *l;
	uint32_t sent;
	int err = channel_completion(wc, &sent, s->verdict);

	if (!sent)
		return err; /* it may be of a channel that is open and not used here: a greeting */
	assert(channel->number < s->channel_count);
	l = &s->channel[channel->number];
	assert(sent <= l->posts - l->done);
	for (uint32_t i = 0; i < sent; i++) {
		struct block *b = l->ring[l->done++ % s->blocks];

		channel->outstanding_bytes -= block_crossing(b);
		s->ready[(s->ready_head + s->ready_count++) % s->blocks] = b;
	}
	s->out -= sent;
	note_pace(s, sent);
	return err;
}

unsigned sender_done(struct sender *s, struct block **done, unsigned max)
{
	unsigned n = 0;

	while (n < max && s->ready_count) {
		done[n++] = s->ready[s->ready_head];
		s->ready_head = (s->ready_head + 1) % s->blocks;
		s->ready_count--;
	}
	return n;
}

int sender_flush(struct sender *s)
{
	bool settled = !s->ready_count;

	for (unsigned i = 0; i < s->channel_count; i++) {
		struct fabric_wr nothing = {
			.id = CHANNEL_ID(CHANNEL_DATA, 0),
			.opcode = FABRIC_WRITE,
			.flags = FABRIC_SIGNALED,
		};
		int err;

		if (s->channel[i].done == s->channel[i].posts)
			continue;
		settled = false;
		if (!s->channels[i]->queue.silent.blocks)
			continue; /* a completion of all is to come */
		err = channel_post(s->channels[i], &nothing, 0);
		if (err)
			return err;
	}
	return settled;
}

void sender_drain(struct sender *s, struct fabric_cq *cq)
{
	struct fabric_wc wc[SENDER_POLL_BATCH];
	int n;

	while ((n = fabric_cq_poll(cq, wc, SENDER_POLL_BATCH)) > 0)
		for (int i = 0; i < n; i++)
			if (wc[i].status == FABRIC_OK)
				sender_completion(s, &wc[i]);
}
