/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_ends: this side's end of a transfer: the files, the tree or the segments that its
 * request names, opened in the session's places with the rights that they need.
 */
#ifndef RFTPD_JOB_ENDS_H
#define RFTPD_JOB_ENDS_H

struct transfer_job;

/* Makes the job's `incoming`, `outgoing` or `segments`.  Any thread; it blocks.  0; -errno: what is
 * wrong with the path.  job_ends_fini follows either way. */
int job_ends_open(struct transfer_job *);
/* Ends what is still there: what was begun and is not done is removed, or left to be gone on with.
 */
void job_ends_fini(struct transfer_job *);

#endif
