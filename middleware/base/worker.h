/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/worker: a named thread: start, join.  All signals are blocked in it, but for SIGSEGV and its
 * like, which a fault of its own raises; so signals reach the main thread only.
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>

struct worker {
	pthread_t thread;
	bool started;
	void (*run)(void *arg);
	void *arg;
	struct opener *opener; /* of who starts it, which it works for */
	char name[16];         /* shown by ps -L; cut to 15 bytes */
};

/* Starts run(arg) in a new thread.  `worker` must stay where it is until worker_stop.  -ENOMEM: the
 * host or a limit gives no more threads; the first time a warning says so. */
int worker_start(struct worker *, const char *name, void (*run)(void *arg), void *arg);

/* Joins the thread; the caller has told it to end by its own means.  Does nothing if not started.
 */
void worker_stop(struct worker *);

/* Instead of worker_stop: the thread is on its own.  It must still run, and may then free `worker`.
 */
void worker_detach(struct worker *);

/* CPUs that this process may run on; at least 1. */
unsigned worker_cpus(void);

#endif
