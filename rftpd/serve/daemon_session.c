/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon_session: see daemon_session.h.
 *
 * Owns the session's states and deadlines.  When its frames are read is session_turns' business,
 * what requests mean is handle's, and what a transfer does is transfer_job's.
 */
#include "rftpd/serve/daemon_session.h"

#include "base/clock.h"
#include "base/opener.h"
#include "proto/message_login.h"
#include "proto/status.h"
#include "proto/transfer.h"
#include "session/memory.h"
#include "session/pipe_ring.h"
#include "rftpd/serve/admit.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/inline_batch.h"
#include "rftpd/serve/listing.h"
#include "rftpd/serve/session_log.h"
#include "rftpd/serve/session_turns.h"
#include "rftpd/jobs/transfer_job.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct demux_port *daemon_session_dialogue(const struct daemon_session *s)
{
	return demux_dialogue(link_demux(s->link));
}

/* Whether a thread uses what is freed with it. */
static bool is_leased(const struct daemon_session *s)
{
	return s->transfers.running || s->state == SESSION_TASK;
}

/* ---- life ---- */

struct daemon_session *daemon_session_find(struct daemon *d, uint32_t number)
{
	struct daemon_session *s;

	SLIST_FOREACH(s, &d->numbers[number % DAEMON_BUCKETS], number_entry)
	if (s->number == number)
		return s;
	return NULL;
}

static uint32_t next_number(struct daemon *d)
{
	while (!d->next_session || daemon_session_find(d, d->next_session))
		d->next_session++;
	return d->next_session++;
}

void daemon_session_open(
	struct daemon *d, struct fabric_chan *chan, const struct message_greeting *greeting)
{
	struct daemon_session *s = calloc(1, sizeof *s);
	int err;

	if (!s) {
		log_error("no memory for another session");
		fabric_chan_free(chan);
		return;
	}
	s->daemon = d;
	s->state = SESSION_NEW;
	s->watch.fd = -1;
	s->admit_deadline_ns = MESSAGE_UNKNOWN;
	s->deadline.owner = s;
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++)
		s->transfers.of[i].channels_deadline.owner = s;
	s->login_deadline.owner = s->refusal.owner = s;
	s->started_ns = clock_now_ns();
	addr_format(fabric_chan_peer(chan), s->peer);
	fabric_chan_set_owner(chan, s);
	err = link_accept(chan, greeting, d->tls, &s->link);
	if (err) {
		log_warning("%s: cannot be accepted: %s", s->peer, strerror(-err));
		free(s);
		return;
	}
	link_set_areas(s->link, &d->areas);
	s->number = next_number(d);
	if (admit_begin(s)) {
		log_error("no memory for another session");
		link_free(s->link);
		free(s);
		return;
	}
	SLIST_INSERT_HEAD(&d->numbers[s->number % DAEMON_BUCKETS], s, number_entry);
	TAILQ_INSERT_TAIL(&d->sessions, s, entry);
	d->session_count++;
	d->statistics.sessions++;
	deadline_start(&d->handshakes, &s->deadline, s->started_ns);
	deadline_start(&d->logins, &s->login_deadline, s->started_ns);
}

void daemon_session_free(struct daemon_session *s)
{
	listing_free(s->listing);
	inline_batch_free(s);
	link_free(s->link);
	view_free(s->view);
	opener_free(s->opener);
	grant_free(s->grant);
	free(s);
}

/* What it has granted is good for nothing any more, and who has used it stops. */
static void end_granted(struct daemon_session *s)
{
	struct daemon_session *other;

	if (!s->view) /* it has not logged in */
		return;
	grants_forget(&s->daemon->grants, s->number);
	TAILQ_FOREACH(other, &s->daemon->sessions, entry)
	if (other->grant && other->grant->session == s->number)
		session_transfers_give_up_all(other);
}

void daemon_session_drop(struct daemon_session *s, const char *why)
{
	struct daemon *d = s->daemon;

	if (s->dead)
		return;
	assert(!is_leased(s));
	session_transfers_free(s); /* what was next for one that waited is granted to others */
	session_log(s, LOG_LEVEL_INFO,
		"ended after %.3f s: %" PRIu64 " files, %" PRIu64 " bytes (%s)",
		(double)(clock_now_ns() - s->started_ns) / 1e9, s->files, s->bytes, why);
	if (s->state != SESSION_NEW)
		audit_write(&d->audit, &(struct audit_event){.event = "end",
					       .session = s->number,
					       .peer = s->peer,
					       .user = daemon_session_user(s),
					       .moved = true,
					       .files = s->files,
					       .bytes = s->bytes,
					       .since_ns = s->started_ns,
					       .text = why});
	if (s->who.method == MESSAGE_LOGIN_ONCE)
		once_ended(d);
	statistics_add_session(&d->statistics, s);
	end_granted(s);
	s->dead = true;
	handle_login_forget(s);
	deadline_stop(&s->login_deadline);
	deadline_stop(&s->deadline);
	session_turns_end(s);
	admit_end(s);
	SLIST_REMOVE(&d->numbers[s->number % DAEMON_BUCKETS], s, daemon_session, number_entry);
	TAILQ_REMOVE(&d->sessions, s, entry);
	d->session_count--;
	TAILQ_INSERT_TAIL(&d->dead, s, entry);
}

