/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/copy_job: what a transfer_job has besides when it sends to another server: where that
 * is, the session with it, and what the client is told of it.
 *
 * The job's thread is that server's client.  What it has to tell goes into a box, which the loop
 * empties into replies of SEND_COPY: the thread never waits for the client.
 */
#ifndef RFTPD_COPY_JOB_H
#define RFTPD_COPY_JOB_H

#include "base/addr.h"
#include "base/verdict.h"
#include "proto/message_copy.h"
#include "proto/message_login.h"
#include "session/buffer.h"
#include "session/tls_key.h"

#include <pthread.h>
#include <stdbool.h>

struct transfer_job;
struct outcome;

struct copy_job {
	/* what was asked for */
	char host[MESSAGE_COPY_HOST_MAX + 1];
	char address[ADDR_TEXT_MAX]; /* with the port: for logs */
	char key[MESSAGE_COPY_KEY_MAX + 1];
	uint16_t port;
	uint8_t protect;
	uint8_t grant[MESSAGE_GRANT_MAX];
	size_t grant_len;
	bool shown; /* the grant: it is good for one login */
	uint32_t to_flags;
	uint64_t resume;
	char to[MESSAGE_PATH_MAX + 1];
	/* how it ended */
	enum message_copy_side side;
	/* the box */
	pthread_mutex_t lock;
	struct message_copy_reply news; /* its numbers; no text, no outcomes */
	char current[MESSAGE_NAME_MAX + 1];
	struct buffer outcomes; /* that the client was not told */
	struct buffer lengths;  /* a size_t for each of them */
	bool is_full;           /* the client does not take them */
	uint64_t told_ns;
	bool was_aborted; /* by the client, who waits for an ABORT: the loop's */
};

/* From a checked request.  NULL: no memory. */
struct copy_job *copy_job_new(const struct message_send_copy *, const struct sockaddr *);
void copy_job_free(struct copy_job *); /* takes NULL */

/* In the job's thread: connects, logs in, sends, and says good-bye.  Sets stats and outcome of the
 * job. */
void copy_job_run(struct transfer_job *);
/* The same thread: one file has an end; the numbers have changed. */
void copy_job_note(struct transfer_job *, const struct outcome *);
void copy_job_progress(struct transfer_job *);

/* In the loop: tells the client what is in the box, as far as it takes it.  0 or -errno. */
int copy_job_tell(struct transfer_job *);
/* The same of all that is in it, and then how it ended.  The thread has ended. */
int copy_job_tell_end(struct transfer_job *);

#endif
