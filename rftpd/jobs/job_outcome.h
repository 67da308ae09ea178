/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_outcome: how each file of a transfer ended, for the log and the audit log.
 */
#ifndef RFTPD_JOB_OUTCOME_H
#define RFTPD_JOB_OUTCOME_H

struct outcome;
struct transfer_job;

/* The `done` of the transfer's end; `job`: the transfer_job.  In the transfer's thread. */
void job_outcome_tell(void *job, const struct outcome *);
/* For the audit log alone: also of a transfer that did not begin.  Any thread. */
void job_outcome_audit(const struct transfer_job *, const struct outcome *);

#endif