void daemon_session_go_on_closing(struct daemon_session *s)
{
	struct control *c = link_control(s->link);

	if (s->disconnecting || s->transfers.running)
		return;
	if (!s->deadline.list)
		deadline_start(&s->daemon->closing, &s->deadline, clock_now_ns());
	control_push(c);
	if (s->connected && control_pending_bytes(c))
		return;
	if (s->connected && !s->said_bye && !pipe_ring_is_read(control_pipe(c)))
		return; /* what it is told last lies where it reads; it says so, or time is up */
	s->disconnecting = true;
	poller_remove(&s->daemon->poller, &s->watch);
	fabric_chan_disconnect(control_chan(c));
}

void daemon_session_close(struct daemon_session *s, const char *why)
{
	if (s->dead || s->state == SESSION_CLOSING)
		return;
	assert(s->state != SESSION_TASK);
	log_debug("session %" PRIu32 " %s: closing: %s", s->number, s->peer, why);
	if (!s->connected) {
		daemon_session_drop(s, why);
		return;
	}
	session_transfers_free(s);
	session_transfers_cancel(s);
	handle_login_forget(s);
	deadline_stop(&s->login_deadline);
	s->state = SESSION_CLOSING;
	admit_is_set_up(s);
	s->why = why;
	deadline_stop(&s->deadline);
	session_turns_watch(s);
	if (!s->dead)
		daemon_session_go_on_closing(s);
}

bool daemon_session_is_ending(const struct daemon_session *s)
{
	return s->daemon->stopping || s->killed;
}

const char *daemon_session_user(const struct daemon_session *s)
{
	return s->who.method ? identity_name(&s->who) : NULL;
}

void daemon_session_stop(struct daemon_session *s)
{
	const char *why = s->killed ? "an administrator ended the session" : "the daemon ends";

	session_transfers_cancel(s);
	if (s->state == SESSION_TASK)
		return; /* when it is done */
	if (s->state == SESSION_WAITING) {
		daemon_session_refuse(
			s, transfer_job_type(s->transfers.waits->job), STATUS_SHUTDOWN, "%s", why);
		session_transfers_give_up(s);
	}
	if (!s->transfers.running) /* else when they have ended */
		daemon_session_close(s, why);
}

void daemon_session_kill(struct daemon_session *s)
{
	s->killed = true;
	if (s->state == SESSION_NEW) /* it has said nothing, and is told nothing */
		daemon_session_drop(s, "an administrator ended the session");
	else
		daemon_session_stop(s);
}

static const char *why_lost(int error)
{
	switch (error) {
	case -EBADMSG:
	case -EPROTO:
		return "it broke the protocol";
	case 0:
	case -ENOTCONN:
	case -ECONNRESET:
		return "the connection was closed";
	default:
		return strerror(-error);
	}
}

/* Who goes before a session is set up, or does not speak the protocol, wastes what that costs. */
static void blame(struct daemon_session *s, enum penalty what)
{
	admit_blame(s->daemon, fabric_chan_peer(control_chan(link_control(s->link))), what);
}

/* It ends as soon as no thread uses it any more. */
static void lose(struct daemon_session *s, int error)
{
	if (!s->lost && s->state != SESSION_CLOSING)
		s->why = why_lost(error);
	s->lost = true;
	session_transfers_lost(s);
	poller_remove(&s->daemon->poller, &s->watch);
	if (!is_leased(s))
		daemon_session_drop(s, s->why);
}

void daemon_session_break(struct daemon_session *s, int error)
{
	if (s->dead)
		return;
	if (error == -EBADMSG || error == -EPROTO)
		blame(s, PENALTY_PROTOCOL);
	session_transfers_cancel(s);
	lose(s, error);
}

void daemon_session_idle(struct daemon_session *s)
{
	s->idle_since_ns = clock_now_ns();
	deadline_start(&s->daemon->idle, &s->deadline, s->idle_since_ns);
}

