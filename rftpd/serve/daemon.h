/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon: the one event loop: what it serves, the sessions there are, and how it ends.
 *
 * All of it belongs to the main thread, except the list of transfers that tell of themselves.
 */
#ifndef RFTPD_DAEMON_H
#define RFTPD_DAEMON_H

#include "fabric/fabric.h"
#include "rftpd/audit.h"
#include "rftpd/auth/grants.h"
#include "rftpd/confine/sandbox.h"
#include "rftpd/daemon_settings.h"
#include "rftpd/jobs/admission.h"
#include "rftpd/jobs/limits.h"
#include "rftpd/jobs/scheduler.h"
#include "rftpd/jobs/task_pool.h"
#include "rftpd/serve/deadline.h"
#include "rftpd/serve/exports.h"
#include "rftpd/serve/once.h"
#include "rftpd/serve/penalties.h"
#include "rftpd/serve/poller.h"
#include "rftpd/serve/quotas.h"
#include "rftpd/serve/statistics.h"
#include "rftpd/serve/text_server.h"
#include "session/tls.h"
#include "session/area.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/queue.h>

struct admit_source;
struct configuration;
struct daemon;
struct daemon_session;
struct sum_lane;
struct task_pool;
struct transfer_job;

#define DAEMON_CLOSING_NS (2 * NS_PER_S) /* a client takes its last reply within this */
#define DAEMON_TRANSPORTS_MAX 4u
#define DAEMON_LISTENERS_MAX 64u
#define DAEMON_BUCKETS 1024u /* of the tables of sessions: a power of two */

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

/* Looks for devices that came or went; for rftpd/serve/listen_devices. */
struct listen_devices {
	int fd; /* a timer; -1: no fabric has devices */
	struct watch watch;
	uint64_t stamp;
	unsigned looks; /* that are left since something changed */
};

struct daemon {
	const struct daemon_settings *settings;
	struct tls_context *tls;             /* the host key's, for every session */
	struct configuration *configuration; /* whose they are; NULL: they cannot be read again */
	struct exports *exports;             /* for sessions that log in from now on */
	SLIST_HEAD(, exports) replaced;      /* by a reload; older sessions are on them */
	struct audit audit;
	struct sandbox sandbox;
	struct grants grants;
	bool stopping;
	uint64_t drain_by_ns; /* transfers may go on until then; UINT64_MAX: not at all, or not
				 asked */
	uint64_t stop_by_ns;  /* all ends then */

	struct poller poller;
	int signals_fd;
	struct watch signals;

	struct daemon_transport transports[DAEMON_TRANSPORTS_MAX];
	unsigned transport_count;
	struct daemon_address addresses[DAEMON_LISTENERS_MAX];
	unsigned address_count;
	struct listen_devices devices;
	struct once once;

	TAILQ_HEAD(, daemon_session) sessions;
	TAILQ_HEAD(, daemon_session) half_open; /* those that are not set up, the oldest first */
	unsigned half_open_count;
	uint64_t channels_expected;                           /* data channels of all sessions */
	SLIST_HEAD(, admit_source) sources[DAEMON_BUCKETS];   /* by address */
	SLIST_HEAD(, daemon_session) numbers[DAEMON_BUCKETS]; /* by number */
	TAILQ_HEAD(daemon_busy, daemon_session) busy; /* have used up their turn and want another */
	TAILQ_HEAD(, daemon_session) dead;            /* freed when the round ends */
	unsigned session_count;
	unsigned burials; /* of sessions that have ended, under way (rftpd/serve/burials) */
	uint32_t next_session;

	struct statistics statistics;
	size_t inline_bytes; /* that batches of small files take (rftpd/serve/inline_batch) */
	struct penalties penalties;
	struct text_server control, metrics;
	char *control_path; /* of the socket that is there; NULL: none */

	struct deadline_list handshakes, idle, closing;
	struct deadline_list logins;      /* until a session has logged in */
	struct deadline_list refusals[2]; /* logins whose refusal is held back: short, long */
	struct scheduler scheduler;
	struct area_budget areas; /* for early data */
	struct admission admission;
	struct limits limits;
	struct quotas quotas;
	uint64_t descriptors;     /* that the process may have */
	uint64_t own_descriptors; /* of these the daemon's own, sessions and transfers apart */
	struct task_pool *tasks;  /* work on names */
	/* files whose sums are computed: that wait for their turn, and that have it */
	TAILQ_HEAD(, sum_lane) sums_waiting;
	unsigned sums_running;
	struct watch tasks_done;
	struct task_pool
		*checks; /* of logins: few at a time, for a password takes CPU and memory */
	struct watch checks_done;
	struct task_pool *asks; /* of logins: they wait for PAM, and take nothing */
	struct watch asks_done;
	unsigned check_count; /* under way and waiting */

	/* transfers that ended, or gave back what they had: from their threads to ours */
	int told_fd;
	struct watch told;
	pthread_mutex_t told_lock;
	TAILQ_HEAD(, transfer_job) told_jobs;
};

/*
 * Makes it from `settings`, which must outlive it: opens the export, listens.  Signals SIGTERM,
 * SIGINT and SIGHUP are blocked already.  -EINVAL: the configuration cannot be served (as against
 * what fails at this moment).  Logged.  `config`: the file that a reload will read, or NULL.
 * daemon_fini afterwards in any case.
 */
int daemon_init(struct daemon *, const struct daemon_settings *settings, const char *config);
void daemon_fini(struct daemon *);

/* What can be checked without serving: 0 or -EINVAL, logged. */
int daemon_check(const struct daemon_settings *);

/*
 * Serves until a signal asks for the end, then ends the sessions.  Of SIGTERM and SIGINT the
 * first lets transfers go on for drain-timeout, the second ends them; then the signals are
 * unblocked.  0; -ETIMEDOUT: transfers are still running, and nothing may be freed; -errno: logged.
 */
int daemon_run(struct daemon *);
/* One round of it: what has happened, or happens within most_ms (-1: whenever). */
int daemon_round(struct daemon *, int most_ms);

/* What all transfers together may have: as the settings say, or what suits the host. */
void daemon_budget(const struct daemon_settings *, struct budget *out);

/* Before the scheduler is asked: what sessions have of the descriptors is not lent as files. */
void daemon_count_descriptors(struct daemon *);
/* How many of them the daemon itself and its sessions have, transfers apart. */
uint64_t daemon_session_descriptors(const struct daemon *);

#endif
