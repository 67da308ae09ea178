/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_blocks: the way of a block at the sink, from its notice to its free slot.
 *
 * Each header is checked against what was announced; then the block goes to the I/O pool, to be
 * verified and written.  With a bucket an emptied slot is free for the source when its time has
 * come; the first ones are free at once, and what comes in them is spent then: who sends nothing
 * keeps no others waiting.
 */
#include "transfer/sink_impl.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32u /* blocks, before other work has its turn */

/* ---- free slots ---- */

void sink_give(struct sink *s, struct block *b)
{
	if (sink_early_is(b)) { /* free for the next transfer */
		b->state = BLOCK_FREE;
		return;
	}
	if (!s->run.bucket) {
		pool_give(s->run.pool, b);
		return;
	}
	s->held[(s->held_head + s->held_count++) % pool_count(s->run.pool)] = b;
}

/* A turn is over when there are none to come, and none that the source can still fill. */
int sink_give_held(struct sink *s)
{
	struct bucket *bucket = s->run.bucket;
	int n = 0;

	if (!bucket)
		return 0;
	run_may_all(&s->run);
	if (s->complete_came) /* nothing more comes */
		return 0;
	for (; s->held_count && run_may_move(&s->run); n++) {
		pool_give(s->run.pool, s->held[s->held_head]);
		s->held_head = (s->held_head + 1) % pool_count(s->run.pool);
		s->held_count--;
		s->away--;
		bucket_spend(bucket, s->block, clock_now_ns());
	}
	if (s->held_count && s->away + pool_free_count(s->run.pool) + s->run.sink->idle ==
				     pool_count(s->run.pool))
		bucket_ask(bucket);
	return n;
}

/* A block of so many bytes has crossed, perhaps into a slot that was given for a whole one. */
static void count_landed(struct sink *s, bool early, uint32_t bytes)
{
	if (!s->run.bucket)
		return;
	if (!early) {
		s->away++;
		bucket_refund(s->run.bucket, s->block - bytes);
	}
	bucket_count(s->run.bucket, bytes, clock_now_ns());
}

void sink_count_verified(struct sink *s, const struct block *b)
{
	atomic_fetch_add_explicit(&s->run.stats->bytes, b->length, memory_order_relaxed);
	if (sink_early_is(b) || s->ahead.invited)
		s->run.stats->early_bytes += b->length;
}

int sink_make_held(struct sink *s)
{
	uint32_t blocks = pool_count(s->run.pool);

	if (!s->run.bucket)
		return 0;
	s->held = calloc(blocks, sizeof(struct block *));
	return s->held ? 0 : -ENOMEM;
}

/* ---- blocks that have landed ---- */

static void submit(struct sink *s, struct sink_file *f, struct block *b)
{
	pool_move(b, BLOCK_DRAINING);
	f->in_io++;
	io_pool_submit(s->run.io_pool, f->reorder ? f->file.file : s->next_worker++, b);
}

int sink_accept_block(struct sink *s, struct sink_file *f, struct block *b)
{
	const struct transfer_block h = {
		.session = b->session,
		.sequence = b->sequence,
		.offset = b->offset,
		.length = b->length,
	};
	struct block *first;
	int err;

	if (!sink_file_takes(f, &h, s->block))
		return -EBADMSG;
	f->landed++;
	if (f->verdict.status) { /* failed before: its other blocks go by */
		sink_give(s, b);
		return sink_check_finished(s, f);
	}
	b->owner = f;
	if (!f->reorder) {
		submit(s, f, b);
		return 0;
	}
	err = reorder_put(f->reorder, b);
	if (err)
		return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
			"file %u: sequence %u came twice or out of "
			"the window",
			h.session, h.sequence);
	first = b;
	while ((b = reorder_get(f->reorder)))
		submit(s, f, b);
	if (first->state == BLOCK_LANDED) /* one before it is missing */
		engine_sink_retain(s->run.sink, first);
	return 0;
}

/* To whoever waits for it, which checks what its header says.  0, -EBADMSG, or a failure. */
static int hand_on(struct sink *s, struct block *b)
{
	struct sink_file *f = sink_find_file(s, b->session);

	if (sink_early_is(b) || s->ahead.invited)
		return sink_early_landed(s, f, b);
	if (!f)
		return sink_keep_early(s, b);
	return f->bundle ? sink_take_bundle_block(s, f, b) : sink_accept_block(s, f, b);
}

