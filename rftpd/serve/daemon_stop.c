/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon_stop: see daemon_stop.h.
 */
#include "rftpd/serve/daemon_stop.h"

#include "base/clock.h"
#include "rftpd/jobs/task_pool.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/notify.h"
#include "rftpd/serve/daemon_session.h"
#include "rftpd/serve/listen.h"
#include "rftpd/serve/reload.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define STOPPING_NS (15 * NS_PER_S) /* transfers that are cancelled end within this */

/* Whether a transfer may go on: one that ends by itself. */
static bool may_drain(const struct daemon_session *s)
{
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++)
		if (session_transfers_busy(s, i) && s->transfers.of[i].job->lease.patient)
			return false;
	return s->transfers.running && s->state == SESSION_RUNNING;
}

/* Ends all sessions, or all but those whose transfer may go on.  How many those are. */
static unsigned stop(struct daemon *d, bool drain)
{
	struct daemon_session *s, *next;
	unsigned left = 0;

	d->stopping = true;
	listen_close(d);
	for (s = TAILQ_FIRST(&d->sessions); s; s = next) {
		next = TAILQ_NEXT(s, entry);
		if (drain && may_drain(s))
			left++;
		else
			daemon_session_stop(s);
	}
	return left;
}

static void stop_now(struct daemon *d)
{
	d->drain_by_ns = UINT64_MAX;
	d->stop_by_ns = clock_now_ns() + STOPPING_NS;
	stop(d, false);
}

void daemon_stop_drain(struct daemon *d)
{
	uint64_t limit_ns = d->settings->drain_timeout_s * NS_PER_S;
	unsigned left;

	if (d->stopping)
		return;
	notify_send("STOPPING=1");
	left = limit_ns ? stop(d, true) : 0;
	if (!left) {
		stop_now(d);
		return;
	}
	log_info("%u transfers may go on for %" PRIu64 " s", left, d->settings->drain_timeout_s);
	d->drain_by_ns = clock_now_ns() + limit_ns;
}

static void take_end(struct daemon *d, const char *name)
{
	sigset_t set;

	if (!d->stopping) {
		log_info("%s: ending %u sessions", name, d->session_count);
		daemon_stop_drain(d);
		if (d->drain_by_ns != UINT64_MAX)
			return;
	} else {
		log_info("%s again: ending %u sessions now", name, d->session_count);
		stop_now(d);
	}
	/* from now on the next one ends the program at once, whatever this thread waits for */
	poller_remove(&d->poller, &d->signals);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void take_signal(void *owner)
{
	char why[CONF_WHY_MAX];
	struct daemon *d = owner;
	struct signalfd_siginfo info;

	if (read(d->signals_fd, &info, sizeof info) != sizeof info)
		return;
	if (info.ssi_signo != SIGHUP)
		take_end(d, info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
	else if (d->configuration && !d->stopping)
		reload(d, why);
}

int daemon_stop_watch(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	d->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signals_fd < 0)
		return -errno;
	return poller_add(&d->poller, &d->signals, d->signals_fd, take_signal, d);
}

uint64_t daemon_stop_next_ns(const struct daemon *d)
{
	return MIN(d->stop_by_ns, d->drain_by_ns);
}

int daemon_stop_tend(struct daemon *d, uint64_t now_ns)
{
	if (!d->stopping && once_is_over(d, now_ns))
		stop_now(d);
	if (now_ns >= d->drain_by_ns) {
		log_warning("%u sessions were not done within drain-timeout", d->session_count);
		stop_now(d);
	}
	if (now_ns >= d->stop_by_ns) {
		if (d->session_count)
			log_warning("%u sessions did not end in time", d->session_count);
		else
			log_warning("the export's file system, or a device, does not answer: it "
				    "is left as it is");
		return -ETIMEDOUT;
	}
	return 0;
}

bool daemon_stop_waits(struct daemon *d)
{
	uint64_t limit_ns = clock_now_ns() + DAEMON_CLOSING_NS;

	if (d->exports) {
		d->exports->references--;
		SLIST_INSERT_HEAD(&d->replaced, d->exports, entry);
		d->exports = NULL;
		quotas_stop(d);
		d->drain_by_ns = UINT64_MAX;
		d->stop_by_ns = MIN(d->stop_by_ns, limit_ns);
		reload_tidy(d);
	}
	return task_pool_busy(d->tasks) || task_pool_busy(d->checks) || task_pool_busy(d->asks);
}
