/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_blocks: the blocks of a source: free, filled by the I/O pool, sent by the engine,
 * free again.
 */
#include "transfer/source_impl.h"

#include "base/clock.h"
#include "block/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32u
#define SEND_BYTES (512u << 10) /* sent while the next ones are prepared */

/* A stream has something and there is no block, because all wait for room: one is dropped.  It is
 * the oldest of the stream that has most of them waiting, so that who sends little loses little. */
static int drop_oldest(struct source *s)
{
	struct source_file *most = NULL;
	struct block *b;
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->filled_count; i++) {
		struct source_file *f = s->filled[(s->filled_head + i) % s->filled_room]->owner;

		if (!most || f->in_io > most->in_io)
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
	most->in_io--;
	most->dropped++;
	pool_give(s->run.pool, b);
	return source_end_file(s, most);
}

/* All blocks that are free go to the feeder, which knows best who needs one. */
static int feed_blocks(struct source *s)
{
	struct block *b;
	int n = 0, err = 0;

	if (s->from->feed->drop_oldest && s->filled_count && !pool_free_count(s->run.pool) &&
		io_pool_feed_hungry(s->run.io_pool) && !s->run.source->ops->room(s->run.source, 0))
		err = drop_oldest(s);
	if (err)
		return err;
	while ((b = pool_take(s->run.pool, BLOCK_FILLING))) {
		b->length = s->plan.block;
		b->squeeze = squeeze_choice_next(&s->squeeze);
		io_pool_submit(s->run.io_pool, 0, b);
		n++;
	}
	return n;
}

int source_fill_blocks(struct source *s)
{
	const int batch = (int)io_pool_batch(s->run.io_pool);
	int n = 0;

	if (s->from->feed)
		return feed_blocks(s);

	while (s->reading && n < batch) {
		struct source_file *f = s->reading;
		bool stream = f->item.file.kind == TRANSFER_FILE_STREAM;
		uint64_t left;
		struct block *b;
		int hole;

		if (f->ready)
			source_skip_had(s, f);
		left = f->item.file.size - f->next_offset;
		if (!f->ready && !source_early_may_read(s, f, left))
			break; /* in order: its READY is on the way */
		if (!left) {
			int err;

			source_stop_reading(s, f);
			err = source_end_file(s, f);
			if (err)
				return err;
			n++;
			continue;
		}
		hole = source_skip_hole(s, f);
		if (hole < 0)
			return hole;
		if (hole) {
			n++;
			continue;
		}
		b = pool_take(s->run.pool, BLOCK_FILLING);
		if (!b)
			break;
		s->early.read += !f->ready;
		b->owner = f;
		b->session = f->number;
		b->offset = f->next_offset;
		b->squeeze =
			f->item.file.kind != TRANSFER_FILE_NULL && squeeze_choice_next(&s->squeeze);
		b->length = !source_file_open_ended(f) && left < s->plan.block ? (uint32_t)left
									       : s->plan.block;
		f->next_offset += b->length;
		f->in_io++;
		if (!source_file_open_ended(f))
			s->unread_bytes -= b->length;
		io_pool_submit(s->run.io_pool, stream ? 0 : s->next_worker++, b);
		n++;
	}
	return n;
}

void source_queue_block(struct source *s, struct block *b)
{
	pool_move(b, BLOCK_FILLED);
	s->filled[(s->filled_head + s->filled_count++) % s->filled_room] = b;
}

/* The same from the feeder, which chose the stream. */
static int take_fed(struct source *s, struct block *b)
{
	struct source_file *f = b->owner;

	if (b->error)
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(b->error), "reading: %s",
			strerror(-b->error));
	if (b->flags & TRANSFER_BLOCK_LAST)
		source_stop_reading(s, f);
	if (!b->length || f->answered) {
		pool_give(s->run.pool, b);
		return source_end_file(s, f);
	}
	b->session = f->number;
	f->in_io++;
	source_queue_block(s, b);
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
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(b->error),
			"reading at offset %llu: %s", (unsigned long long)b->offset,
			strerror(-b->error));
	else if (b->length < wanted && !source_file_open_ended(f))
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_CHANGED,
			"shrank to %llu bytes while it was read",
			(unsigned long long)(b->offset + b->length));
	if (b->error || b->length < wanted)
		source_stop_reading(s, f);
	if (b->error || !b->length || f->verdict.status) {
		pool_give(s->run.pool, b);
		f->in_io--;
		return source_end_file(s, f);
	}
	source_queue_block(s, b);
	return 0;
}

int source_take_filled(struct source *s)
{
	struct block *done[BATCH];
	unsigned n = io_pool_collect(s->run.io_pool, done, BATCH);
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++) {
		if (done[i]->squeeze && !done[i]->error)
			squeeze_choice_note(&s->squeeze, done[i]->stored);
		err = s->from->feed      ? take_fed(s, done[i])
		      : done[i]->session ? take_filled(s, done[i])
					 : source_take_gathered(s, done[i]);
	}
	return err ? err : (int)n;
}