int sink_take_block(struct sink *s, struct block *b)
{
	struct transfer_block h;
	uint8_t copy[SEAL_PREFIX_BYTES], *prefix = copy + s->run.prefix_bytes - BLOCK_PREFIX_BYTES;
	const bool early = sink_early_is(b);
	uint32_t crossed;
	int err;

	/* copied once: the peer can write there again, and what was checked must be what is used */
	memcpy(copy, b->payload - s->run.prefix_bytes, s->run.prefix_bytes);
	if (s->run.seal && seal_open_prefix(s->run.seal, copy, b))
		return run_fail(&s->run, VERDICT_SESSION, STATUS_CHECKSUM,
			"a block's header is not what the source sealed: it was changed on its "
			"way");
	err = transfer_get_block(&h, prefix, s->block);
	b->session = h.session;
	b->sequence = h.sequence;
	b->offset = h.offset;
	b->length = h.length;
	b->stored = h.stored;
	crossed = block_crossing(b);
	b->leaf = digest_block_sum(h.sum, prefix); /* xor undoes itself: what the leaf must be */
	if (!err)
		err = hand_on(s, b);
	if (err == -EBADMSG)
		return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
			"a block's header is not allowed: file %u, sequence %u, offset %llu, "
			"length %u",
			h.session, h.sequence, (unsigned long long)h.offset, h.length);
	if (err)
		return err;
	/* the block may be somebody else's by now */
	s->run.stats->crossed_bytes += crossed;
	count_landed(s, early, crossed);
	return 0;
}

int sink_take_landed(struct sink *s)
{
	struct block *done[BATCH];
	int n = run_poll(&s->run, done, io_pool_batch(s->run.io_pool));
	int err = 0;

	for (int i = 0; i < n && !err; i++)
		err = sink_take_block(s, done[i]);
	return err ? err : n;
}

/* ---- blocks that were written ---- */

/* A block that was damaged on its way is fetched once more, and lands as if it had not come. */
static int take_again(struct sink *s, struct sink_file *f)
{
	log_info("file %u: a block was damaged on its way: it is read once more", f->file.file);
	f->in_io--;
	s->away -= s->run.bucket != NULL;
	if (f->bundle)
		sink_bundle_again(f);
	else
		f->landed--;
	return 0;
}

static int take_drained(struct sink *s, struct block *b)
{
	struct sink_file *f = b->owner;

	/* a stream's next block may be written already */
	if (b->error == -EILSEQ && !f->reorder && s->run.sink->ops->again(s->run.sink, b))
		return take_again(s, f);
	f->in_io--;
	if (f->bundle)
		return sink_bundle_verified(s, f, b);
	sink_file_written(f, b, s->block);
	if (!b->error && f->resume)
		sink_resume_add(f->resume, s->run.io_pool, b->offset / s->block, b->leaf);
	if (!b->error)
		sink_count_verified(s, b);
	sink_give(s, b);
	if (!f->verdict.status)
		return sink_check_finished(s, f);
	/* a failed stream holds blocks that wait for their turn: they will not have one */
	while (f->reorder && (b = reorder_drain(f->reorder)))
		sink_give(s, b);
	return sink_fail_early(s, f);
}

int sink_take_drained(struct sink *s)
{
	struct block *done[BATCH];
	unsigned n = io_pool_collect(s->run.io_pool, done, BATCH);
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++)
		err = take_drained(s, done[i]);
	return err ? err : (int)n;
}

/* ---- cut short ---- */

static bool any_in_io(const struct sink *s)
{
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++)
		if (s->files[i] && s->files[i]->in_io)
			return true;
	for (const struct sink_file *f = s->leaving; f; f = f->next)
		if (f->in_io)
			return true;
	return false;
}

static void take_salvaged(struct sink *s, struct block *b)
{
	struct sink_file *f = b->owner;

	f->in_io--;
	if (!b->error && f->resume)
		sink_resume_add(f->resume, s->run.io_pool, b->offset / s->block, b->leaf);
}

void sink_salvage(struct sink *s)
{
	struct pollfd fd = {io_pool_fd(s->run.io_pool), POLLIN, 0};
	struct block *done[BATCH];

	while (s->run.verdict.status != STATUS_PROTOCOL && sink_take_landed(s) > 0)
		;
	while (any_in_io(s)) {
		unsigned n;

		io_pool_arm(s->run.io_pool);
		n = io_pool_collect(s->run.io_pool, done, BATCH);
		if (!n)
			poll(&fd, 1, -1);
		io_pool_disarm(s->run.io_pool);
		for (unsigned i = 0; i < n; i++)
			take_salvaged(s, done[i]);
	}
}
