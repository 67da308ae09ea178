/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon_session: one client: its channels and its state.
 *
 *     NEW --HELLO--> GREETED --LOGIN--> CHECKING --it is taken--> READY
 *     CHECKING --it is refused, which takes its time--> GREETED
 *     READY --STORE, RETRIEVE, FEED--> WAITING --channels, lease--> RUNNING
 *     WAITING --ABORT, no channel--> READY      RUNNING --the last transfer ends--> READY
 *     READY --a request that may block--> TASK --it is done, and answered--> READY or WAITING
 *     any --BYE, a violation, the end of the daemon--> CLOSING --its output is gone--> freed
 *     any --the connection broke, and no thread uses it--> freed
 *
 * RUNNING is READY with transfers (rftpd/serve/session_transfers) beside: requests are answered,
 * WAITING and TASK lead back to it, and each transfer's thread has its own frames (session/demux)
 * and data channels.  While one runs, or in TASK, nothing of the session is freed.  In TASK a
 * thread of the pool works on names in what the session sees (rftpd/serve/session_task); frames
 * wait meanwhile, as they do in CHECKING, whose thread uses nothing of the session
 * (rftpd/serve/handle_login).  A session whose connection has gone starts nothing any more.
 */
#ifndef RFTPD_DAEMON_SESSION_H
#define RFTPD_DAEMON_SESSION_H

#include "base/addr.h"
#include "proto/message_greeting.h"
#include "rftpd/auth/grants.h"
#include "rftpd/serve/daemon.h"
#include "rftpd/serve/session_transfers.h"
#include "session/link.h"

struct inline_batch;
struct listing;
struct login_check;

enum daemon_session_state { /* bits: the dispatch table names sets of them */
	SESSION_NEW = 1,
	SESSION_READY = 2,
	SESSION_WAITING = 4, /* a transfer, for its data channels or its lease */
	SESSION_RUNNING = 16,
	SESSION_CLOSING = 8,
	SESSION_TASK = 32,
	SESSION_GREETED = 64,   /* HELLO was answered, nobody has logged in */
	SESSION_CHECKING = 128, /* a login is checked, or its refusal held back */
};
/* it has not yet said who it is */
#define SESSION_HALF_OPEN (SESSION_NEW | SESSION_GREETED | SESSION_CHECKING)

struct daemon_session {
	TAILQ_ENTRY(daemon_session) entry; /* in daemon->sessions, or in daemon->dead */
	TAILQ_ENTRY(daemon_session) busy_entry;
	struct task burial;
	TAILQ_ENTRY(daemon_session) half_open_entry; /* for rftpd/serve/admit, as are these */
	struct admit_source *source;
	bool is_half_open;
	SLIST_ENTRY(daemon_session) number_entry;
	struct daemon *daemon;
	struct identity who;       /* whose it is, from READY on */
	struct opener *opener;     /* does the work on names of a user of the system; or NULL */
	struct view *view;         /* what it may touch; NULL before */
	struct grant *grant;       /* that it logged in with; or NULL */
	struct login_check *check; /* of a login, that runs */
	struct deadline login_deadline, refusal;
	unsigned login_tries, login_guesses; /* that were wrong */
	unsigned refused_requests;           /* that came with the last of them */
	struct link *link;
	uint32_t number;
	enum daemon_session_state state;
	bool connected, disconnecting, busy, dead;
	bool told_queued;
	bool takes_queued; /* the client knows QUEUED */
	bool lost;         /* the connection has gone */
	bool said_bye;     /* and waits for nothing any more */
	bool killed;       /* by an administrator: it ends once no thread uses it */
	struct watch watch;
	struct deadline deadline; /* HELLO, idle or closing */
	uint64_t idle_since_ns;   /* in READY */
	const char *why;          /* CLOSING, or lost: for the log */
	char peer[ADDR_TEXT_MAX];

	/* agreed by HELLO */
	uint16_t max_channels;
	unsigned max_transfers;
	uint32_t max_block, max_depth;
	uint8_t protect; /* enum message_protect */
	uint32_t engines;

	/* how urgent its transfers are, by ADMIT: their class ("": as the rules say), and a
	 * deadline from the request on (MESSAGE_UNKNOWN: none), after which they do not begin */
	char admit_class[MESSAGE_CLASS_MAX + 1];
	uint64_t admit_deadline_ns;
	bool admit_fails;

	struct inline_batch *inline_batch; /* PUT and GET that have come; NULL: none */
	struct listing *listing;           /* a LIST or TREE that is being answered */
	struct session_transfers transfers;
	unsigned asked; /* number of the transfer that the present request is about */

	/* for the log */
	uint64_t started_ns, files, bytes;
};

/* ---- for the loop ---- */

/* A control channel's request: takes over `chan`, accepts it and adds the session to the daemon's.
 */
void daemon_session_open(
	struct daemon *, struct fabric_chan *chan, const struct message_greeting *);
struct daemon_session *daemon_session_find(struct daemon *, uint32_t number);
/* Where its requests come and are answered. */
struct demux_port *daemon_session_dialogue(const struct daemon_session *);
/* An event of one of its channels, whose owner it is. */
void daemon_session_event(struct daemon_session *, const struct fabric_event *);
void daemon_session_expired(struct daemon_session *, struct deadline *);
/* A thread that used it does not any more. */
void daemon_session_over(struct daemon_session *);
/* The daemon ends: cancels its transfer, or closes. */
void daemon_session_stop(struct daemon_session *);
/* The same for one session, by an administrator. */
void daemon_session_kill(struct daemon_session *);
/* Whether it is to end as soon as it has nothing under way. */
bool daemon_session_is_ending(const struct daemon_session *);
/* For the audit log: whose it is; NULL: nobody has logged in. */
const char *daemon_session_user(const struct daemon_session *);
/* Sends what is queued, then closes.  `why` is for the log. */
void daemon_session_close(struct daemon_session *, const char *why);
/* Ends it now; it is freed from when the loop's round ends on (rftpd/serve/burials). */
void daemon_session_drop(struct daemon_session *, const char *why);
void daemon_session_free(struct daemon_session *);

/* ---- for rftpd/serve/session_turns ---- */

/* READY, and it has just done something: the time in which it may be idle begins. */
void daemon_session_idle(struct daemon_session *);
/* CLOSING: once transfers have ended and the last reply has left, disconnects and waits for the
 * peer's part of it. */
void daemon_session_go_on_closing(struct daemon_session *);

/* ---- for the handlers: 0, or -errno, which ends the session ---- */

/* The OK reply to a request of `type`; `len` may come from a put function. */
int daemon_session_reply(struct daemon_session *, uint16_t type, const void *data, ssize_t len);
/* The refusal of a request of `type`, with a text. */
int daemon_session_refuse(struct daemon_session *, uint16_t type, uint16_t status,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The ABORT that answers the client's. */
int daemon_session_abort(struct daemon_session *, unsigned transfer);
/* GREETED: the next frame may be LOGIN. */
void daemon_session_await_login(struct daemon_session *);
/* READY, or RUNNING: LOGIN is done, or what kept it from the next frame. */
void daemon_session_ready(struct daemon_session *);
/* Ends it now, for the reason that `error` is. */
void daemon_session_break(struct daemon_session *, int error);

#endif
