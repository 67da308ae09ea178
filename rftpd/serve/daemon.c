/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon: see daemon.h.
 *
 * Owns the loop.  Knows no message and no fabric.
 */
#include "rftpd/serve/daemon.h"

#include "base/clock.h"
#include "base/limit.h"
#include "base/worker.h"
#include "rftpd/auth/host_key.h"
#include "rftpd/auth/monitor.h"
#include "rftpd/serve/admit.h"
#include "rftpd/serve/burials.h"
#include "rftpd/auth/login.h"
#include "rftpd/serve/daemon_session.h"
#include "rftpd/serve/control_socket.h"
#include "rftpd/serve/daemon_jobs.h"
#include "rftpd/serve/daemon_stop.h"
#include "rftpd/serve/listen.h"
#include "rftpd/serve/reload.h"
#include "rftpd/serve/session_turns.h"
#include "rftpd/jobs/job_turns.h"
#include "rftpd/jobs/task_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TASK_THREADS_FEW 4u /* for work on names, where file systems answer */
/* and where they do not: one for each session of an address, and some that it cannot take as well
 */
#define TASK_THREADS_SPARE 64u
#define TASK_THREADS_MOST 4096u
#define ASK_THREADS_FEW 4u
#define ASK_THREADS_MOST 32u
/* What they have open, files apart, which the budget counts. */
#define SESSION_DESCRIPTORS                                                                        \
	5u /* two of them once it had a transfer; and one for each data channel */
#define JOB_DESCRIPTORS 4u
#define SPARE_DESCRIPTORS 8u /* for who connects, and for work on names */
/* What a wrong login waits for its answer: where guessing could help, and where it does not. */
#define REFUSAL_NS NS_PER_S
#define REFUSAL_SHORT_NS (NS_PER_S / 4)

int daemon_check(const struct daemon_settings *settings)
{
	struct exports *exports;
	int err = exports_open(settings, &exports);

	if (err)
		return err;
	exports_close(exports);
	exports_free(exports);
	err = host_key_check(settings);
	if (!err)
		err = sandbox_check(settings);
	if (!err)
		err = login_check_settings(settings, true);
	if (!err)
		err = monitor_check(settings);
	if (!err)
		err = audit_check("audit-log", settings->audit_log) ||
				      audit_check("xferlog", settings->xferlog)
			      ? -EINVAL
			      : 0;
	if (!err)
		err = control_socket_check(settings);
	return err ? err : listen_trial(settings);
}

/* ---- tasks ---- */

static void take_tasks(void *owner)
{
	task_pool_take_done(((struct daemon *)owner)->tasks);
}

static void take_checks(void *owner)
{
	task_pool_take_done(((struct daemon *)owner)->checks);
}

static void take_asks(void *owner)
{
	task_pool_take_done(((struct daemon *)owner)->asks);
}

/* Half of the CPUs, and no more, whoever wants to log in: the rest moves data.  Who asks PAM takes
 * no CPU of this process, and waits: there may be more of them. */
static int start_checks(struct daemon *d)
{
	unsigned threads = (worker_cpus() + 1) / 2;
	int err = task_pool_new(threads, threads, &d->checks);

	if (!err)
		err = task_pool_new(ASK_THREADS_FEW, ASK_THREADS_MOST, &d->asks);
	if (!err)
		err = poller_add(
			&d->poller, &d->checks_done, task_pool_fd(d->checks), take_checks, d);
	return err ? err
		   : poller_add(&d->poller, &d->asks_done, task_pool_fd(d->asks), take_asks, d);
}

static int start_tasks(struct daemon *d)
{
	unsigned few = worker_cpus() < TASK_THREADS_FEW ? worker_cpus() : TASK_THREADS_FEW;
	uint64_t most = d->settings->max_per_address + TASK_THREADS_SPARE;
	int err = task_pool_new(
		few + 1, most < TASK_THREADS_MOST ? (unsigned)most : TASK_THREADS_MOST, &d->tasks);

	if (err)
		return err;
	return poller_add(&d->poller, &d->tasks_done, task_pool_fd(d->tasks), take_tasks, d);
}

/* ---- life ---- */

void daemon_budget(const struct daemon_settings *settings, struct budget *total)
{
	struct budget_host host;

	budget_measure_host(&host);
	budget_of_host(&host, total);
	if (settings->memory_bytes)
		total->memory_bytes = settings->memory_bytes;
	if (settings->open_files)
		total->files = (uint32_t)settings->open_files;
	if (settings->threads)
		total->threads = (uint32_t)settings->threads;
	log_debug("transfers may have %" PRIu64 " MiB of memory, %" PRIu32 " open files, %" PRIu32
		  " threads, all together",
		total->memory_bytes >> 20, total->files, total->threads);
}

