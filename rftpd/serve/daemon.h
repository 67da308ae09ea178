/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon: the one event loop: what it serves, the sessions there are, and how it ends.
 *
 * All of it belongs to the main thread, except the list of transfers that tell of themselves.
 */
#ifndef RFTPD_DAEMON_H
#define RFTPD_DAEMON_H

#include "fabric/fabric.h"
#include "rftpd/daemon_settings.h"
#include "rftpd/jobs/scheduler.h"
#include "rftpd/serve/deadline.h"
#include "rftpd/serve/poller.h"
#include "session/tls.h"
#include "rftpd/sweeper.h"
#include "tree/place.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/queue.h>

struct daemon;
struct daemon_session;
struct task_pool;
struct transfer_job;

#define DAEMON_TRANSPORTS_MAX 4u
#define DAEMON_LISTENERS_MAX 64u

/* One fabric, and the queue on which all its connections are announced. */
struct daemon_transport {
	struct daemon *daemon;
	struct fabric *fabric;
	struct fabric_eq *eq;
	struct watch watch;
};

/* One address, and the transports that listen on it. */
struct daemon_address {
	struct sockaddr_storage ss;
	socklen_t len;
	struct fabric_listener
		*listeners[DAEMON_TRANSPORTS_MAX]; /* by transport; NULL: not on this one */
};

/* Looks for devices that came or went; for rftpd/listen_devices. */
struct listen_devices {
	int fd; /* a timer; -1: no fabric has devices */
	struct watch watch;
	uint64_t stamp;
	unsigned looks; /* that are left since something changed */
};

struct daemon {
	const struct daemon_settings *settings;
	struct place export;
	struct tls_context *tls; /* the host key's, for every session */
	bool stopping;

	struct poller poller;
	int signals_fd;
	struct watch signals;

	struct daemon_transport transports[DAEMON_TRANSPORTS_MAX];
	unsigned transport_count;
	struct daemon_address addresses[DAEMON_LISTENERS_MAX];
	unsigned address_count;
	struct listen_devices devices;

	TAILQ_HEAD(, daemon_session) sessions;
	TAILQ_HEAD(daemon_busy, daemon_session) busy; /* have used up their turn and want another */
	TAILQ_HEAD(, daemon_session) dead;            /* freed when the round ends */
	unsigned session_count;
	uint32_t next_session;

	struct deadline_list handshakes, idle, closing;
	struct scheduler scheduler;
	struct sweeper sweeper;
	struct task_pool *tasks; /* work on names */
	struct watch tasks_done;

	/* transfers that ended, or gave back what they had: from their threads to ours */
	int told_fd;
	struct watch told;
	pthread_mutex_t told_lock;
	TAILQ_HEAD(, transfer_job) told_jobs;
};

/*
 * Makes it from `settings`, which must outlive it: opens the export, listens.  Signals SIGTERM,
 * SIGINT and SIGHUP are blocked already.  -EINVAL: the configuration cannot be served (as against
 * what fails at this moment).  Logged.  daemon_fini afterwards in any case.
 */
int daemon_init(struct daemon *, const struct daemon_settings *settings);
void daemon_fini(struct daemon *);

/* What can be checked without serving: 0 or -EINVAL, logged. */
int daemon_check(const struct daemon_settings *);

/*
 * Serves until a signal asks for the end, then ends the sessions.  The signals are unblocked once
 * the first has come.  0; -ETIMEDOUT: transfers are still running, and nothing may be freed;
 * -errno: logged.
 */
int daemon_run(struct daemon *);

/* From a transfer's thread: the job is over; the main thread goes on with its session. */
void daemon_job_finished(struct daemon *, struct transfer_job *);
/* The same: it has given back all but its thread; the main thread lets others have it. */
void daemon_job_released(struct daemon *, struct transfer_job *);

#endif
