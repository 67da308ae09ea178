/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/quotas: the exports whose contents are counted, as a line `limit = export=...
 * quota=...` or `files=...` says so, and what each session may fill of them.
 *
 * What is there is measured at the start, when such a line comes, and every quota-scan seconds, by
 * tasks.  Exports of one directory are counted together.  Belongs to the thread of the loop.
 */
#ifndef RFTPD_QUOTAS_H
#define RFTPD_QUOTAS_H

#include "rftpd/daemon_settings.h"
#include "rftpd/jobs/task_pool.h"
#include "tree/space.h"

#include <stdio.h>
#include <sys/queue.h>
#include <sys/types.h>

struct daemon;
struct daemon_session;

struct quota {
	struct task task; /* first */
	TAILQ_ENTRY(quota) entry;
	struct quotas *all;
	char *label; /* of the first export of that directory */
	dev_t dev;
	ino_t ino;
	int top;
	struct space space;
	bool wanted, was_wanted; /* some rule is about it */
	bool running;
	int error; /* of the last measuring */
	uint64_t next_ns;
	atomic_bool stop;
};

struct quotas {
	TAILQ_HEAD(, quota) all;
	uint64_t period_s; /* 0: at the start only */
};

void quotas_init(struct quotas *);
void quotas_fini(struct quotas *);
/* The exports or the settings are others now: for sessions that are there, too. */
void quotas_use(struct daemon *);
/* What a session that has logged in may fill. */
void quotas_share(struct daemon_session *);
/* Starts what is due; and when the next one is: UINT64_MAX: none. */
void quotas_tend(struct daemon *, uint64_t now_ns);
uint64_t quotas_next_ns(const struct daemon *);
/* The daemon ends: what runs ends soon. */
void quotas_stop(struct daemon *);
/* For rftpctl. */
void quotas_print(const struct daemon *, bool json, FILE *);

#endif
