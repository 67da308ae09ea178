/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_limits: the limits that a transfer shares with others (rftpd/jobs/limits), as its
 * lease and its bucket know them.  All belongs to the loop.
 */
#ifndef RFTPD_JOB_LIMITS_H
#define RFTPD_JOB_LIMITS_H

struct transfer_job;

/* Before it asks for anything.  0 or -ENOMEM. */
int job_limits_take(struct transfer_job *);
/* Its lease is given back, and its bucket is gone. */
void job_limits_give(struct transfer_job *);

#endif
