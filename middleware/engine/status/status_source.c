/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status/status_source: the source's half of the engine `status`.
 *
 * Of the paper's three regions of status bytes it has the first (which of our blocks are full:
 * engine/sender) and the second, the copy of the sink's bytes.  Slots are filled in the order in
 * which they became free.
 *
 * Blocks that are ready at the same time go together: their WRITEs, then their bytes, those of
 * neighbouring slots by one WRITE.
 *
 * At most READS_MAX READs are under way, on one channel, so that each answer is newer than the one
 * before.  A READ is carried out in order with the WRITEs of its own channel only.  With several
 * channels a 0 may thus be older than our last WRITE to that slot, and is believed only if that
 * WRITE was surely carried out before: it is `fenced` by a READ on its own channel, or an earlier
 * answer has shown its byte.
 */
#include "engine/status/status_engine.h"

#include "base/clock.h"
#include "engine/batch.h"
#include "engine/notice.h"
#include "engine/status/status_sync.h"
#include "proto/status.h"
#include "proto/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READS_MAX 2u

_Static_assert(
	BATCH_BLOCKS_MAX <= CHANNEL_NOTICE_BYTES, "their status bytes go inline on every channel");

struct slot {
	uint8_t byte;    /* the copy: enum transfer_byte */
	uint8_t channel; /* that it was last written on */
	uint64_t post;   /* of that channel: sender_posts after it; 0: its byte was seen since */
};

/* A READ under way, and where its answer goes. */
struct reading {
	uint8_t *bytes;
	uint64_t posts; /* of its channel, when it left */
	bool second;    /* one was under way already */
};

struct status_source {
	struct engine_source base;
	struct engine_env env;
	struct batch_limit limit;
	struct status_sync sync;
	/* registered: for each READ, where it puts the sink's whole region, `span` bytes, of which
	 * those of the slots come first and the rest says nothing; then BATCH_BLOCKS_MAX of
	 * TRANSFER_BYTE_DATA, to be written where there is no inline data */
	uint8_t *bytes, *full;
	struct fabric_mr *bytes_mr;
	uint32_t depth, span, unavailable;
	struct slot *slots;
	uint32_t *free, free_head, free_count; /* indices of slots whose byte is FREE: a ring */
	uint64_t fenced[MESSAGE_CHANNELS_MAX]; /* by channel: of its posts, carried out */
	bool waiting;
	struct reading reads[READS_MAX]; /* a ring */
	unsigned read_head, reads_out;
	struct channel *read_channel; /* of all that are out */
	int slack_ns;                 /* of this thread, before */
};

static struct status_source *self(struct engine_source *e)
{
	return (struct status_source *)e;
}

static void source_close(struct engine_source *e)
{
	struct status_source *s = self(e);

	status_sleeps_coarse(s->slack_ns);
	fabric_mr_free(s->bytes_mr);
	sender_free(s->base.sender);
	free(s->bytes);
	free(s->slots);
	slots_fini(&s->base.slots);
	free(s->free);
	free(s);
}

static void put_free(struct status_source *s, uint32_t index)
{
	s->slots[index].byte = TRANSFER_BYTE_FREE;
	slots_empty(&s->base.slots, index);
	s->free[(s->free_head + s->free_count++) % s->depth] = index;
}

static uint32_t take_free(struct status_source *s)
{
	uint32_t index = s->free[s->free_head];

	s->free_head = (s->free_head + 1) % s->depth;
	s->free_count--;
	return index;
}

/* ---- writing blocks ---- */

/* The smallest slots first. */
static void sort_slots(const uint32_t *slots, unsigned count, uint32_t *sorted)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned at = i;

		for (; at && sorted[at - 1] > slots[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = slots[i];
	}
}

/* The blocks, and behind them their slots' bytes. */
static int post_batch(struct status_source *s, struct channel *channel, struct block *const *blocks,
	const uint32_t *slots, unsigned count)
{
	const struct engine_env *env = &s->env;
	bool inlined = fabric_chan_caps(channel->chan)->inline_max >= BATCH_BLOCKS_MAX;
	struct fabric_wr wr[2 * BATCH_BLOCKS_MAX];
	struct fabric_sge sge[2 * BATCH_BLOCKS_MAX];
	uint32_t sorted[BATCH_BLOCKS_MAX];
	unsigned n = 0;

	for (; n < count; n++) {
		struct block *b = blocks[n];

		sge[n] = (struct fabric_sge){b->payload - notice_prefix(env),
			notice_prefix(env) + block_crossing(b), env->mr};
		wr[n] = (struct fabric_wr){
			.next = &wr[n + 1],
			.id = CHANNEL_ID(CHANNEL_DATA, b->index),
			.opcode = FABRIC_WRITE,
			.sge = &sge[n],
			.sge_count = 1,
			.remote_addr = notice_slot_addr(env, slots[n]),
			.remote_key = env->remote_key,
		};
	}
	sort_slots(slots, count, sorted);
	for (unsigned i = 0, run; i < count; i += run, n++) {
		for (run = 1; i + run < count && sorted[i + run] == sorted[i] + run; run++)
			;
		sge[n] = (struct fabric_sge){s->full, run, s->bytes_mr};
		wr[n] = (struct fabric_wr){
			.next = &wr[n + 1],
			.id = CHANNEL_ID(CHANNEL_DATA, sorted[i]),
			.opcode = FABRIC_WRITE,
			.flags = inlined ? FABRIC_INLINE : 0,
			.sge = &sge[n],
			.sge_count = 1,
			.remote_addr = env->remote_status_base + sorted[i],
			.remote_key = env->remote_status_key,
		};
	}
	wr[n - 1].next = NULL;
	return sender_post(s->base.sender, channel, wr, &wr[n - 1], blocks, count);
}

