/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_blocks: the blocks of a source: free, filled by the crew, sent by the engine,
 * free again.
 */
#include "transfer/source_impl.h"

#include "block/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32u

/* A stream has something and there is no block, because all wait for room: one is dropped.  It is
 * the oldest of the stream that has most of them waiting, so that who sends little loses little. */
static int drop_oldest(struct source *s)
{
	struct source_file *most = NULL;
	struct block *b;
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->filled_count; i++) {
		struct source_file *f = s->filled[(s->filled_head + i) % s->filled_room]->owner;

		if (!most || f->in_crew > most->in_crew)
			most = f;
	}
	while (s->filled[(s->filled_head + at) % s->filled_room]->owner != most)
		at++;
	b = s->filled[(s->filled_head + at) % s->filled_room];
	for (; at; at--) /* those before it move up by one */
		s->filled[(s->filled_head + at) % s->filled_room] =
			s->filled[(s->filled_head + at - 1) % s->filled_room];
	s->filled_head = (s->filled_head + 1) % s->filled_room;
	s->filled_count--;
	most->in_crew--;
	most->dropped++;
	pool_give(s->run.pool, b);
	return source_end_file(s, most);
}

/* All blocks that are free go to the feeder, which knows best who needs one. */
static int feed_blocks(struct source *s)
{
	struct block *b;
	int n = 0, r = 0;

	if (s->from->feed->drop_oldest && s->filled_count && !pool_free_count(s->run.pool) &&
		crew_feed_hungry(s->run.crew) && !s->run.engine->ops->room(s->run.engine))
		r = drop_oldest(s);
	if (r)
		return r;
	while ((b = pool_take(s->run.pool, BLOCK_FILLING))) {
		b->length = s->plan.block;
		crew_submit(s->run.crew, 0, b);
		n++;
	}
	return n;
}

int source_fill_blocks(struct source *s)
{
	const int batch = (int)crew_batch(s->run.crew);
	int n = 0;

	if (s->from->feed)
		return feed_blocks(s);

	while (s->reading && n < batch) {
		struct source_file *f = s->reading;
		bool stream = f->item.file.kind == TRANSFER_FILE_STREAM;
		uint64_t left = f->item.file.size - f->next_offset;
		struct block *b;

		if (!f->ready)
			break; /* in order: its READY is on the way */
		if (!left) {
			int r;

			source_stop_reading(s, f);
			r = source_end_file(s, f);
			if (r)
				return r;
			n++;
			continue;
		}
		b = pool_take(s->run.pool, BLOCK_FILLING);
		if (!b)
			break;
		b->owner = f;
		b->session = f->number;
		b->offset = f->next_offset;
		b->length = !source_file_open_ended(f) && left < s->plan.block ? (uint32_t)left
									       : s->plan.block;
		f->next_offset += b->length;
		f->in_crew++;
		if (!source_file_open_ended(f))
			s->unread_bytes -= b->length;
		crew_submit(s->run.crew, stream ? 0 : s->next_worker++, b);
		n++;
	}
	return n;
}

/* The same from the feeder, which chose the stream. */
static int take_fed(struct source *s, struct block *b)
{
	struct source_file *f = b->owner;

	if (b->error)
		source_file_fail(f, b->error, b->error == -EIO ? STATUS_IO : 0, "reading: %s",
			strerror(-b->error));
	if (b->flags & TRANSFER_BLOCK_LAST)
		source_stop_reading(s, f);
	if (!b->length || f->answered) {
		pool_give(s->run.pool, b);
		return source_end_file(s, f);
	}
	b->session = f->number;
	pool_move(b, BLOCK_FILLED);
	f->in_crew++;
	s->filled[(s->filled_head + s->filled_count++) % s->filled_room] = b;
	return 0;
}

