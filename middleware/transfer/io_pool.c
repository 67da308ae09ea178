/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/io_pool: see io_pool.h.
 *
 * The threads are I/O workers or, for a feed, the feeder's one.  Each I/O worker owns one end queue
 * and takes from one inbox; all put into one outbox.  A block crosses two queues and nothing else:
 * what is in it is owned by whoever holds it.  A thread starts when there is something for it to
 * do: to start and join those that a small file does not need would take longer than the file.  On
 * few CPUs the transfer's thread does buffered I/O itself, through an end queue of its own;
 * streams, which may wait, and O_DIRECT, which is asynchronous, stay with workers.
 */
#include "transfer/io_pool.h"

#include "base/wakeup.h"
#include "base/queue.h"
#include "base/worker.h"
#include "block/digest.h"
#include "block/seal.h"
#include "block/squeeze.h"
#include "transfer/feeder.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define REAP_BATCH 16u
#define SUBMIT_BATCH 32u
#define WORKERS_MAX 16u

/* What one thread does to payloads beside the checksum. */
struct io_pool_coder {
	struct seal *seal;       /* NULL: blocks are in the clear */
	struct squeeze *squeeze; /* made when there is need of it */
	unsigned level;
};

struct io_pool_worker {
	struct io_pool *io_pool;
	struct worker thread;
	struct queue *inbox;
	struct end_queue *io;
	struct io_pool_coder coder;
};

struct io_pool {
	bool reading;
	unsigned worker_count;
	unsigned jobs_max, job_count; /* job threads: at most, and started */
	unsigned jobs_out;            /* jobs not collected yet */
	struct io_pool_worker workers[WORKERS_MAX];
	struct feeder *feeder;
	struct end_queue *here;     /* of the transfer's thread; NULL: it does no I/O */
	struct io_pool_coder coder; /* of that thread, or of the feeder's */
	struct worker job_threads[WORKERS_MAX];
	struct queue *outbox, *jobs, *jobs_done;
	struct wakeup wakeup; /* of the transfer's thread */
};

static int coder_init(struct io_pool_coder *coder, struct seal_key *key, unsigned level)
{
	coder->level = level;
	return key ? seal_new(key, &coder->seal) : 0;
}

static void coder_fini(struct io_pool_coder *coder)
{
	seal_free(coder->seal);
	squeeze_free(coder->squeeze);
}

static int coder_need_squeeze(struct io_pool_coder *coder)
{
	return coder->squeeze ? 0 : squeeze_new(coder->level, &coder->squeeze);
}

/* Before a write: the payload must be what the source read. */
static void verify(struct io_pool_coder *coder, struct block *b)
{
	if (coder->seal)
		b->error = seal_open_payload(coder->seal, b);
	if (!b->error && b->stored) {
		b->error = coder_need_squeeze(coder);
		if (!b->error)
			b->error = squeeze_unpack(coder->squeeze, b);
	}
	if (!b->error && digest_leaf(b->payload, b->length) != b->leaf)
		b->error = -EILSEQ;
}

/* After a read: what the payload is; then as it crosses, smaller and sealed. */
static void finish_read(struct io_pool_coder *coder, struct block *b)
{
	b->stored = 0;
	if (b->error)
		return;
	b->leaf = digest_leaf(b->payload, b->length);
	if (b->squeeze && coder->level && !coder_need_squeeze(coder))
		squeeze_pack(coder->squeeze, b);
	if (coder->seal && b->length)
		b->error = seal_payload(coder->seal, b);
}

static void hand_out(
	struct io_pool *c, struct io_pool_coder *coder, struct block **blocks, unsigned n)
{
	for (unsigned i = 0; i < n && c->reading; i++)
		finish_read(coder, blocks[i]);
	if (n && !queue_push(c->outbox, (void *const *)blocks, n))
		wakeup_signal(&c->wakeup);
}