uint64_t daemon_session_descriptors(const struct daemon *d)
{
	return d->own_descriptors +
	       ((uint64_t)d->session_count + d->burials) * SESSION_DESCRIPTORS +
	       d->channels_expected;
}

void daemon_count_descriptors(struct daemon *d)
{
	const struct scheduler *jobs = &d->scheduler;
	uint64_t used = daemon_session_descriptors(d) +
			(jobs->held_count + 1) * (uint64_t)JOB_DESCRIPTORS +
			jobs->total.files * (uint64_t)BUDGET_FILE_DESCRIPTORS;

	used = used > d->descriptors ? used - d->descriptors : 0;
	used = (used + BUDGET_FILE_DESCRIPTORS - 1) / BUDGET_FILE_DESCRIPTORS;
	scheduler_reserve(&d->scheduler, used < UINT32_MAX ? (uint32_t)used : UINT32_MAX);
}

int daemon_init(struct daemon *d, const struct daemon_settings *settings, const char *config)
{
	struct admission_limits limits;
	struct budget total;
	struct budget_host host;
	int err;

	*d = (struct daemon){
		.settings = settings,
		.drain_by_ns = UINT64_MAX,
		.stop_by_ns = UINT64_MAX,
		.poller = {-1},
		.signals_fd = -1,
		.signals = {.fd = -1},
		.told_fd = -1,
		.told = {.fd = -1},
		.tasks_done = {.fd = -1},
		.checks_done = {.fd = -1},
		.asks_done = {.fd = -1},
		.devices = {.fd = -1, .watch = {.fd = -1}},
		.next_session = 1,
	};
	audit_init(&d->audit);
	grants_init(&d->grants);
	TAILQ_INIT(&d->sums_waiting);
	TAILQ_INIT(&d->sessions);
	TAILQ_INIT(&d->half_open);
	TAILQ_INIT(&d->busy);
	TAILQ_INIT(&d->dead);
	TAILQ_INIT(&d->told_jobs);
	pthread_mutex_init(&d->told_lock, NULL);
	deadline_list_init(&d->handshakes, settings->handshake_timeout_s * NS_PER_S);
	deadline_list_init(&d->idle, settings->idle_timeout_s * NS_PER_S);
	deadline_list_init(&d->closing, DAEMON_CLOSING_NS);
	deadline_list_init(&d->logins, settings->login_timeout_s * NS_PER_S);
	deadline_list_init(&d->refusals[0], REFUSAL_SHORT_NS);
	deadline_list_init(&d->refusals[1], REFUSAL_NS);
	statistics_init(&d->statistics);
	admit_init(d);
	daemon_budget(settings, &total);
	atomic_store(&d->areas.most_bytes, daemon_settings_early_memory(settings));
	scheduler_init(&d->scheduler, &total, settings->stall_timeout_s * NS_PER_S);
	daemon_settings_admission(settings, &limits);
	admission_init(&d->admission, &limits);
	limits_init(&d->limits);
	quotas_init(&d->quotas);
	job_turns_check(settings);

	err = exports_open(settings, &d->exports);
	if (!err)
		err = login_check_settings(settings, false);
	if (!err)
		err = audit_use(&d->audit.json, settings->audit_log);
	if (!err)
		err = audit_use(&d->audit.xferlog, settings->xferlog);
	if (!err)
		err = host_key_open(settings, &d->tls);
	if (!err)
		err = exports_confine(d->exports, &d->sandbox);
	if (!err)
		err = sandbox_check(settings);
	if (!err) /* no thread has been started yet, and the key need not be read again */
		err = sandbox_enter(&d->sandbox, settings, config);
	if (err)
		return err;
	err = poller_init(&d->poller);
	if (!err)
		err = daemon_stop_watch(d);
	if (!err)
		err = daemon_jobs_watch(d);
	if (!err)
		err = start_tasks(d);
	if (!err)
		err = start_checks(d);
	if (err) {
		log_error("cannot set up the event loop: %s", strerror(-err));
		return err == -EINVAL ? -EIO : err;
	}
	exports_sweep(d->exports, d->settings->keep_partial_s);
	quotas_use(d);
	err = control_socket_open(d);
	if (!err)
		err = listen_open(d);
	if (!err) {
		budget_measure_host(&host);
		d->descriptors = host.descriptors;
		d->own_descriptors = host.descriptors - limit_free_files() + SPARE_DESCRIPTORS;
	}
	return err;
}

