/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/statistics: what the daemon has done since its start, counted by export and fabric.
 *
 * Belongs to the thread of the loop.
 */
#ifndef RFTPD_STATISTICS_H
#define RFTPD_STATISTICS_H

#include "session/pipe_ring.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct daemon;
struct daemon_session;
struct transfer_job;

#define STATISTICS_ROWS_MAX 64u /* exports times fabrics; what is beyond counts in the last */

struct statistics_row {
	char *export;
	char fabric[16];
	uint64_t stored, retrieved, fed; /* transfers that ended */
	uint64_t failed;                 /* of them, those that were cut short */
	uint64_t files, file_errors;     /* in them */
	uint64_t received_bytes, sent_bytes;
	uint64_t starved;       /* times a full block had no credit */
	uint64_t requests;      /* that the daemon started on data channels */
	uint64_t verify_errors; /* files whose checksums or digest were wrong */
};

struct statistics {
	uint64_t started_ns;
	uint64_t sessions, refused, killed, logins_failed;
	struct pipe_ring_counts replies; /* to clients that read them, of sessions that ended */
	struct statistics_row rows[STATISTICS_ROWS_MAX];
	unsigned row_count;
};

void statistics_init(struct statistics *);
void statistics_fini(struct statistics *);
/* Before its job is freed. */
void statistics_add_job(struct statistics *, const struct transfer_job *, bool failed);

/* Before its link is freed. */
void statistics_add_session(struct statistics *, const struct daemon_session *);

/* For people, or as one JSON object. */
void statistics_print(const struct daemon *, bool json, FILE *);
/* In the text format of Prometheus. */
void statistics_expose(const struct daemon *, FILE *);

#endif
