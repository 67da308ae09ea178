/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/io_pool: transfer/io_pool over null ends: blocks and jobs come back, and threads are
 * there only when something needs them.
 */
#include "base/clock.h"
#include "block/digest.h"
#include "block/pool.h"
#include "tests/harness.h"
#include "transfer/io_pool.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define BLOCKS 8u
#define BLOCK_BYTES 65536u
#define WORKERS 4u
#define JOBS 4u
#define PATIENCE_NS (20 * NS_PER_S)

struct bench {
	void *memory;
	struct pool *pool;
	struct io_pool_target target;
	struct io_pool *io_pool;
};

static int bench_new(struct bench *b, bool reading, bool in_place, unsigned jobs)
{
	const struct io_pool_params params = {
		.reading = reading,
		.workers = WORKERS,
		.in_place = in_place,
		.jobs = jobs,
		.blocks = BLOCKS,
		.queued_jobs = 2 * JOBS,
	};
	int r;

	memset(b, 0, sizeof *b);
	b->memory = aligned_alloc(BLOCK_ALIGN, pool_bytes(BLOCKS, BLOCK_BYTES));
	if (!b->memory)
		return -ENOMEM;
	memset(b->memory, 7, pool_bytes(BLOCKS, BLOCK_BYTES));
	r = pool_new(b->memory, BLOCKS, BLOCK_BYTES, &b->pool);
	if (!r)
		r = end_null_open(
			reading ? (uint64_t)BLOCKS * BLOCK_BYTES : UINT64_MAX, &b->target.end);
	return r ? r : io_pool_new(&params, &b->io_pool);
}

static void bench_free(struct bench *b)
{
	io_pool_free(b->io_pool);
	end_free(b->target.end);
	pool_free(b->pool);
	free(b->memory);
}

/* Threads of this process whose names begin like that.  A new one names itself: waits for `wanted`.
 */
static unsigned threads(const char *name, unsigned wanted)
{
	const uint64_t end = clock_now_ns() + PATIENCE_NS;
	unsigned n;

	do {
		DIR *dir = opendir("/proc/self/task");
		struct dirent *entry;

		n = 0;
		while (dir && (entry = readdir(dir))) {
			char path[300], line[32] = "";
			FILE *f;

			snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
			f = fopen(path, "r");
			if (f && fgets(line, sizeof line, f) && !strncmp(line, name, strlen(name)))
				n++;
			if (f)
				fclose(f);
		}
		if (dir)
			closedir(dir);
	} while (n != wanted && clock_now_ns() < end);
	return n;
}

static struct block *take(struct bench *b, uint32_t number)
{
	struct block *block = pool_take(b->pool, BLOCK_FILLING);

	block->owner = &b->target;
	block->offset = (uint64_t)number * BLOCK_BYTES;
	block->length = BLOCK_BYTES;
	block->error = 0;
	return block;
}

/* Waits for the I/O pool.  Blocks, at most `max`; 0: none came in time. */
static unsigned collect(struct io_pool *c, struct block **done, unsigned max)
{
	const uint64_t end = clock_now_ns() + PATIENCE_NS;
	unsigned n = 0;

	while (!n && clock_now_ns() < end) {
		struct pollfd fd = {io_pool_fd(c), POLLIN, 0};

		io_pool_arm(c);
		n = io_pool_collect(c, done, max);
		if (!n)
			poll(&fd, 1, 100);
		io_pool_disarm(c);
	}
	return n;
}

