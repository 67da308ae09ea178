/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/transfer_job: one transfer: what it needs of the daemon, then, in a thread of its own,
 * from the OK reply to its end.
 *
 * Its lease (rftpd/jobs/scheduler) says how much memory, how many files and threads it may use; it
 * does not start without.  From start to finish the thread has the data channels of its number, and
 * the frames of that on the control channel (session/demux).
 */
#ifndef RFTPD_TRANSFER_JOB_H
#define RFTPD_TRANSFER_JOB_H

#include "base/worker.h"
#include "rftpd/jobs/copy_job.h"
#include "rftpd/jobs/job_turns.h"
#include "rftpd/jobs/limits.h"
#include "rftpd/jobs/scheduler.h"
#include "rftpd/serve/daemon_session.h"
#include "transfer/transfer.h"
#include "tree/filter.h"
#include "tree/incoming.h"
#include "tree/outgoing.h"
#include "tree/segments.h"

/* What a RETRIEVE or SEND_COPY is about. */
struct transfer_root {
	char *path, *name;              /* name: what it is called beneath the client's directory */
	const struct view_entry *entry; /* where the path leads, */
	const char *beneath;            /* and the rest of it there */
	int error;                      /* it leads nowhere */
};

struct transfer_job {
	struct lease lease;                   /* first: lease_ops find the job by it */
	TAILQ_ENTRY(transfer_job) told_entry; /* the daemon's, as are these, under its lock */
	bool is_told, is_over, is_released, wants_turn, has_news;
	struct job_turns turns;
	struct limits_of limits;
	struct daemon_session *session;
	unsigned number; /* in the session */
	uint16_t type;   /* MESSAGE_STORE, MESSAGE_RETRIEVE, MESSAGE_FEED, MESSAGE_SEND_COPY */
	struct copy_job *copy;       /* SEND_COPY; which has all that a RETRIEVE has, too */
	uint64_t limit_rate;         /* SEND_COPY: that its client asks for; 0: none */
	char *path;                  /* of the request, the first of several */
	struct transfer_root *roots; /* RETRIEVE */
	unsigned root_count;
	const struct view_entry *entry;      /* where the path leads, */
	const char *beneath;                 /* and the rest of it there */
	int error;                           /* it leads nowhere */
	struct message_data_request request; /* without its path */
	struct message_feed feed;            /* FEED; without its path */
	struct incoming *incoming;           /* STORE */
	struct filter filter;                /* RETRIEVE: what is left out */
	struct selection selection;          /* RETRIEVE: the names of a tree that are wanted */
	bool selected_itself;                /* and what the tree's directory has */
	struct outgoing *outgoing;           /* RETRIEVE */
	struct segments *segments;           /* FEED */
	bool silent;                         /* outcomes are not logged */
	bool measure;                        /* RETRIEVE: walk the trees for their sizes first */
	struct transfer_params params;
	struct transfer_stats stats;
	_Atomic uint64_t verify_errors; /* files whose checksums or digest were wrong */
	_Atomic uint64_t moved_ns;      /* when it last moved: the thread tells the loop */
	struct worker worker;
	pthread_mutex_t reply_lock; /* held until the reply has left: nothing is said before */
	int cancel_fd;
	enum verdict_scope outcome;
};

/* Made from a checked request; the path is looked at by transfer_job_open, but for which export it
 * leads to.  0 or -errno. */
int transfer_job_new_store(struct daemon_session *, const struct message_data_request *,
	const char *path, struct transfer_job **out);
/* Of no path yet; `path` is the first of those that are added. */
int transfer_job_new_retrieve(struct daemon_session *, const struct message_data_request *,
	const char *path, struct transfer_job **out);
/* The same that sends to another server.  Takes the copy_job over, also on error. */
int transfer_job_new_copy(struct daemon_session *, const struct message_send_copy *,
	const char *path, struct copy_job *, struct transfer_job **out);
/* Whether this side is the source. */
bool transfer_job_sends(const struct transfer_job *);
int transfer_job_add(struct transfer_job *, const char *path, const char *name);
int transfer_job_new_feed(struct daemon_session *, const struct message_feed *, const char *path,
	struct transfer_job **out);
/* In any thread, and it may block: opens what the path names in the session's place.  0; -errno:
 * what is wrong with the path. */
int transfer_job_open(struct transfer_job *);
/* It does not run (any more); its lease is given back.  Takes NULL. */
void transfer_job_free(struct transfer_job *);

uint16_t transfer_job_type(const struct transfer_job *);
const char *transfer_job_path(const struct transfer_job *);
/* Gets in line for bandwidth, if there is one; as job_turns_ask. */
int transfer_job_queue(struct transfer_job *);
/* Asks for its lease, once, and for its turn: true: it has both; false: session_transfers_granted
 * will be called. */
bool transfer_job_ask(struct transfer_job *);
/* The lease is held, and the transfer's port is open.  Replies OK to the request; the thread moves
 * the data; then daemon_jobs_finished. */
int transfer_job_start(struct transfer_job *);
/* Stops it soon, in any thread: the peer is told why, which lives as long as the process. */
void transfer_job_stop(struct transfer_job *, const struct transfer_cancel *why);
/* Stops it soon: the peer is told, what was begun is removed (a feed's is kept). */
void transfer_job_cancel(struct transfer_job *);
/* The same, by an administrator. */
void transfer_job_kill(struct transfer_job *);
/* The same, as its client asks for, or has gone. */
void transfer_job_give_up(struct transfer_job *);
/* The same, as the session it is of breaks off. */
void transfer_job_break(struct transfer_job *);
/* After daemon_jobs_finished: joins the thread, logs, adds up what was moved.  How
 * much of it failed, and why. */
enum verdict_scope transfer_job_finish(
	struct transfer_job *, uint64_t *files, uint64_t *bytes, struct verdict *why);

#endif
