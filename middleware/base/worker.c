/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/worker: owns one thread from start to join.
 */
#include "base/worker.h"

#include "base/log.h"
#include "base/opener.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define WORKER_CPUS_MAX (1u << 16) /* more CPUs than any Linux is built for */

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	pthread_setname_np(pthread_self(), w->name); /* only cosmetic */
	opener_use(w->opener);
	w->run(w->arg);
	return NULL;
}

/* A transfer may find out once for each block. */
static atomic_flag said = ATOMIC_FLAG_INIT;

int worker_start(struct worker *w, const char *name, void (*run)(void *arg), void *arg)
{
	/* A fault in the thread itself must stay deliverable, or a sanitizer cannot report it. */
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t all, before;
	int err;

	w->started = false;
	w->run = run;
	w->arg = arg;
	w->opener = opener_mine();
	snprintf(w->name, sizeof w->name, "%s", name);

	sigfillset(&all);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&all, faults[i]);
	/* Blocked before the thread exists, so that it never runs with them open. */
	err = pthread_sigmask(SIG_BLOCK, &all, &before);
	if (err)
		return -err;
	err = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err == EAGAIN) { /* which elsewhere says that a thing is in use */
		if (!atomic_flag_test_and_set(&said))
			log_warning("no thread can be started: too many of them, or too little "
				    "memory (ulimit -u, pids.max)");
		return -ENOMEM;
	}
	if (err)
		return -err;
	w->started = true;
	return 0;
}

void worker_stop(struct worker *w)
{
	if (!w->started)
		return;
	pthread_join(w->thread, NULL);
	w->started = false;
}

void worker_detach(struct worker *w)
{
	pthread_detach(w->thread);
	w->started = false;
}

unsigned worker_cpus(void)
{
	/* The kernel refuses a mask shorter than its own. */
	for (size_t cpus = CPU_SETSIZE; cpus <= WORKER_CPUS_MAX; cpus *= 2) {
		size_t bytes = CPU_ALLOC_SIZE(cpus);
		cpu_set_t *set = CPU_ALLOC(cpus);
		int found = 0, err = 0;

		if (!set)
			break;
		CPU_ZERO_S(bytes, set);
		if (sched_getaffinity(0, bytes, set) < 0)
			err = errno;
		else
			found = CPU_COUNT_S(bytes, set);
		CPU_FREE(set);
		if (found > 0)
			return (unsigned)found;
		if (err != EINVAL)
			break;
	}
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (unsigned)online : 1;
}
