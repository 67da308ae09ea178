/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/task_pool: threads for what may block, such as every operation on names: the event
 * loop hands a task over and is told when it is done.
 *
 * A few threads do, as long as file systems answer.  When tasks wait and no thread takes one for
 * TASK_PATIENCE_NS, all threads are stuck, and one more is started, up to a bound; a thread that
 * finds nothing to do for TASK_IDLE_S ends.  Who may have how many tasks at once is the caller's to
 * see to.
 *
 * All functions but the task's `run` belong to the thread of the loop.
 */
#ifndef RFTPD_TASK_POOL_H
#define RFTPD_TASK_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define TASK_PATIENCE_NS UINT64_C(20000000)
#define TASK_IDLE_S 2

struct task_pool;

struct task {
	void (*run)(struct task *);  /* in a thread of the pool */
	void (*done)(struct task *); /* in the loop, from task_pool_take_done */
	/* the pool's */
	STAILQ_ENTRY(task) entry;
	uint64_t since_ns;
};

/* `few` threads do usually, at most `most` are started.  0 or -errno. */
int task_pool_new(unsigned few, unsigned most, struct task_pool **out);
/* All tasks are done.  Takes NULL. */
void task_pool_free(struct task_pool *);

/* Runs the task as soon as a thread is free; in order of starting.  -errno: there is no thread and
 * none can be started; the task is still the caller's. */
int task_pool_start(struct task_pool *, struct task *, uint64_t now_ns);

/* Whether a task is not done yet. */
bool task_pool_busy(const struct task_pool *);

/* Readable when task_pool_take_done has something to do. */
int task_pool_fd(const struct task_pool *);
void task_pool_take_done(struct task_pool *);

/* Starts a thread if all are stuck, and when to ask again (UINT64_MAX: when a task was started). */
void task_pool_tend(struct task_pool *, uint64_t now_ns);
uint64_t task_pool_next_ns(struct task_pool *);

#endif