/* The next of its file: its header and its place in the digest. */
static int prepare(struct source *s, struct block *b)
{
	struct source_file *f = b->owner;
	bool stream = f->item.file.kind == TRANSFER_FILE_STREAM;
	struct transfer_block header = {
		.session = f->number,
		.sequence = f->sequence,
		.offset = stream ? f->bytes : b->offset,
		.length = b->length,
		.flags = b->stored ? TRANSFER_BLOCK_STORED : 0,
		.stored = b->stored,
	};
	uint8_t *prefix = b->payload - BLOCK_PREFIX_BYTES;
	uint64_t leaf = stream ? f->sequence : b->offset / s->plan.block;

	transfer_put_block(&header, prefix);
	header.sum = digest_block_sum(b->leaf, prefix);
	transfer_put_block(&header, prefix);
	b->sequence = f->sequence++;
	if (s->run.seal && seal_prefix(s->run.seal, b))
		return -EIO;
	f->bytes += b->length;
	s->run.stats->crossed_bytes += block_crossing(b);
	atomic_fetch_add_explicit(&s->run.stats->bytes, b->length, memory_order_relaxed);
	return f->bundle ? 0 : digest_tree_add(f->tree, leaf, b->leaf);
}

/* Whether its blocks go no further: the sink gave it up.  Of an end that could not be read on,
 * neither file nor blocks are of use, but what a device gave until then is. */
static bool is_given_up(const struct source *s, const struct source_file *f)
{
	return s->from->feed ? f->answered : f->verdict.status;
}

static struct block *take_first(struct source *s)
{
	struct block *b = s->filled[s->filled_head];

	s->filled_head = (s->filled_head + 1) % s->filled_room;
	s->filled_count--;
	return b;
}

/* It is with the fabric, or goes no further: one less that its file waits for. */
static int leave(struct source *s, struct block *b)
{
	struct source_file *f = b->owner;

	f->in_io--;
	return source_end_file(s, f);
}

/* The first filled block, if there is one; those that are given up are dropped before it. */
static int find_first(struct source *s, int *dropped)
{
	int err = 0;

	while (s->filled_count && !err && is_given_up(s, s->filled[s->filled_head]->owner)) {
		struct block *b = take_first(s);

		pool_give(s->run.pool, b);
		err = leave(s, b);
		(*dropped)++;
	}
	return err;
}

/* Whether a block may leave now.  If its turn is over, asks for another one. */
static bool may_send(struct source *s)
{
	if (!s->run.bucket)
		return true;
	run_may_all(&s->run);
	if (!s->filled_count || run_may_move(&s->run))
		return true;
	bucket_ask(s->run.bucket);
	return false;
}

static void count_sent(struct source *s, uint32_t bytes)
{
	if (s->run.bucket)
		bucket_count(s->run.bucket, bytes, clock_now_ns());
}

/* The first filled block is of a file that is not READY. */
static bool first_is_early(const struct source *s)
{
	const struct source_file *f = s->filled[s->filled_head]->owner;

	return !f->ready && !s->handshake.invited;
}

/* It leaves, unless it is too early even for that.  1, 0 or -errno. */
static int send_early(struct source *s)
{
	struct block *b;
	int err;

	if (!source_early_may_send(s))
		return 0;
	b = take_first(s);
	err = prepare(s, b);
	if (!err)
		err = source_early_send(s, b);
	count_sent(s, block_crossing(b));
	s->sending++;
	if (!err)
		err = leave(s, b);
	return err ? err : 1;
}

/* How many blocks the engine takes now, or -errno. */
static int ask_room(struct source *s)
{
	int room = s->run.source->ops->room(s->run.source, s->filled_count);

	if (!room)
		s->run.stats->starved++;
	return room;
}

int source_send_blocks(struct source *s)
{
	const unsigned batch = s->run.bucket ? 1 : BATCH;
	int n = 0, err = find_first(s, &n);

	s->run.wake_ns = 0;
	while (s->filled_count && (s->run.source || first_is_early(s)) && !err && may_send(s)) {
		struct block *blocks[BATCH];
		uint32_t bytes = 0;
		unsigned count = 0;
		int room;

		if (first_is_early(s)) {
			int sent = send_early(s);

			if (sent <= 0) {
				err = sent;
				break;
			}
			n += sent;
			err = find_first(s, &n);
			continue;
		}
		room = ask_room(s);
		if (room <= 0) {
			err = room;
			break;
		}
		while (count < batch && bytes < SEND_BYTES && count < (unsigned)room &&
			s->filled_count && !first_is_early(s) && !err) {
			blocks[count] = take_first(s);
			bytes += block_crossing(blocks[count]);
			err = prepare(s, blocks[count++]);
			if (!err)
				err = find_first(s, &n);
		}
		if (!err)
			err = s->run.source->ops->send(s->run.source, blocks, count);
		count_sent(s, bytes);
		s->sending += count;
		for (unsigned i = 0; i < count && !err; i++)
			err = leave(s, blocks[i]);
		n += (int)count;
	}
	return err ? err : n;
}

int source_take_completions(struct source *s)
{
	struct block *done[BATCH];
	int n = run_poll(&s->run, done, BATCH);

	for (int i = 0; i < n; i++) {
		s->left_bytes += done[i]->length;
		pool_give(s->run.pool, done[i]);
	}
	s->sending -= n > 0 ? (uint32_t)n : 0;
	return n;
}

int source_make_ring(struct source *s)
{
	s->filled_room = pool_count(s->run.pool);
	s->filled = calloc(s->filled_room, sizeof(struct block *));
	return s->filled ? 0 : -ENOMEM;
}
