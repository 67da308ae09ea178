/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_turns: a transfer's part of the bandwidth: its class, its claim in the line
 * (rftpd/jobs/admission), and the bucket that keeps its thread to what it was granted.
 *
 * All of it belongs to the loop, but for the bucket's side of the transfer's thread.
 */
#ifndef RFTPD_JOB_TURNS_H
#define RFTPD_JOB_TURNS_H

#include "rftpd/jobs/admission.h"
#include "transfer/transfer.h"

struct daemon_settings;
struct limits_of;
struct transfer_job;

struct job_turns { /* of a transfer_job */
	struct claim claim;
	struct bucket bucket;
	bool has_bucket;  /* it is limited */
	bool waits_turns; /* it has a claim */
	bool is_asked;    /* it lacks nothing but its lease and its turn */
	bool is_started;
	uint64_t limit_rate; /* of any transfer; 0: none */
	uint64_t asked_ns;
	uint64_t deadline_ns; /* MESSAGE_UNKNOWN: none */
	bool fails_late;      /* it does not begin after that */
};

/* Where the settings limit it: makes its bucket, and bounds window and blocks in params. 0, -errno.
 */
int job_turns_init(struct transfer_job *, const struct daemon_settings *);
/* Rates that it shares with others: the same by these.  Before it gets in line.  0 or -errno. */
int job_turns_bound(struct transfer_job *, const struct limits_of *);
/* Leaves the line, or gives its turn back. */
void job_turns_fini(struct transfer_job *);

/* Gets in line, in the loop.  0; -ENOSPC: too many wait; -ETIMEDOUT: it is late already. */
int job_turns_ask(struct transfer_job *);
/* Its data channels are there. */
void job_turns_connected(struct transfer_job *);
/* Whether it may begin, as far as bandwidth goes. */
bool job_turns_has(const struct transfer_job *);
/* Its thread begins. */
void job_turns_start(struct transfer_job *);
/* Its lease is there: true: it waits for its turn. */
bool job_turns_leased(struct transfer_job *);
/* Whether it is too late to begin. */
bool job_turns_is_late(const struct transfer_job *);
/* Its thread wants another turn. */
void job_turns_again(struct transfer_job *);

/* A block's payload at most, as HELLO agrees on it: so that turns end about where they should. */
uint32_t job_turns_max_block(const struct daemon_settings *);
/* Says what of the settings is cut to what there is. */
void job_turns_check(const struct daemon_settings *);

#endif
