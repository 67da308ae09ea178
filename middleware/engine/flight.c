/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/flight: see flight.h.
 */
#include "engine/flight.h"

#include "base/clock.h"
#include "engine/lull.h"
#include "engine/stripe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define EVERY_MAX 16u /* blocks that one completion may tell of */
#define POLL_BATCH 32

/* One lane's blocks, in the order of posting: a ring. */
struct flight_lane {
	struct block **ring;
	uint64_t posts, done; /* blocks, ever; their difference is in the ring */
	uint32_t silent;      /* posted since the last signalled one */
	bool flushing;
	uint64_t flush_posts;
};

struct flight {
	struct lane *const *lanes;
	struct fabric_cq *cq; /* of all lanes */
	unsigned lane_count, last_lane;
	uint32_t blocks, every;
	bool local;               /* completions say that a block has left, no more */
	uint32_t out;             /* blocks with the fabric */
	uint64_t gap_ns, last_ns; /* between two that were done, lately; the last */
	bool *full;               /* by index: with the fabric */
	struct block **ready;     /* done and not taken: a ring */
	uint32_t ready_head, ready_count;
	struct flight_lane lane[];
};

int flight_new(const struct engine_env *env, struct flight **out)
{
	struct flight *f = calloc(1, sizeof *f + env->lane_count * sizeof f->lane[0]);
	bool good;

	if (!f)
		return -ENOMEM;
	f->lanes = env->lanes;
	f->lane_count = env->lane_count;
	f->cq = env->cq;
	f->blocks = pool_count(env->pool);
	f->local = !fabric_chan_caps(env->lanes[0]->chan)->write_delivered;
	f->last_ns = clock_now_ns();
	f->every = f->blocks / (2 * f->lane_count + 2);
	f->every = f->every < 1 ? 1 : f->every > EVERY_MAX ? EVERY_MAX : f->every;
	f->full = calloc(f->blocks, sizeof *f->full);
	f->ready = calloc(f->blocks, sizeof *f->ready);
	good = f->full && f->ready;
	for (unsigned i = 0; i < f->lane_count; i++) {
		f->lane[i].ring = calloc(f->blocks, sizeof *f->lane[i].ring);
		good = good && f->lane[i].ring;
	}
	if (!good) {
		flight_free(f);
		return -ENOMEM;
	}
	*out = f;
	return 0;
}

void flight_free(struct flight *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < f->lane_count; i++)
		free(f->lane[i].ring);
	free(f->full);
	free(f->ready);
	free(f);
}

struct lane *flight_pick(struct flight *f)
{
	return stripe_pick(f->lanes, f->lane_count, &f->last_lane);
}

bool flight_signals(const struct flight *f, const struct lane *lane, unsigned count)
{
	return f->lane[lane->number].silent + count >= f->every;
}

void flight_add(struct flight *f, const struct lane *lane, struct block *b, bool signalled)
{
	struct flight_lane *l = &f->lane[lane->number];

	assert(!f->full[b->index]);
	pool_move(b, BLOCK_SENDING);
	f->full[b->index] = true;
	f->out++;
	l->ring[l->posts++ % f->blocks] = b;
	l->silent = signalled ? 0 : l->silent + 1;
	f->lanes[lane->number]->outstanding_bytes += b->length;
}

uint64_t flight_posts(const struct flight *f, const struct lane *lane)
{
	return f->lane[lane->number].posts;
}

static void retire_oldest(struct flight *f, struct flight_lane *l, struct lane *lane)
{
	struct block *b = l->ring[l->done++ % f->blocks];

	assert(f->full[b->index]);
	f->full[b->index] = false;
	f->out--;
	lane->outstanding_bytes -= b->length;
	f->ready[(f->ready_head + f->ready_count++) % f->blocks] = b;
}

void flight_done(struct flight *f, struct lane *lane, uint64_t posts)
{
	struct flight_lane *l = &f->lane[lane->number];

	while (l->done < posts)
		retire_oldest(f, l, lane);
	if (l->done == l->posts)
		l->silent = 0;
}

static void note_pace(struct flight *f, uint32_t done)
{
	uint64_t now;

	if (!done || !f->local || f->blocks < LULL_BLOCKS_MIN)
		return;
	now = clock_now_ns();
	f->gap_ns = (3 * f->gap_ns + (now - f->last_ns) / done) / 4;
	f->last_ns = now;
}

uint64_t flight_lull_ns(const struct flight *f)
{
	return f->local ? lull_ns(f->blocks, f->out, f->gap_ns) : 0;
}

/* 1 it was of ours, 0 of somebody else's. */
static int take_completion(struct flight *f, const struct fabric_wc *wc)
{
	const uint32_t out = f->out;
	struct lane *lane = fabric_chan_context(wc->chan);
	struct flight_lane *l = &f->lane[lane->number];

	switch (LANE_ID_WHAT(wc->id)) {
	case LANE_BEHIND:
		assert(LANE_ID_NUMBER(wc->id) < f->blocks && f->full[LANE_ID_NUMBER(wc->id)]);
		while (f->full[LANE_ID_NUMBER(wc->id)])
			retire_oldest(f, l, lane);
		note_pace(f, out - f->out);
		return 1;
	case LANE_FLUSH:
		l->flushing = false;
		flight_done(f, lane, l->flush_posts);
		return 1;
	default:
		return 0;
	}
}

static int take_ready(struct flight *f, struct block **done, unsigned max)
{
	unsigned n = 0;

	while (n < max && f->ready_count) {
		done[n++] = f->ready[f->ready_head];
		f->ready_head = (f->ready_head + 1) % f->blocks;
		f->ready_count--;
	}
	return (int)n;
}

int flight_poll(struct flight *f, const struct flight_ops *ops, void *ctx, struct block **done,
	unsigned max)
{
	int got = take_ready(f, done, max);

	/* until the queue is empty: the loop may go to sleep when there is nothing */
	while (!got) {
		struct fabric_wc wc[POLL_BATCH];
		int n = ops->take ? ops->take(ctx, wc, POLL_BATCH)
				  : fabric_cq_poll(f->cq, wc, POLL_BATCH);

		if (n <= 0)
			return n;
		for (int i = 0; i < n; i++) {
			int r = lane_completion(&wc[i]);

			if (r > 0)
				r = take_completion(f, &wc[i]) || !ops->other
					    ? 0
					    : ops->other(ctx, &wc[i]);
			if (r < 0)
				return r;
		}
		got = take_ready(f, done, max);
	}
	return got;
}

int flight_flush(struct flight *f)
{
	bool settled = !f->ready_count;

	for (unsigned i = 0; i < f->lane_count; i++) {
		struct flight_lane *l = &f->lane[i];
		struct fabric_wr nothing = {
			.id = LANE_ID(LANE_FLUSH, 0),
			.opcode = FABRIC_WRITE,
			.flags = FABRIC_SIGNALED,
		};
		int r;

		if (l->done == l->posts && !l->flushing)
			continue;
		settled = false;
		if (l->flushing || !l->silent)
			continue; /* its completion, or a block's own, is to come */
		r = lane_post(f->lanes[i], &nothing);
		if (r)
			return r;
		l->flushing = true;
		l->flush_posts = l->posts;
		l->silent = 0;
	}
	return settled;
}