static void bury(struct daemon *d)
{
	burials_begin(d);
	if (!SLIST_EMPTY(&d->replaced))
		reload_tidy(d);
}

static void close_exports(struct daemon *d)
{
	struct exports *e;

	if (d->exports)
		SLIST_INSERT_HEAD(&d->replaced, d->exports, entry);
	while ((e = SLIST_FIRST(&d->replaced))) {
		SLIST_REMOVE_HEAD(&d->replaced, entry);
		exports_close(e);
		exports_free(e);
	}
}

void daemon_fini(struct daemon *d)
{
	struct daemon_session *s;

	while ((s = TAILQ_FIRST(&d->sessions)))
		daemon_session_drop(s, "the daemon ends");
	burials_finish(d);
	control_socket_close(d);
	listen_fini(d);
	task_pool_free(d->tasks);
	task_pool_free(d->checks);
	task_pool_free(d->asks);
	poller_fini(&d->poller);
	if (d->told_fd >= 0)
		close(d->told_fd);
	if (d->signals_fd >= 0)
		close(d->signals_fd);
	audit_fini(&d->audit);
	grants_fini(&d->grants);
	tls_context_free(d->tls);
	close_exports(d);
	quotas_fini(&d->quotas);
	statistics_fini(&d->statistics);
	pthread_mutex_destroy(&d->told_lock);
}

static void expire(struct deadline_list *list, uint64_t now_ns)
{
	struct deadline *over;

	while ((over = deadline_expired(list, now_ns)))
		daemon_session_expired(over->owner, over);
}

static void give_turns(struct daemon *d)
{
	struct daemon_session *s, *last = TAILQ_LAST(&d->busy, daemon_busy);

	while ((s = TAILQ_FIRST(&d->busy))) {
		session_turns_take(s);
		if (s == last)
			break;
	}
}

#define LISTS 6u

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void deadlines(struct daemon *d, struct deadline_list *out[LISTS])
{
	struct deadline_list *lists[LISTS] = {&d->handshakes, &d->idle, &d->closing, &d->logins,
		&d->refusals[0], &d->refusals[1]};

	memcpy(out, lists, sizeof lists);
}

/* When something is to be done though nothing happens. */
static uint64_t next_ns(struct daemon *d)
{
	struct deadline_list *lists[LISTS];
	uint64_t until_ns = earlier(daemon_stop_next_ns(d), once_next_ns(d));

	deadlines(d, lists);
	for (unsigned i = 0; i < LISTS; i++)
		until_ns = earlier(until_ns, deadline_first_ns(lists[i]));
	until_ns = earlier(until_ns, scheduler_next_ns(&d->scheduler, clock_now_ns()));
	until_ns = earlier(until_ns, admission_next_ns(&d->admission, clock_now_ns()));
	until_ns = earlier(until_ns, quotas_next_ns(d));
	until_ns = earlier(until_ns, task_pool_next_ns(d->tasks));
	until_ns = earlier(until_ns, task_pool_next_ns(d->checks));
	until_ns = earlier(until_ns, task_pool_next_ns(d->asks));
	return TAILQ_EMPTY(&d->busy) ? until_ns : 0;
}

int daemon_round(struct daemon *d, int most_ms)
{
	struct deadline_list *lists[LISTS];
	uint64_t until_ns = next_ns(d), now_ns;
	int ms = until_ns == UINT64_MAX ? -1 : clock_until_ms(until_ns);
	int err = poller_wait(&d->poller, most_ms < 0 || (ms >= 0 && ms < most_ms) ? ms : most_ms);

	if (err) {
		log_error("event loop: %s", strerror(-err));
		return err;
	}
	give_turns(d);
	now_ns = clock_now_ns();
	deadlines(d, lists);
	for (unsigned i = 0; i < LISTS; i++)
		expire(lists[i], now_ns);
	if (d->scheduler.waiting_count)
		daemon_count_descriptors(d);
	scheduler_run(&d->scheduler, now_ns);
	admission_run(&d->admission, now_ns);
	quotas_tend(d, now_ns);
	task_pool_tend(d->tasks, now_ns);
	task_pool_tend(d->checks, now_ns);
	task_pool_tend(d->asks, now_ns);
	bury(d);
	return daemon_stop_tend(d, now_ns);
}

int daemon_run(struct daemon *d)
{
	int err = 0;

	while (!err && (!d->stopping || d->session_count || daemon_stop_waits(d)))
		err = daemon_round(d, -1);
	return err;
}
