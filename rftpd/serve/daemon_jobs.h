/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon_jobs: what transfers, in threads of their own, tell the event loop.
 */
#ifndef RFTPD_DAEMON_JOBS_H
#define RFTPD_DAEMON_JOBS_H

#include "rftpd/serve/daemon.h"

/* Has the loop listen.  0 or -errno. */
int daemon_jobs_watch(struct daemon *);

/* From any thread. */
void daemon_jobs_finished(struct daemon *, struct transfer_job *);
/* It was cut short, and waits for its peer only. */
void daemon_jobs_released(struct daemon *, struct transfer_job *);
/* It has something to tell its client. */
void daemon_jobs_copied(struct daemon *, struct transfer_job *);
/* It has used up its turn. */
void daemon_jobs_want_turn(struct daemon *, struct transfer_job *);

#endif
