/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_turns: see session_turns.h.
 */
#include "rftpd/serve/session_turns.h"

#include "proto/transfer.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/serve/daemon_session.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/inline_batch.h"
#include "rftpd/serve/listing.h"
#include "session/pipe_ring.h"

#include <inttypes.h>
#include <string.h>

#define TURN_FRAMES 64u            /* then the others have theirs */
#define PENDING_HIGH (256u * 1024) /* a client that does not take its replies gets no more */

void session_turns_look(struct daemon_session *s)
{
	if (s->busy)
		return;
	s->busy = true;
	TAILQ_INSERT_TAIL(&s->daemon->busy, s, busy_entry);
}

static void frames_ready(void *owner)
{
	session_turns_take(owner);
}

void session_turns_watch(struct daemon_session *s)
{
	struct demux *demux = link_demux(s->link);
	int fd = demux_is_shared(demux) ? demux_port_fd(daemon_session_dialogue(s))
					: demux_control_fd(demux);
	int err;

	if (s->watch.fd == fd || s->lost)
		return;
	poller_remove(&s->daemon->poller, &s->watch);
	err = poller_add(&s->daemon->poller, &s->watch, fd, frames_ready, s);
	if (!err)
		return;
	log_error("session %" PRIu32 " %s: epoll: %s", s->number, s->peer, strerror(-err));
	daemon_session_break(s, err);
}

/* What is about a transfer waits until the last one of that number is over, and BYE until all are.
 */
static bool must_wait(const struct daemon_session *s, const struct message_header *h)
{
	if (h->type == TRANSFER_ABORT && session_transfers_busy(s, h->response) &&
		s->transfers.of[h->response].job->copy)
		return false;
	if (message_has_number(h->type))
		return session_transfers_busy(s, h->response);
	return h->type == MESSAGE_BYE && s->transfers.running;
}

/* One frame, or one frame's worth of a listing: 1; 0: nothing can be done now; -errno. */
static int step(struct daemon_session *s)
{
	struct demux *demux = link_demux(s->link);
	struct message_header h;
	const uint8_t *data;
	int err = 0;

	if (s->state & (SESSION_READY | SESSION_RUNNING))
		err = session_transfers_tidy(s);
	if (err)
		return err < 0 ? err : 0;
	if (demux_pending_bytes(demux) > PENDING_HIGH) {
		demux_push(demux);
		if (demux_pending_bytes(demux) > PENDING_HIGH)
			return 0;
	}
	if (s->listing)
		err = listing_more(s);
	else {
		err = demux_get(daemon_session_dialogue(s), &h, &data);
		if (err >= 0 && inline_batch_waits(s) && (!err || !inline_batch_takes(h.type))) {
			if (err)
				err = demux_unget(daemon_session_dialogue(s));
			return err ? err : inline_batch_begin(s);
		}
		if (err != 1)
			return err;
		if (must_wait(s, &h))
			return demux_unget(daemon_session_dialogue(s));
		err = handle_frame(s, &h, data);
	}
	if (!err && !s->dead && s->state == SESSION_READY)
		daemon_session_idle(s);
	return err ? err : 1;
}

/* Behind many frames that went by there may be others, of which no descriptor tells. */
static void look_for_more(struct daemon_session *s)
{
	if (!s->dead && !s->lost && demux_more(link_demux(s->link)))
		session_turns_look(s);
}

void session_turns_take(struct daemon_session *s)
{
	unsigned left = TURN_FRAMES;
	int err;

	if (s->busy) {
		TAILQ_REMOVE(&s->daemon->busy, s, busy_entry);
		s->busy = false;
	}
	if (s->dead || s->lost)
		return;
	session_turns_watch(s); /* a transfer may have ended, or begun */
	if (s->dead)
		return;
	/* armed first: what comes from here on makes the descriptor readable again */
	err = demux_arm(daemon_session_dialogue(s));
	/* a client that asks for a SEND reads nothing until it comes: it is heard although a task
	 * runs, a listing goes on or frames wait */
	if (pipe_ring_is_served(control_pipe(link_control(s->link))))
		demux_hear(link_demux(s->link));
	if (s->state &
		(SESSION_TASK |
			SESSION_CHECKING)) { /* frames wait; replies to earlier ones may leave */
		if (demux_pending_bytes(link_demux(s->link)))
			demux_push(link_demux(s->link));
		look_for_more(s);
		return;
	}
	err = err < 0 ? err : 0;
	while (!err && !s->dead &&
		s->state & (SESSION_NEW | SESSION_GREETED | SESSION_READY | SESSION_RUNNING |
				   SESSION_WAITING)) {
		if (!left--) {
			session_turns_look(s);
			return;
		}
		err = step(s);
		if (!err) {
			look_for_more(s);
			return;
		}
		if (err == 1)
			err = 0;
	}
	if (s->state == SESSION_CLOSING)
		daemon_session_go_on_closing(s);
	else if (err)
		daemon_session_break(s, err);
}

bool session_turns_said_bye(struct daemon_session *s)
{
	struct message_header h;
	const uint8_t *data;

	do {
		while (demux_get(daemon_session_dialogue(s), &h, &data) == 1)
			if (h.type == MESSAGE_BYE)
				return true;
	} while (demux_more(link_demux(s->link)));
	return false;
}

void session_turns_end(struct daemon_session *s)
{
	poller_remove(&s->daemon->poller, &s->watch);
	if (s->busy)
		TAILQ_REMOVE(&s->daemon->busy, s, busy_entry);
	s->busy = false;
}
