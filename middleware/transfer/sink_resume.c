/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_resume: see sink_resume.h.
 */
#include "transfer/sink_resume.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define NOTE_NS NS_PER_S
#define NOTE_BYTES (64ull << 20)
#define NOTE_PART 16u /* of a smaller file one such part */

int transfer_notes_add(struct transfer_notes *n, uint64_t index, uint64_t leaf)
{
	if (n->count == n->room) {
		size_t room = n->room ? n->room * 2 : 64;
		struct transfer_note *grown = realloc(n->items, room * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		n->items = grown;
		n->room = room;
	}
	n->items[n->count++] = (struct transfer_note){index, leaf};
	return 0;
}

void transfer_notes_free(struct transfer_notes *n)
{
	free(n->items);
	n->items = NULL;
	n->count = n->room = 0;
}

int sink_resume_new(const struct transfer_sink *to, void *cookie, uint64_t size,
	uint32_t block_bytes, struct sink_resume **out)
{
	struct sink_resume *r = calloc(1, sizeof *r);

	if (!r)
		return -ENOMEM;
	r->to = to;
	r->cookie = cookie;
	r->block_bytes = block_bytes;
	r->note_bytes = size / NOTE_PART < NOTE_BYTES ? size / NOTE_PART : NOTE_BYTES;
	r->noted_ns = clock_now_ns();
	*out = r;
	return 0;
}

void sink_resume_free(struct sink_resume *r)
{
	if (!r)
		return;
	assert(!r->out);
	transfer_notes_free(&r->found);
	transfer_notes_free(&r->gathered);
	transfer_notes_free(&r->noting);
	free(r);
}

static void run_recall(struct io_pool_job *job)
{
	struct sink_resume *r = (struct sink_resume *)job;

	r->more = r->to->resume->recall(r->to->ctx, r->cookie, r->block_bytes, &r->found);
}

static void run_note(struct io_pool_job *job)
{
	struct sink_resume *r = (struct sink_resume *)job;

	r->to->resume->note(r->to->ctx, r->cookie, r->noting.items, r->noting.count);
	r->noting.count = 0;
}

static void submit(
	struct sink_resume *r, struct io_pool *io_pool, void (*run)(struct io_pool_job *))
{
	r->job.run = run;
	r->out = true;
	io_pool_submit_job(io_pool, &r->job);
}

void sink_resume_recall(struct sink_resume *r, struct io_pool *io_pool)
{
	submit(r, io_pool, run_recall);
}

void sink_resume_stop(struct sink_resume *r)
{
	atomic_store_explicit(&r->found.stop, true, memory_order_relaxed);
}

struct sink_resume *sink_resume_of_job(struct io_pool_job *job)
{
	struct sink_resume *r = (struct sink_resume *)job;

	if (job->run != run_recall && job->run != run_note)
		return NULL;
	r->out = false;
	return r;
}

/* What is gathered is the job's, whose own list is empty. */
static void exchange(struct sink_resume *r)
{
	struct transfer_note *items = r->noting.items;
	size_t room = r->noting.room;

	assert(!r->noting.count);
	r->noting.items = r->gathered.items;
	r->noting.count = r->gathered.count;
	r->noting.room = r->gathered.room;
	r->gathered.items = items;
	r->gathered.room = room;
	r->gathered.count = 0;
}

void sink_resume_note(struct sink_resume *r, struct io_pool *io_pool)
{
	uint64_t now;

	if (r->out || !r->gathered.count)
		return;
	now = clock_now_ns();
	if (now - r->noted_ns < NOTE_NS && r->gathered.count * r->block_bytes < r->note_bytes)
		return;
	r->noted_ns = now;
	exchange(r);
	submit(r, io_pool, run_note);
}

void sink_resume_add(struct sink_resume *r, struct io_pool *io_pool, uint64_t index, uint64_t leaf)
{
	/* one that is not noted is sent again */
	if (!transfer_notes_add(&r->gathered, index, leaf))
		sink_resume_note(r, io_pool);
}

void sink_resume_flush(struct sink_resume *r)
{
	assert(!r->out);
	exchange(r);
	run_note(&r->job);
}
