/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/worker: base/worker.
 */
#include "base/worker.h"
#include "tests/harness.h"

#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

struct look {
	int ran;
	char name[16];
	sigset_t blocked;
	int pinned;
	unsigned cpu, cpus;
};

static void look_around(void *arg)
{
	struct look *l = arg;

	l->ran++;
	pthread_getname_np(pthread_self(), l->name, sizeof l->name);
	pthread_sigmask(SIG_BLOCK, NULL, &l->blocked);
}

static void runs_once_and_joins(void)
{
	struct worker w = {0};
	struct look l = {0};

	worker_stop(&w); /* never started */
	for (int i = 1; i <= 3; i++) {
		CHECK_EQ(worker_start(&w, "looker", look_around, &l), 0);
		CHECK(w.started);
		worker_stop(&w);
		CHECK(!w.started);
		CHECK_EQ(l.ran, i);
		worker_stop(&w);
		CHECK_EQ(l.ran, i);
	}
	CHECK(!strcmp(l.name, "looker"));
}

static void cuts_a_long_name(void)
{
	struct worker w = {0};
	struct look l = {0};

	CHECK_EQ(worker_start(&w, "a-name-of-more-than-fifteen-bytes", look_around, &l), 0);
	worker_stop(&w);
	CHECK(!strcmp(l.name, "a-name-of-more-"));
}

static void signals_reach_the_main_thread_only(void)
{
	static const int asked[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD, SIGWINCH, SIGUSR1};
	struct worker w = {0};
	struct look l = {0};
	sigset_t before, after;

	pthread_sigmask(SIG_BLOCK, NULL, &before);
	CHECK_EQ(worker_start(&w, "signals", look_around, &l), 0);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	worker_stop(&w);
	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		CHECK(sigismember(&l.blocked, asked[i]));
		CHECK_EQ(sigismember(&after, asked[i]), sigismember(&before, asked[i]));
	}
	/* a fault of its own is not for others to answer */
	CHECK(!sigismember(&l.blocked, SIGSEGV));
}

struct loose {
	struct worker worker;
	sem_t detached, *ended;
};

static void free_itself(void *arg)
{
	struct loose *l = arg;
	sem_t *ended = l->ended;

	while (sem_wait(&l->detached))
		;
	sem_destroy(&l->detached);
	free(l);
	sem_post(ended);
}

static void a_detached_one_may_free_what_it_is_in(void)
{
	struct loose *l = calloc(1, sizeof *l);
	sem_t ended;

	CHECK(l);
	CHECK_EQ(sem_init(&ended, 0, 0), 0);
	CHECK_EQ(sem_init(&l->detached, 0, 0), 0);
	l->ended = &ended;
	CHECK_EQ(worker_start(&l->worker, "loose", free_itself, l), 0);
	worker_detach(&l->worker);
	CHECK(!l->worker.started);
	sem_post(&l->detached);
	while (sem_wait(&ended))
		;
	sem_destroy(&ended);
}

HARNESS_MAIN({"runs_once_and_joins", runs_once_and_joins}, {"cuts_a_long_name", cuts_a_long_name},
	{"signals_reach_the_main_thread_only", signals_reach_the_main_thread_only},
	{"a_detached_one_may_free_what_it_is_in", a_detached_one_may_free_what_it_is_in})