static void run_worker(void *arg)
{
	struct io_pool_worker *w = arg;
	struct block *done[REAP_BATCH], *b;

	for (;;) {
		bool idle = !end_outstanding(w->io);
		size_t got = queue_pop(w->inbox, (void **)&b, 1, idle);

		if (!got && idle)
			return; /* closed */
		if (got && !w->io_pool->reading)
			verify(&w->coder, b);
		if (got && b->error)
			hand_out(w->io_pool, &w->coder, &b, 1);
		else if (got)
			end_submit(w->io, ((struct io_pool_target *)b->owner)->end, b);
		/* with nothing new to submit there is time to wait for the disk */
		hand_out(w->io_pool, &w->coder, done, end_reap(w->io, done, REAP_BATCH, !got));
	}
}

static void run_jobs(void *arg)
{
	struct io_pool *c = arg;
	struct io_pool_job *job;

	while (queue_pop(c->jobs, (void **)&job, 1, true)) {
		job->run(job);
		if (!queue_push(c->jobs_done, (void *const *)&job, 1))
			wakeup_signal(&c->wakeup);
	}
}

static int make_worker(struct io_pool *c, unsigned i, const struct io_pool_params *p)
{
	struct io_pool_worker *w = &c->workers[i];
	int err;

	w->io_pool = c;
	err = queue_new(p->blocks, &w->inbox);
	if (!err)
		err = end_queue_new(p->blocks, &w->io);
	if (!err)
		err = coder_init(&w->coder, p->seal, p->squeeze);
	return err;
}

static int start_worker(struct io_pool *c, unsigned i)
{
	struct io_pool_worker *w = &c->workers[i];
	char name[24];

	if (w->thread.started)
		return 0;
	snprintf(name, sizeof name, "rftp-io-%u", i);
	return worker_start(&w->thread, name, run_worker, w);
}

static int start_job_thread(struct io_pool *c)
{
	int err = worker_start(&c->job_threads[c->job_count], "rftp-file", run_jobs, c);

	c->job_count += !err;
	return err;
}

/* The feeder's calls. */
static void feed_out(void *ctx, struct block *b)
{
	struct io_pool *c = ctx;

	hand_out(c, &c->coder, &b, 1);
}

static void feed_hungry(void *ctx)
{
	wakeup_signal(&((struct io_pool *)ctx)->wakeup);
}

static int start_feeder(struct io_pool *c, const struct io_pool_feed *feed, uint32_t blocks)
{
	struct feeder_params params = {
		.streams = feed->streams,
		.blocks = blocks,
		.flush_ns = feed->flush_ns,
		.stop_fd = feed->stop_fd,
		.tell_hungry = feed->tell_hungry,
		.out = feed_out,
		.hungry = feed_hungry,
		.ctx = c,
	};

	return feeder_new(&params, &c->feeder);
}

int io_pool_new(const struct io_pool_params *p, struct io_pool **out)
{
	struct io_pool *c = calloc(1, sizeof *c);
	int err;

	if (!c)
		return -ENOMEM;
	c->reading = p->reading;
	err = wakeup_init(&c->wakeup);
	if (!err)
		err = queue_new(p->blocks, &c->outbox);
	if (!err)
		err = coder_init(&c->coder, p->seal, p->squeeze);
	if (!err && p->in_place && !p->feed)
		err = end_queue_new(p->blocks, &c->here);
	if (!err && p->feed)
		err = start_feeder(c, p->feed, p->blocks);
	else
		c->worker_count = p->workers < WORKERS_MAX ? p->workers : WORKERS_MAX;
	for (unsigned i = 0; i < c->worker_count && !err; i++)
		err = make_worker(c, i, p);
	if (!err && p->jobs) {
		c->jobs_max = p->jobs < WORKERS_MAX ? p->jobs : WORKERS_MAX;
		err = queue_new(p->queued_jobs, &c->jobs);
		if (!err)
			err = queue_new(p->queued_jobs, &c->jobs_done);
		if (!err && !p->jobs_rare)
			err = start_job_thread(c); /* one is enough to do all jobs */
	}
	if (err) {
		io_pool_free(c);
		return err;
	}
	*out = c;
	return 0;
}