static void an_io_thread_starts_with_its_first_block(void)
{
	struct bench b;
	struct block *done;

	CHECK_EQ(bench_new(&b, true, false, 0), 0);
	CHECK_EQ(threads("rftp-io", 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		io_pool_submit(b.io_pool, 1, take(&b, i));
		CHECK_EQ(collect(b.io_pool, &done, 1), 1);
		CHECK_EQ(done->error, 0);
		CHECK_EQ(done->length, BLOCK_BYTES);
		CHECK(done->leaf == digest_leaf(done->payload, done->length));
		CHECK_EQ(threads("rftp-io-1", 1), 1);
		CHECK_EQ(threads("rftp-io", 1), 1);
	}
	io_pool_submit(b.io_pool, 2 + WORKERS, take(&b, 3)); /* modulo their number */
	CHECK_EQ(collect(b.io_pool, &done, 1), 1);
	CHECK_EQ(threads("rftp-io-2", 1), 1);
	CHECK_EQ(threads("rftp-io", 2), 2);
	bench_free(&b);
	CHECK_EQ(threads("rftp-io", 0), 0);
}

static void in_place_needs_no_thread(void)
{
	struct bench b;
	struct block *done;

	CHECK_EQ(bench_new(&b, true, true, 0), 0);
	io_pool_submit(b.io_pool, 0, take(&b, 0));
	CHECK_EQ(io_pool_collect(b.io_pool, &done, 1), 1);
	CHECK(done->leaf == digest_leaf(done->payload, done->length));
	CHECK_EQ(threads("rftp-io", 0), 0);
	bench_free(&b);
}

static void a_wrong_block_is_not_written(void)
{
	for (int in_place = 0; in_place < 2; in_place++) {
		struct bench b;
		struct block *block, *done;

		CHECK_EQ(bench_new(&b, false, in_place, 0), 0);
		block = take(&b, 0);
		block->leaf = digest_leaf(block->payload, block->length);
		io_pool_submit(b.io_pool, 0, block);
		CHECK_EQ(collect(b.io_pool, &done, 1), 1);
		CHECK_EQ(done->error, 0);
		done->payload[100] ^= 1;
		io_pool_submit(b.io_pool, 0, done);
		CHECK_EQ(collect(b.io_pool, &done, 1), 1);
		CHECK_EQ(done->error, -EILSEQ);
		bench_free(&b);
	}
}

/* ---- jobs ---- */

struct meeting {
	struct io_pool_job job;
	atomic_uint *there;
	unsigned wanted;
	bool met;
};

/* Waits until so many are in it at the same time. */
static void meet(struct io_pool_job *job)
{
	struct meeting *m = (struct meeting *)job;
	const uint64_t end = clock_now_ns() + PATIENCE_NS;

	atomic_fetch_add(m->there, 1);
	while (atomic_load(m->there) < m->wanted && clock_now_ns() < end)
		poll(NULL, 0, 1);
	m->met = atomic_load(m->there) >= m->wanted;
}

static bool finish_jobs(struct io_pool *c, unsigned wanted)
{
	const uint64_t end = clock_now_ns() + PATIENCE_NS;
	struct io_pool_job *done[2 * JOBS];
	unsigned n = 0;

	while (n < wanted && clock_now_ns() < end) {
		n += io_pool_collect_jobs(c, done, 2 * JOBS);
		poll(NULL, 0, 1);
	}
	return n == wanted;
}

static void one_job_thread_does_for_one_job_at_a_time(void)
{
	struct bench b;

	CHECK_EQ(bench_new(&b, false, false, JOBS), 0);
	for (unsigned i = 0; i < 3 * JOBS; i++) {
		atomic_uint there = 0;
		struct meeting m = {.job.run = meet, .there = &there, .wanted = 1};

		io_pool_submit_job(b.io_pool, &m.job);
		CHECK(finish_jobs(b.io_pool, 1));
		CHECK(m.met);
		CHECK_EQ(threads("rftp-file", 1), 1);
	}
	bench_free(&b);
	CHECK_EQ(threads("rftp-file", 0), 0);
}

static void jobs_run_at_the_same_time(void)
{
	struct meeting m[2 * JOBS];
	atomic_uint there = 0;
	struct bench b;

	CHECK_EQ(bench_new(&b, false, false, JOBS), 0);
	for (unsigned i = 0; i < 2 * JOBS; i++) {
		m[i] = (struct meeting){.job.run = meet, .there = &there, .wanted = JOBS};
		io_pool_submit_job(b.io_pool, &m[i].job);
	}
	CHECK(finish_jobs(b.io_pool, 2 * JOBS));
	for (unsigned i = 0; i < 2 * JOBS; i++)
		CHECK(m[i].met);
	CHECK_EQ(threads("rftp-file", JOBS), JOBS); /* and not one more */
	bench_free(&b);
}

/* Gives new threads stacks that no address space has room for; back: what they had. */
static size_t stacks(size_t bytes)
{
	pthread_attr_t attr;
	size_t before = 0;

	pthread_getattr_default_np(&attr);
	pthread_attr_getstacksize(&attr, &before);
	pthread_attr_setstacksize(&attr, bytes);
	pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
	return before;
}

static void a_thread_that_cannot_start_is_an_error_of_the_block(void)
{
	struct block *done;
	struct bench b;
	size_t before;

	CHECK_EQ(bench_new(&b, true, false, 0), 0);
	before = stacks((size_t)1 << 50);
	io_pool_submit(b.io_pool, 0, take(&b, 0));
	stacks(before);
	CHECK_EQ(io_pool_collect(b.io_pool, &done, 1), 1);
	CHECK_EQ(done->error, -ENOMEM);
	io_pool_submit(b.io_pool, 0, take(&b, 1)); /* the next one may have more luck */
	CHECK_EQ(collect(b.io_pool, &done, 1), 1);
	CHECK_EQ(done->error, 0);
	bench_free(&b);
}

static void jobs_do_with_the_threads_that_there_are(void)
{
	struct meeting m[JOBS];
	atomic_uint there = 0;
	struct bench b;
	size_t before;

	CHECK_EQ(bench_new(&b, false, false, JOBS), 0);
	before = stacks((size_t)1 << 50);
	for (unsigned i = 0; i < JOBS; i++) {
		m[i] = (struct meeting){.job.run = meet, .there = &there, .wanted = 1};
		io_pool_submit_job(b.io_pool, &m[i].job);
	}
	stacks(before);
	CHECK(finish_jobs(b.io_pool, JOBS));
	CHECK_EQ(threads("rftp-file", 1), 1);
	bench_free(&b);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"an I/O thread starts with its first block",
			an_io_thread_starts_with_its_first_block},
		{"in place needs no thread", in_place_needs_no_thread},
		{"a wrong block is not written", a_wrong_block_is_not_written},
		{"one job thread does for one job at a time",
			one_job_thread_does_for_one_job_at_a_time},
		{"jobs run at the same time", jobs_run_at_the_same_time},
		{"a thread that cannot start is an error of the block",
			a_thread_that_cannot_start_is_an_error_of_the_block},
		{"jobs do with the threads that there are",
			jobs_do_with_the_threads_that_there_are},
		{NULL, NULL},
	};

	return harness_run(cases, argc, argv);
}
