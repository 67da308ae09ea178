/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_list.c: see sync_list.h.
 *
 * The local directory is walked by a thread of its own, which touches its list and nothing else of
 * the client's; all that is told and shown comes from the one that speaks for the session.
 */
#include "rftp/copy/sync_list.h"

#include "base/worker.h"
#include "rftp/copy/sync_plan.h"
#include "rftp/shell/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define LIST_SHOW_NS 100000000

struct local_list {
	struct sync_plan_walk walk;
	struct worker worker;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t ended;
	bool over, stop;
	size_t count; /* names so far */
	int err;
};

/* Of the worker; another error than 0 ends the walk. */
static int list_counted(void *ctx, size_t count)
{
	struct local_list *l = ctx;
	bool stop;

	if (count % 256)
		return 0;
	pthread_mutex_lock(&l->lock);
	l->count = count;
	stop = l->stop;
	pthread_mutex_unlock(&l->lock);
	return stop ? -ECANCELED : 0;
}

static void list_walk(void *arg)
{
	struct local_list *l = arg;
	int err = sync_plan_walk_local(&l->walk);

	pthread_mutex_lock(&l->lock);
	l->err = err;
	l->over = true;
	pthread_cond_signal(&l->ended);
	pthread_mutex_unlock(&l->lock);
}

/* Until the walk is over, or the user wants no more; shows how far it is. */
static void list_wait(struct client *c, struct local_list *l)
{
	struct timespec until;

	pthread_mutex_lock(&l->lock);
	while (!l->over) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LIST_SHOW_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		l->stop |= interrupt_signal() != 0;
		if (pthread_cond_timedwait(&l->ended, &l->lock, &until) == ETIMEDOUT)
			report_scan(&c->report, l->count, MESSAGE_UNKNOWN);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Of the destination it is no error that there is none. */
static int list_judge(struct sync_list *both, const struct compare_list *list, int err)
{
	if (err != -ENOENT || list != both->to)
		return err;
	both->missing = true;
	return 0;
}

static int list_remote(struct client *c, const struct sync_params *p, struct sync_list *both)
{
	struct compare_list *list = p->to_server ? both->to : both->from;
	int err = list_judge(both, list, sync_plan_list_remote(c, p->remote, both->filter, list));

	if (err == -ENOENT)
		client_report(c, p->remote, err);
	return err;
}

/* Somebody may set the clock meanwhile. */
static int init_ended(pthread_cond_t *ended)
{
	pthread_condattr_t monotonic;
	int err = pthread_condattr_init(&monotonic);

	if (err)
		return -err;
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	err = pthread_cond_init(ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return -err;
}

/* Whether a source is there at all, before the server lists what may be much.  0 or -errno. */
static int find_source(const struct sync_params *p)
{
	int fd = p->to_server ? open(p->local, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (p->to_server && fd < 0)
		return -errno;
	if (fd >= 0)
		close(fd);
	return 0;
}

static int list_failed(struct client *c, const struct sync_params *p, int err)
{
	if (err && err != -ECANCELED)
		report_errorf(&c->report, err, p->local, "%s", status_text(status_from_errno(err)));
	return err;
}

int sync_list_both(struct client *c, const struct sync_params *p, struct sync_list *both)
{
	struct compare_list *list = p->to_server ? both->from : both->to;
	struct local_list l = {
		.walk = {.settings = &c->settings,
			.directory = p->local,
			.filter = both->filter,
			.list = list,
			.listed = list_counted},
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	bool started;
	int err = find_source(p);

	if (!err)
		err = init_ended(&l.ended);
	if (err)
		return list_failed(c, p, err);
	l.walk.ctx = &l;
	started = !worker_start(&l.worker, "rftp-list", list_walk, &l);
	err = list_remote(c, p, both);
	if (err) {
		pthread_mutex_lock(&l.lock);
		l.stop = true;
		pthread_mutex_unlock(&l.lock);
	} else if (!started) {
		l.err = sync_plan_list_local(c, p->local, both->filter, list);
	}
	if (started)
		list_wait(c, &l);
	worker_stop(&l.worker);
	pthread_cond_destroy(&l.ended);
	l.err = list_failed(c, p, list_judge(both, list, l.err));
	return err ? err : l.err;
}
