/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/task_pool: tasks run beside the loop and are done in it; those that are stuck take no
 * thread from the others, up to the bound.
 */
#include "rftpd/jobs/task_pool.h"
#include "tests/harness.h"

#include "base/clock.h"
#include "base/worker.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define MANY 2000u

struct job {
	struct task task; /* first */
	pthread_t ran_in, done_in;
	struct task_pool *again; /* done: starts itself again there, as often as `left` */
	unsigned left;
	int gate; /* run: waits until this descriptor is readable; -1: not */
	unsigned order;
};

static atomic_uint ran;
static unsigned done_count;

static void job_run(struct task *t)
{
	struct job *j = (struct job *)t;
	struct pollfd fd = {j->gate, POLLIN, 0};

	if (j->gate >= 0)
		poll(&fd, 1, -1);
	j->ran_in = pthread_self();
	atomic_fetch_add(&ran, 1);
}

static void job_done(struct task *t)
{
	struct job *j = (struct job *)t;

	j->done_in = pthread_self();
	j->order = ++done_count;
	if (j->left) {
		j->left--;
		task_pool_start(j->again, t, clock_now_ns());
	}
}

static struct job job_new(int gate)
{
	return (struct job){.task = {.run = job_run, .done = job_done}, .gate = gate};
}

/* The loop, until so many are done. */
static bool loop_until(struct task_pool *p, unsigned count)
{
	uint64_t end = clock_now_ns() + 60 * NS_PER_S;

	while (done_count < count && clock_now_ns() < end) {
		struct pollfd fd = {task_pool_fd(p), POLLIN, 0};
		uint64_t next = task_pool_next_ns(p);

		poll(&fd, 1, clock_until_ms(next < end ? next : end));
		task_pool_take_done(p);
		task_pool_tend(p, clock_now_ns());
	}
	return done_count == count;
}

static unsigned threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n - 2;
}

static void tasks_run_beside_the_loop(void)
{
	static struct job jobs[MANY];
	unsigned count = 0;
	struct task_pool *p;

	atomic_store(&ran, 0);
	done_count = 0;
	CHECK_EQ(task_pool_new(3, 3, &p), 0);
	for (unsigned i = 0; i < MANY; i++) {
		jobs[i] = job_new(-1);
		jobs[i].again = p;
		jobs[i].left = i % 3;
		count += 1 + jobs[i].left;
		CHECK_EQ(task_pool_start(p, &jobs[i].task, clock_now_ns()), 0);
	}
	CHECK(loop_until(p, count));
	CHECK_EQ(atomic_load(&ran), done_count);
	for (unsigned i = 0; i < MANY; i++) {
		CHECK(pthread_equal(jobs[i].done_in, pthread_self()));
		CHECK(!pthread_equal(jobs[i].ran_in, pthread_self()));
	}
	task_pool_free(p);
}

static void one_thread_keeps_the_order(void)
{
	struct job jobs[100];
	struct task_pool *p;

	done_count = 0;
	CHECK_EQ(task_pool_new(1, 1, &p), 0);
	for (unsigned i = 0; i < 100; i++) {
		jobs[i] = job_new(-1);
		CHECK_EQ(task_pool_start(p, &jobs[i].task, clock_now_ns()), 0);
	}
	CHECK(loop_until(p, 100));
	for (unsigned i = 0; i < 100; i++)
		CHECK_EQ(jobs[i].order, i + 1);
	task_pool_free(p);
}

static void who_is_stuck_stops_nobody_else(void)
{
	struct job stuck[6], quick = job_new(-1);
	struct task_pool *p;
	int gate[2];

	done_count = 0;
	CHECK_EQ(pipe(gate), 0);
	CHECK_EQ(task_pool_new(2, 7, &p), 0);
	for (unsigned i = 0; i < 6; i++) {
		stuck[i] = job_new(gate[0]);
		CHECK_EQ(task_pool_start(p, &stuck[i].task, clock_now_ns()), 0);
	}
	CHECK_EQ(task_pool_start(p, &quick.task, clock_now_ns()), 0);
	CHECK(loop_until(p, 1));
	CHECK_EQ(quick.order, 1);
	CHECK(task_pool_busy(p));
	CHECK_EQ(write(gate[1], "", 1), 1);
	CHECK(loop_until(p, 7));
	CHECK(!task_pool_busy(p));
	task_pool_free(p);
	close(gate[0]);
	close(gate[1]);
}

static void no_more_threads_than_the_bound(void)
{
	struct job stuck[20];
	unsigned before = threads();
	struct task_pool *p;
	int gate[2];

	done_count = 0;
	CHECK_EQ(pipe(gate), 0);
	CHECK_EQ(task_pool_new(1, 4, &p), 0);
	for (unsigned i = 0; i < 20; i++) {
		stuck[i] = job_new(gate[0]);
		CHECK_EQ(task_pool_start(p, &stuck[i].task, clock_now_ns()), 0);
	}
	while (task_pool_next_ns(p) != UINT64_MAX)
		task_pool_tend(p, clock_now_ns());
	CHECK_EQ(threads(), before + 4);
	CHECK_EQ(write(gate[1], "", 1), 1);
	CHECK(loop_until(p, 20));
	task_pool_free(p);
	CHECK_EQ(threads(), before);
	close(gate[0]);
	close(gate[1]);
}

static void idle_threads_end(void)
{
	unsigned before = threads();
	struct job job = job_new(-1);
	uint64_t end = clock_now_ns() + 60 * NS_PER_S;
	struct task_pool *p;

	done_count = 0;
	CHECK_EQ(task_pool_new(2, 2, &p), 0);
	CHECK_EQ(threads(), before);
	CHECK_EQ(task_pool_start(p, &job.task, clock_now_ns()), 0);
	CHECK(loop_until(p, 1));
	while (threads() > before && clock_now_ns() < end) {
		struct pollfd fd = {task_pool_fd(p), POLLIN, 0};

		poll(&fd, 1, clock_until_ms(end));
		task_pool_take_done(p);
	}
	CHECK_EQ(threads(), before);
	CHECK_EQ(task_pool_start(p, &job.task, clock_now_ns()), 0); /* and come again */
	CHECK(loop_until(p, 2));
	task_pool_free(p);
}

HARNESS_MAIN({"tasks_run_beside_the_loop", tasks_run_beside_the_loop},
	{"one_thread_keeps_the_order", one_thread_keeps_the_order},
	{"who_is_stuck_stops_nobody_else", who_is_stuck_stops_nobody_else},
	{"no_more_threads_than_the_bound", no_more_threads_than_the_bound},
	{"idle_threads_end", idle_threads_end})
