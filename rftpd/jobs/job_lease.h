/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_lease: what a transfer asks of the scheduler (rftpd/jobs/scheduler): memory, open
 * files and threads, at least and at most, and what it does with those that it gets.
 *
 * All of it belongs to the loop.
 */
#ifndef RFTPD_JOB_LEASE_H
#define RFTPD_JOB_LEASE_H

#include "proto/message.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon_session;
struct transfer_job;

/* Files of a tree that may be open at once; `kind`: enum message_data_kind. */
unsigned job_lease_files(const struct daemon_session *, uint8_t kind);
/* Says what it will ask for; `streams` of a feed, 0 of others; at most so many `files`. */
void job_lease_wants(struct transfer_job *, const struct message_data_request *, unsigned streams,
	unsigned files);
/* Asks, once.  true: the lease is held; false: session_transfers_granted will be called. */
bool job_lease_ask(struct transfer_job *);
/* It is held: the transfer keeps to what it has. */
void job_lease_apply(struct transfer_job *);
/* After daemon_jobs_released: what it has given back is for others. */
void job_lease_reduce(struct transfer_job *);

#endif
