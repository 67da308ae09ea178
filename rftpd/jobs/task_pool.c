/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/task_pool: see task_pool.h.
 */
#include "rftpd/jobs/task_pool.h"

#include "base/log.h"
#include "base/worker.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

STAILQ_HEAD(task_list, task);

struct pool_thread {
	struct worker worker;
	struct task_pool *pool;
	LIST_ENTRY(pool_thread) entry;
};

struct task_pool {
	int fd;
	unsigned few, most;
	uint64_t grown_ns;
	unsigned under_way;   /* tasks that were started and are not done */
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t work;
	struct task_list waiting, done;
	LIST_HEAD(, pool_thread) running, ended; /* ended: to be joined */
	unsigned threads, idle, waiting_count;
	bool closing;
};

static void wake_loop(struct task_pool *p)
{
	const uint64_t one = 1;

	if (write(p->fd, &one, sizeof one) < 0) /* full would mean that it is readable anyway */
		log_debug("eventfd: %s", strerror(errno));
}

/* Under the lock: the next task; NULL: none came for a while, or none will come. */
static struct task *next_task(struct task_pool *p)
{
	struct timespec until;
	struct task *t;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TASK_IDLE_S;
	while (!(t = STAILQ_FIRST(&p->waiting)) && !p->closing && err != ETIMEDOUT) {
		p->idle++;
		err = pthread_cond_timedwait(&p->work, &p->lock, &until);
		p->idle--;
	}
	if (t) {
		STAILQ_REMOVE_HEAD(&p->waiting, entry);
		p->waiting_count--;
	}
	return t;
}

static void pool_thread_run(void *arg)
{
	struct pool_thread *thread = arg;
	struct task_pool *p = thread->pool;
	struct task *t;

	pthread_mutex_lock(&p->lock);
	p->idle--; /* as which grow counted it */
	while ((t = next_task(p))) {
		pthread_mutex_unlock(&p->lock);
		t->run(t);
		pthread_mutex_lock(&p->lock);
		if (STAILQ_EMPTY(&p->done))
			wake_loop(p);
		STAILQ_INSERT_TAIL(&p->done, t, entry);
	}
	p->threads--;
	LIST_REMOVE(thread, entry);
	LIST_INSERT_HEAD(&p->ended, thread, entry);
	wake_loop(p);
	pthread_mutex_unlock(&p->lock);
}

/* Joins those that have ended; they are past everything that could block. */
static void reap(struct task_pool *p)
{
	struct pool_thread *thread;

	for (;;) {
		pthread_mutex_lock(&p->lock);
		thread = LIST_FIRST(&p->ended);
		if (thread)
			LIST_REMOVE(thread, entry);
		pthread_mutex_unlock(&p->lock);
		if (!thread)
			return;
		worker_stop(&thread->worker);
		free(thread);
	}
}

static int grow(struct task_pool *p)
{
	struct pool_thread *thread = calloc(1, sizeof *thread);
	int err;

	if (!thread)
		return -ENOMEM;
	thread->pool = p;
	pthread_mutex_lock(&p->lock); /* the thread may end before worker_start returns */
	LIST_INSERT_HEAD(&p->running, thread, entry);
	p->threads++;
	p->idle++; /* it is about to take a task */
	err = worker_start(&thread->worker, "task", pool_thread_run, thread);
	if (err) {
		p->threads--;
		p->idle--;
		LIST_REMOVE(thread, entry);
	}
	pthread_mutex_unlock(&p->lock);
	if (err)
		free(thread);
	return err;
}

int task_pool_new(unsigned few, unsigned most, struct task_pool **out)
{
	struct task_pool *p = calloc(1, sizeof *p);
	pthread_condattr_t attr;

	assert(few && few <= most);
	if (!p)
		return -ENOMEM;
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->fd < 0) {
		free(p);
		return -errno;
	}
	p->few = few;
	p->most = most;
	STAILQ_INIT(&p->waiting);
	STAILQ_INIT(&p->done);
	LIST_INIT(&p->running);
	LIST_INIT(&p->ended);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->work, &attr);
	pthread_condattr_destroy(&attr);
	*out = p;
	return 0;
}

void task_pool_free(struct task_pool *p)
{
	struct pool_thread *thread;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	assert(!p->under_way);
	p->closing = true;
	pthread_cond_broadcast(&p->work);
	while ((thread = LIST_FIRST(&p->running))) {
		pthread_mutex_unlock(&p->lock);
		worker_stop(&thread->worker); /* it moves itself to `ended` before */
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	reap(p);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	close(p->fd);
	free(p);
}

int task_pool_start(struct task_pool *p, struct task *t, uint64_t now_ns)
{
	bool short_of_threads, stuck;
	int err = 0;

	pthread_mutex_lock(&p->lock);
	short_of_threads = p->idle <= p->waiting_count && p->threads < p->few;
	pthread_mutex_unlock(&p->lock);
	if (short_of_threads)
		err = grow(p);
	pthread_mutex_lock(&p->lock);
	stuck = err && !p->threads;
	if (!stuck) {
		t->since_ns = now_ns;
		STAILQ_INSERT_TAIL(&p->waiting, t, entry);
		p->waiting_count++;
		pthread_cond_signal(&p->work);
	}
	pthread_mutex_unlock(&p->lock);
	if (stuck)
		return err;
	p->under_way++;
	return 0;
}

bool task_pool_busy(const struct task_pool *p)
{
	return p->under_way;
}

int task_pool_fd(const struct task_pool *p)
{
	return p->fd;
}

void task_pool_take_done(struct task_pool *p)
{
	struct task_list done = STAILQ_HEAD_INITIALIZER(done);
	struct task *t;
	uint64_t count;

	if (read(p->fd, &count, sizeof count) < 0)
		return;
	pthread_mutex_lock(&p->lock);
	STAILQ_CONCAT(&done, &p->done);
	pthread_mutex_unlock(&p->lock);
	while ((t = STAILQ_FIRST(&done))) {
		STAILQ_REMOVE_HEAD(&done, entry);
		p->under_way--;
		t->done(t);
	}
	reap(p);
}

uint64_t task_pool_next_ns(struct task_pool *p)
{
	uint64_t next = UINT64_MAX;
	const struct task *first;

	pthread_mutex_lock(&p->lock);
	first = STAILQ_FIRST(&p->waiting);
	/* an idle one has been woken, and waits for a CPU: more threads would not help it */
	if (first && p->idle < p->waiting_count && p->threads < p->most)
		next = (first->since_ns > p->grown_ns ? first->since_ns : p->grown_ns) +
		       TASK_PATIENCE_NS;
	pthread_mutex_unlock(&p->lock);
	return next;
}

void task_pool_tend(struct task_pool *p, uint64_t now_ns)
{
	if (now_ns < task_pool_next_ns(p))
		return;
	p->grown_ns = now_ns;
	grow(p); /* when it cannot: the next time, or a thread comes free */
}