static int send_batch(struct status_source *s, struct block *const *blocks, unsigned count)
{
	struct channel *channel = sender_pick(s->base.sender);
	uint32_t slots[BATCH_BLOCKS_MAX];
	uint64_t post = sender_posts(s->base.sender, channel);

	for (unsigned i = 0; i < count; i++) {
		slots[i] = take_free(s);
		slots_fill(&s->base.slots, slots[i], blocks[i]->length);
		s->slots[slots[i]] = (struct slot){
			.byte = TRANSFER_BYTE_DATA,
			.channel = (uint8_t)channel->number,
			.post = post + i + 1,
		};
	}
	return post_batch(s, channel, blocks, slots, count);
}

/* ---- reading the sink's bytes ---- */

/* The channel on which most was written since its last READ: what is learned there counts for most
 * slots. */
static struct channel *pick_read_channel(const struct status_source *s)
{
	struct channel *best = s->env.channels[0];
	uint64_t most = 0;

	for (unsigned i = 0; i < s->env.channel_count; i++) {
		uint64_t unfenced = sender_posts(s->base.sender, s->env.channels[i]) - s->fenced[i];

		if (unfenced > most) {
			most = unfenced;
			best = s->env.channels[i];
		}
	}
	return best;
}

static int post_read(struct status_source *s)
{
	struct reading *reading = &s->reads[(s->read_head + s->reads_out) % READS_MAX];
	struct channel *channel = s->reads_out ? s->read_channel : pick_read_channel(s);
	struct fabric_sge all = {reading->bytes, s->span, s->bytes_mr};
	struct fabric_wr read = {
		.id = CHANNEL_ID(CHANNEL_STATUS, 0),
		.opcode = FABRIC_READ,
		.flags = FABRIC_SIGNALED,
		.sge = &all,
		.sge_count = 1,
		.remote_addr = s->env.remote_status_base,
		.remote_key = s->env.remote_status_key,
	};

	reading->second = s->reads_out++ > 0;
	reading->posts = sender_posts(s->base.sender, channel);
	s->read_channel = channel;
	if (!reading->second)
		status_sync_asked(&s->sync);
	return channel_post(channel, &read, 0);
}

static int read_if_due(struct status_source *s)
{
	if (s->reads_out || s->free_count == s->depth ||
		!status_sync_due(&s->sync, clock_now_ns(), s->free_count))
		return 0;
	return post_read(s);
}

/* `posts`: those of its own channel that the READ followed. */
static bool believed(const struct status_source *s, const struct slot *slot, uint64_t posts)
{
	return slot->post <=
	       (slot->channel == s->read_channel->number ? posts : s->fenced[slot->channel]);
}

/* One byte of the answer.  0, or -EBADMSG. */
static int merge(struct status_source *s, uint32_t index, uint8_t byte, uint64_t posts)
{
	struct slot *slot = &s->slots[index];

	if (byte > TRANSFER_BYTE_UNAVAILABLE ||
		(byte != TRANSFER_BYTE_FREE && slot->byte == TRANSFER_BYTE_FREE)) {
		verdict_set(s->env.verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"the sink's status byte of slot %u is %u%s", index, byte,
			slot->byte == TRANSFER_BYTE_FREE ? ", though it was free" : "");
		return -EBADMSG;
	}
	if (slot->byte == TRANSFER_BYTE_FREE)
		return 0;
	if (byte == TRANSFER_BYTE_FREE) {
		if (believed(s, slot, posts))
			put_free(s, index);
		return 0;
	}
	slot->byte = byte;
	slot->post = 0;
	s->unavailable += byte == TRANSFER_BYTE_UNAVAILABLE;
	return 0;
}

static int take_answer(struct status_source *s)
{
	const struct reading *reading = &s->reads[s->read_head];
	uint32_t left = s->free_count;
	int err = 0;

	s->reads_out--;
	s->read_head = (s->read_head + 1) % READS_MAX;
	s->unavailable = 0;
	for (uint32_t i = 0; i < s->depth && !err; i++)
		err = merge(s, i, reading->bytes[i], reading->posts);
	s->fenced[s->read_channel->number] = reading->posts;
	(reading->second ? status_sync_second_answered : status_sync_answered)(
		&s->sync, clock_now_ns(), left, s->free_count - left, s->unavailable);
	return err;
}