void daemon_session_await_login(struct daemon_session *s)
{
	s->state = SESSION_GREETED;
	session_turns_look(s);
}

void daemon_session_ready(struct daemon_session *s)
{
	s->state = s->transfers.running ? SESSION_RUNNING : SESSION_READY;
	admit_is_set_up(s);
	if (s->state == SESSION_READY)
		daemon_session_idle(s);
	else
		deadline_stop(&s->deadline);
	session_turns_watch(s);
	/* frames that came meanwhile make no descriptor readable any more */
	if (!s->dead)
		session_turns_look(s);
}

/* ---- replies ---- */

int daemon_session_reply(struct daemon_session *s, uint16_t type, const void *data, ssize_t len)
{
	if (len < 0)
		return (int)len;
	return demux_put(
		daemon_session_dialogue(s), type | MESSAGE_REPLY, STATUS_OK, data, (size_t)len);
}

int daemon_session_refuse(
	struct daemon_session *s, uint16_t type, uint16_t status, const char *format, ...)
{
	uint8_t data[MESSAGE_TEXT_MAX + 2];
	char text[MESSAGE_TEXT_MAX + 1];
	ssize_t len;
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	log_debug("session %" PRIu32 " %s: %s: %s", s->number, s->peer, message_name(type), text);
	if (message_has_number(type))
		session_transfers_refused(s);
	len = message_put_text(
		(struct wire_bytes){(const uint8_t *)text, strlen(text)}, data, sizeof data);
	if (len < 0)
		return (int)len;
	return demux_put(
		daemon_session_dialogue(s), type | MESSAGE_REPLY, status, data, (size_t)len);
}

int daemon_session_abort(struct daemon_session *s, unsigned transfer)
{
	const struct transfer_abort abort = {.status = STATUS_CANCELLED};
	uint8_t answer[16];
	ssize_t n = transfer_put_abort(&abort, answer, sizeof answer);

	return n < 0 ? (int)n
		     : demux_put(daemon_session_dialogue(s), TRANSFER_ABORT, (uint16_t)transfer,
			       answer, (size_t)n);
}

/* ---- connection events and time ---- */

static void control_event(struct daemon_session *s, const struct fabric_event *ev)
{
	if (ev->type == FABRIC_EVENT_CONNECTED) {
		s->connected = true;
		session_turns_watch(s);
		if (!s->dead)
			session_turns_take(s);
		return;
	}
	if (s->state == SESSION_READY)
		session_turns_take(s); /* what it asked for before it went */
	if (s->dead)
		return;
	if (s->state == SESSION_WAITING)
		session_transfers_give_up(s);
	if (s->state & SESSION_HALF_OPEN)
		blame(s, PENALTY_LEFT);
	lose(s, ev->error); /* threads that use it see it, too */
}

void daemon_session_event(struct daemon_session *s, const struct fabric_event *ev)
{
	if (s->dead)
		return;
	if (ev->chan == control_chan(link_control(s->link)))
		control_event(s, ev);
	else
		session_transfers_event(s, ev);
}

void daemon_session_over(struct daemon_session *s)
{
	if (s->lost) {
		if (!is_leased(s))
			daemon_session_drop(s, session_turns_said_bye(s) ? "bye" : s->why);
		return;
	}
	if (s->state == SESSION_CLOSING) {
		session_turns_watch(s);
		daemon_session_go_on_closing(s);
		return;
	}
	if (s->state == SESSION_RUNNING) {
		daemon_session_ready(s);
	} else {
		session_turns_watch(s);
		session_turns_look(s);
	}
	if (daemon_session_is_ending(s) && !s->dead)
		daemon_session_stop(s);
}

void daemon_session_expired(struct daemon_session *s, struct deadline *d)
{
	if (session_transfers_expired(s, d))
		return;
	if (d == &s->login_deadline) {
		blame(s, PENALTY_SILENT);
		daemon_session_drop(s, s->state == SESSION_NEW ? "it said nothing in time"
							       : "it did not log in in time");
		return;
	}
	if (d == &s->refusal) {
		int err = handle_login_refuse(s);

		if (err)
			daemon_session_break(s, err);
		return;
	}
	switch (s->state) {
	case SESSION_NEW:
		blame(s, PENALTY_SILENT);
		daemon_session_drop(s, "it said nothing in time");
		break;
	case SESSION_READY:
		daemon_session_close(s, "idle");
		break;
	default:
		log_debug("session %" PRIu32 " %s did not take its last reply", s->number, s->peer);
		daemon_session_drop(s, s->why);
		break;
	}
}
