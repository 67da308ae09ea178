/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_transfers: the transfers of one session: their data channels, and their jobs
 * from the request to the end.
 *
 * One at a time waits, for its channels or its lease, and with it the session (SESSION_WAITING);
 * as many run as was agreed on.  All is called in the loop's thread.
 */
#ifndef RFTPD_SESSION_TRANSFERS_H
#define RFTPD_SESSION_TRANSFERS_H

#include "proto/message.h"
#include "proto/message_greeting.h"
#include "rftpd/serve/deadline.h"

#include <stdbool.h>

struct daemon_session;
struct fabric_chan;
struct fabric_event;
struct transfer_job;

/* One that a session can run, by its number. */
struct session_transfer {
	/* data channels since the last CHANNELS request */
	unsigned channels_expected, channels_accepted, channels_failed;
	struct deadline channels_deadline; /* of those that are expected */
	struct transfer_job *job;          /* that waits or runs; NULL: none */
	bool early;   /* it is asked for, and its frames come without waiting */
	bool refused; /* it was so; its channels are still to be closed */
};

struct session_transfers {
	struct session_transfer of[MESSAGE_TRANSFERS_MAX];
	struct session_transfer *waits; /* NULL: none */
	unsigned running;               /* their threads use the session */
};

/* The one that the present request is about. */
struct session_transfer *session_transfers_asked(struct daemon_session *);
/* Whether the job of one has not been taken back yet. */
bool session_transfers_busy(const struct daemon_session *, unsigned transfer);
/* Whether data channels are expected that have not come. */
bool session_transfers_expect(const struct daemon_session *);

/* Data channels that one may have: those that are open, or are expected. */
unsigned session_transfers_channels(const struct daemon_session *, unsigned transfer);

/* New data channels are expected, `count` of them; 0: there are none any more. */
void session_transfers_expect_channels(
	struct daemon_session *, struct session_transfer *, unsigned count);
/* A data channel's request.  false: the session waits for none; `chan` is still the caller's. */
bool session_transfers_accept_channel(
	struct daemon_session *, struct fabric_chan *chan, const struct message_greeting *);
/* An event of a data channel. */
void session_transfers_event(struct daemon_session *, const struct fabric_event *);
/* Whether the deadline was one for data channels, which do not come any more. */
bool session_transfers_expired(struct daemon_session *, const struct deadline *);

/* The request says that frames of the transfer follow it: they are kept for the job.  0 or -errno.
 */
int session_transfers_early(struct daemon_session *);
/* The transfer that is asked for is refused: what was sent early of it goes nowhere, and no channel
 * is left that more of it could come by once session_transfers_tidy has been called. */
void session_transfers_refused(struct daemon_session *);
/* Before the next frame is taken: begins to close the channels of those that were refused.  1: the
 * session has a task for it; 0: there is nothing to do; -errno. */
int session_transfers_tidy(struct daemon_session *);
/* Starts the job, which waits until all its data channels are accepted, and for its turn and its
 * lease. */
void session_transfers_start(struct daemon_session *, struct transfer_job *);
/* What the job that waits had begun goes. */
void session_transfers_give_up(struct daemon_session *);
/* The job that waits has its lease and its turn. */
void session_transfers_granted(struct daemon_session *);
/* It waits: its place, and for about how long (MESSAGE_UNKNOWN: not known). */
void session_transfers_queued(struct daemon_session *, unsigned position, uint64_t wait_ns);
/* It is of no use to begin any more. */
void session_transfers_late(struct daemon_session *);
/* All that run are to stop soon. */
void session_transfers_cancel(struct daemon_session *);
/* The same, as who granted them has gone. */
void session_transfers_give_up_all(struct daemon_session *);
/* The connection has gone: what goes on without it is to stop soon. */
void session_transfers_lost(struct daemon_session *);
/* The client gives up a copy to another server: true: it is answered when that has ended. */
bool session_transfers_abort_copy(struct daemon_session *);
/* A copy has something to tell its client. */
void session_transfers_copied(struct transfer_job *);
/* Its thread is done. */
void session_transfers_finished(struct transfer_job *);
/* Jobs that wait, and deadlines. */
void session_transfers_free(struct daemon_session *);

#endif