/* ---- the engine ---- */

/* When the loop is to look again: a READ is due, and nothing else wakes it before. */
static void plan_wake(struct status_source *s)
{
	s->base.common.wake_ns =
		!s->waiting || s->reads_out || s->free_count ? ENGINE_NEVER : s->sync.next_ns;
}

/* A block waits, and no slot is free. */
static int ask(struct status_source *s)
{
	s->waiting = true;
	if (!s->reads_out)
		return read_if_due(s);
	status_sync_waits(&s->sync);
	return s->reads_out < READS_MAX && status_sync_second(&s->sync) ? post_read(s) : 0;
}

static int source_room(struct engine_source *e, unsigned wanted)
{
	struct status_source *s = self(e);
	int err = s->free_count || !wanted ? (int)s->free_count : ask(s);

	plan_wake(s);
	return err;
}

static int source_send(struct engine_source *e, struct block *const *blocks, unsigned count)
{
	struct status_source *s = self(e);
	int err = 0;

	s->waiting = false;
	for (unsigned n; count && !err; blocks += n, count -= n) {
		n = batch_next(&s->limit, blocks, count);
		/* a READ that is due before the last slots are used leaves before them, too */
		if (s->free_count > s->sync.lead && s->free_count - n < s->sync.lead)
			n = s->free_count - s->sync.lead;
		err = send_batch(s, blocks, n);
		/* a clock is looked at only when it is time */
		if (!err && s->free_count <= s->sync.lead && s->free_count)
			err = read_if_due(s);
	}
	plan_wake(s);
	return err;
}

static int take_completion(struct status_source *s, const struct fabric_wc *wc)
{
	int got = sender_completion(s->base.sender, wc);

	return got > 0 && CHANNEL_ID_WHAT(wc->id) == CHANNEL_STATUS ? take_answer(s)
	       : got < 0                                            ? got
								    : 0;
}

static int source_poll(struct engine_source *e, struct block **done, unsigned max)
{
	struct status_source *s = self(e);
	unsigned got = sender_done(e->sender, done, max);

	/* until the queue is empty: the loop may go to sleep when there is nothing */
	while (!got) {
		struct fabric_wc wc[SENDER_POLL_BATCH];
		int n = fabric_cq_poll(s->env.cq, wc, SENDER_POLL_BATCH);

		if (n <= 0)
			return n;
		for (int i = 0; i < n; i++) {
			int err = take_completion(s, &wc[i]);

			if (err < 0)
				return err;
		}
		plan_wake(s);
		got = sender_done(e->sender, done, max);
	}
	return (int)got;
}

static int source_settle(struct engine_source *e)
{
	return self(e)->reads_out ? 0 : sender_flush(e->sender);
}

static void source_stop(struct engine_source *e)
{
	sender_drain(e->sender, self(e)->env.cq);
}

static int source_open(const struct engine_env *env, struct engine_source **out)
{
	struct status_source *s = calloc(1, sizeof *s);
	size_t bytes;
	int err = -ENOMEM;

	if (!s) {
		sender_free(env->sender);
		return err;
	}
	s->base.ops = &status_source_ops;
	err = sender_of(env, &s->base.sender);
	if (err)
		goto err_close;
	err = -ENOMEM;
	s->base.common.wake_ns = ENGINE_NEVER;
	s->env = *env;
	s->depth = env->remote_depth;
	s->span = transfer_status_bytes(s->depth);
	status_sync_init(&s->sync, s->depth, env->channel_count);
	bytes = READS_MAX * (size_t)s->span + BATCH_BLOCKS_MAX;
	s->bytes = calloc(1, bytes);
	s->slots = calloc(s->depth, sizeof *s->slots);
	s->free = calloc(s->depth, sizeof *s->free);
	if (!s->bytes || !s->slots || !s->free || slots_init(&s->base.slots, s->depth))
		goto err_close;
	for (unsigned i = 0; i < READS_MAX; i++)
		s->reads[i].bytes = s->bytes + i * (size_t)s->span;
	s->full = s->bytes + bytes - BATCH_BLOCKS_MAX;
	memset(s->full, TRANSFER_BYTE_DATA, BATCH_BLOCKS_MAX);
	err = fabric_mr_new(env->pd, s->bytes, bytes, FABRIC_LOCAL, &s->bytes_mr);
	if (err)
		goto err_close;
	s->limit = batch_limit_for(env);
	for (uint32_t i = 0; i < s->depth; i++)
		put_free(s, i);
	s->slack_ns = status_sleeps_fine();
	*out = &s->base;
	return 0;

err_close:
	source_close(&s->base);
	return err;
}

const struct engine_source_ops status_source_ops = {
	.access = FABRIC_LOCAL,
	.wants_status = true,
	.open = source_open,
	.poll = source_poll,
	.room = source_room,
	.send = source_send,
	.settle = source_settle,
	.stop = source_stop,
	.close = source_close,
};