/* A block comes back from its worker: to be sent, or the file ends here. */
static int take_filled(struct source *s, struct block *b)
{
	struct source_file *f = b->owner;
	uint64_t wanted = source_file_open_ended(f) ? s->plan.block : f->item.file.size - b->offset;

	if (wanted > s->plan.block)
		wanted = s->plan.block;
	if (b->error)
		source_file_fail(f, b->error, b->error == -EIO ? STATUS_IO : 0,
			"reading at offset %llu: %s", (unsigned long long)b->offset,
			strerror(-b->error));
	else if (b->length < wanted && !source_file_open_ended(f))
		source_file_fail(f, 0, STATUS_CHANGED, "shrank to %llu bytes while it was read",
			(unsigned long long)(b->offset + b->length));
	if (b->error || b->length < wanted)
		source_stop_reading(s, f);
	if (b->error || !b->length || f->status) {
		pool_give(s->run.pool, b);
		f->in_crew--;
		return source_end_file(s, f);
	}
	pool_move(b, BLOCK_FILLED);
	s->filled[(s->filled_head + s->filled_count++) % s->filled_room] = b;
	return 0;
}

int source_take_filled(struct source *s)
{
	struct block *done[BATCH];
	unsigned n = crew_collect(s->run.crew, done, BATCH);
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++)
		r = s->from->feed ? take_fed(s, done[i]) : take_filled(s, done[i]);
	return r ? r : (int)n;
}

static int send_block(struct source *s, struct block *b)
{
	struct source_file *f = b->owner;
	bool stream = f->item.file.kind == TRANSFER_FILE_STREAM;
	struct transfer_block header = {
		.session = f->number,
		.sequence = f->sequence,
		.offset = stream ? f->bytes : b->offset,
		.length = b->length,
	};
	uint8_t *prefix = b->payload - BLOCK_PREFIX_BYTES;
	uint64_t leaf = stream ? f->sequence : b->offset / s->plan.block;
	int r;

	transfer_put_block(&header, prefix);
	header.sum = digest_block_sum(b->leaf, prefix);
	transfer_put_block(&header, prefix);
	b->sequence = f->sequence++;
	f->bytes += b->length;
	f->in_crew--;
	atomic_fetch_add_explicit(&s->run.stats->bytes, b->length, memory_order_relaxed);
	r = digest_tree_add(f->tree, leaf, b->leaf);
	if (!r)
		r = s->run.engine->ops->send(s->run.engine, b);
	return r ? r : source_end_file(s, f);
}

/* Whether its blocks go no further: the sink gave it up.  Of an end that could not be read on,
 * neither file nor blocks are of use, but what a device gave until then is. */
static bool is_given_up(const struct source *s, const struct source_file *f)
{
	return s->from->feed ? f->answered : f->status;
}

int source_send_blocks(struct source *s)
{
	const struct engine_ops *ops = s->run.engine->ops;
	int n = 0, r = 0;

	while (s->filled_count && !r) {
		struct block *b = s->filled[s->filled_head];
		struct source_file *f = b->owner;

		if (!is_given_up(s, f) && !ops->room(s->run.engine)) {
			s->run.stats->starved++;
			r = ops->starving(s->run.engine);
			if (r == -ECONNRESET)
				run_fail(&s->run, r, 0, "a data channel broke");
			break;
		}
		s->filled_head = (s->filled_head + 1) % s->filled_room;
		s->filled_count--;
		n++;
		if (is_given_up(s, f)) {
			pool_give(s->run.pool, b);
			f->in_crew--;
			r = source_end_file(s, f);
		} else {
			r = send_block(s, b);
		}
	}
	return r ? r : n;
}

int source_take_completions(struct source *s)
{
	struct block *done[BATCH];
	int n = run_poll(&s->run, done, BATCH);

	for (int i = 0; i < n; i++)
		pool_give(s->run.pool, done[i]);
	return n;
}

int source_make_ring(struct source *s)
{
	s->filled_room = pool_count(s->run.pool);
	s->filled = calloc(s->filled_room, sizeof(struct block *));
	return s->filled ? 0 : -ENOMEM;
}