void io_pool_free(struct io_pool *c)
{
	struct block *b;

	if (!c)
		return;
	for (unsigned i = 0; i < c->worker_count; i++) {
		struct io_pool_worker *w = &c->workers[i];

		if (!w->inbox)
			continue;
		queue_close(w->inbox);
		while (queue_pop(w->inbox, (void **)&b, 1, false))
			;
		if (w->io)
			end_queue_cancel(w->io);
	}
	if (c->jobs)
		queue_close(c->jobs);
	feeder_free(c->feeder);
	for (unsigned i = 0; i < c->worker_count; i++) {
		worker_stop(&c->workers[i].thread);
		end_queue_free(c->workers[i].io);
		queue_free(c->workers[i].inbox);
		coder_fini(&c->workers[i].coder);
	}
	for (unsigned i = 0; i < c->job_count; i++)
		worker_stop(&c->job_threads[i]);
	end_queue_free(c->here);
	coder_fini(&c->coder);
	queue_free(c->outbox);
	queue_free(c->jobs);
	queue_free(c->jobs_done);
	wakeup_fini(&c->wakeup);
	free(c);
}

unsigned io_pool_batch(const struct io_pool *c)
{
	return c->here ? 1 : SUBMIT_BATCH;
}

static bool works_in_place(const struct io_pool *c, const struct end *end)
{
	return c->here && !end_is_stream(end) && !end_is_direct(end);
}

static void work_in_place(struct io_pool *c, struct end *end, struct block *b)
{
	if (!c->reading)
		verify(&c->coder, b);
	if (!b->error) {
		end_submit(c->here, end, b);
		end_reap(c->here, &b, 1, true);
	}
	hand_out(c, &c->coder, &b, 1);
}

void io_pool_submit(struct io_pool *c, unsigned worker, struct block *b)
{
	struct end *end;
	unsigned i;
	int err;

	if (c->feeder) { /* whose the block will be is the feeder's to say */
		feeder_submit(c->feeder, b);
		return;
	}
	end = ((struct io_pool_target *)b->owner)->end;
	if (works_in_place(c, end)) {
		work_in_place(c, end, b);
		return;
	}
	i = worker % c->worker_count;
	err = start_worker(c, i);
	if (err) {
		b->error = err;
		hand_out(c, &c->coder, &b, 1);
		return;
	}
	err = queue_push(c->workers[i].inbox, (void *const *)&b, 1);
	assert(!err);
	(void)err;
}

unsigned io_pool_collect(struct io_pool *c, struct block **done, unsigned max)
{
	return (unsigned)queue_pop(c->outbox, (void **)done, max, false);
}

void io_pool_feed_add(struct io_pool *c, struct io_pool_target *target)
{
	feeder_add(c->feeder, target);
}

void io_pool_feed_stop(struct io_pool *c, struct io_pool_target *target)
{
	feeder_stop(c->feeder, target);
}

bool io_pool_feed_hungry(const struct io_pool *c)
{
	return feeder_hungry(c->feeder);
}

bool io_pool_can_job(struct io_pool *c)
{
	return c->job_count || !start_job_thread(c);
}

void io_pool_submit_job(struct io_pool *c, struct io_pool_job *job)
{
	int err = queue_push(c->jobs, (void *const *)&job, 1);

	assert(!err);
	(void)err;
	if (++c->jobs_out > c->job_count && c->job_count < c->jobs_max)
		start_job_thread(c); /* if not, those that run do it */
}

unsigned io_pool_jobs_out(const struct io_pool *c)
{
	return c->jobs_out;
}

unsigned io_pool_collect_jobs(struct io_pool *c, struct io_pool_job **done, unsigned max)
{
	unsigned n =
		c->jobs_done ? (unsigned)queue_pop(c->jobs_done, (void **)done, max, false) : 0;

	c->jobs_out -= n;
	return n;
}

void io_pool_arm(struct io_pool *c)
{
	wakeup_arm(&c->wakeup);
}

void io_pool_disarm(struct io_pool *c)
{
	wakeup_disarm(&c->wakeup);
}

int io_pool_fd(const struct io_pool *c)
{
	return c->wakeup.fd;
}
