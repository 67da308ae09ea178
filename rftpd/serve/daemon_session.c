/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon_session: see daemon_session.h.
 *
 * Owns the session's states and deadlines, and whose turn it is on the control channel.  What
 * requests mean is handle's; what a transfer does is transfer_job's.
 */
#include "rftpd/serve/daemon_session.h"

#include "base/clock.h"
#include "proto/status.h"
#include "session/memory.h"
#include "rftpd/serve/admit.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_log.h"
#include "rftpd/jobs/transfer_job.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TURN_FRAMES 64u                                 /* then the others have theirs */
#define SESSION_LEASED (SESSION_RUNNING | SESSION_TASK) /* a thread uses it */
#define PENDING_HIGH (256u * 1024) /* a client that does not take its replies gets no more */

static void try_start_job(struct daemon_session *);
static void watch_control(struct daemon_session *);

/* ---- life ---- */

struct daemon_session *daemon_session_find(struct daemon *d, uint32_t number)
{
	struct daemon_session *s;

	TAILQ_FOREACH(s, &d->sessions, entry)
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
	int r;

	if (!s) {
		log_error("no memory for another session");
		fabric_chan_free(chan);
		return;
	}
	s->daemon = d;
	s->place = &d->export->place;
	s->state = SESSION_NEW;
	s->watch.fd = -1;
	s->admit_deadline_ns = MESSAGE_UNKNOWN;
	s->deadline.owner = s->channels_deadline.owner = s;
	s->started_ns = clock_now_ns();
	addr_format(fabric_chan_peer(chan), s->peer);
	fabric_chan_set_owner(chan, s);
	r = link_accept(chan, greeting, d->tls, &s->link);
	if (r) {
		log_warning("%s: cannot be accepted: %s", s->peer, strerror(-r));
		free(s);
		return;
	}
	s->number = next_number(d);
	TAILQ_INSERT_TAIL(&d->sessions, s, entry);
	d->session_count++;
	d->statistics.sessions++;
	deadline_start(&d->handshakes, &s->deadline, s->started_ns);
}

void daemon_session_free(struct daemon_session *s)
{
	handle_list_free(s->listing);
	transfer_job_free(s->job);
	link_free(s->link);
	free(s);
}

void daemon_session_drop(struct daemon_session *s, const char *why)
{
	struct daemon *d = s->daemon;

	if (s->dead)
		return;
	assert(!(s->state & SESSION_LEASED)); /* a thread uses what is freed */
	if (s->job) { /* it leaves the line at once: what was its next is granted to others */
		transfer_job_free(s->job);
		s->job = NULL;
	}
	session_log(s, LOG_LEVEL_INFO,
		"ended after %.3f s: %" PRIu64 " files, %" PRIu64 " bytes (%s)",
		(double)(clock_now_ns() - s->started_ns) / 1e9, s->files, s->bytes, why);
	if (s->state != SESSION_NEW)
		audit_write(&d->audit, &(struct audit_event){.event = "end",
					       .session = s->number,
					       .peer = s->peer,
					       .moved = true,
					       .files = s->files,
					       .bytes = s->bytes,
					       .since_ns = s->started_ns,
					       .text = why});
	s->dead = true;
	deadline_stop(&s->deadline);
	deadline_stop(&s->channels_deadline);
	poller_remove(&d->poller, &s->watch);
	if (s->busy)
		TAILQ_REMOVE(&d->busy, s, busy_entry);
	s->busy = false;
	TAILQ_REMOVE(&d->sessions, s, entry);
	d->session_count--;
	TAILQ_INSERT_TAIL(&d->dead, s, entry);
}

/* CLOSING: once the last reply has left, disconnects and waits for the peer's part of it. */
static void finish_closing(struct daemon_session *s)
{
	struct control *c = link_control(s->link);

	if (s->disconnecting)
		return;
	control_push(c);
	if (s->connected && control_pending_bytes(c))
		return;
	s->disconnecting = true;
	poller_remove(&s->daemon->poller, &s->watch);
	fabric_chan_disconnect(control_chan(c));
}

void daemon_session_close(struct daemon_session *s, const char *why)
{
	if (s->dead || s->state == SESSION_CLOSING)
		return;
	assert(!(s->state & SESSION_LEASED));
	log_debug("session %" PRIu32 " %s: closing: %s", s->number, s->peer, why);
	if (!s->connected) {
		daemon_session_drop(s, why);
		return;
	}
	transfer_job_free(s->job); /* one that was still waiting */
	s->job = NULL;
	s->state = SESSION_CLOSING;
	s->why = why;
	deadline_stop(&s->channels_deadline);
	deadline_start(&s->daemon->closing, &s->deadline, clock_now_ns());
	if (!poller_has(&s->watch))
		watch_control(s);
	if (!s->dead)
		finish_closing(s);
}

bool daemon_session_is_ending(const struct daemon_session *s)
{
	return s->daemon->stopping || s->killed;
}

const struct daemon_export *daemon_session_export(const struct daemon_session *s)
{
	return (const struct daemon_export *)(const void *)((const char *)s->place -
							    offsetof(struct daemon_export, place));
}

void daemon_session_stop(struct daemon_session *s)
{
	const char *why = s->killed ? "an administrator ended the session" : "the daemon ends";

	if (s->state == SESSION_RUNNING) {
		if (s->killed)
			transfer_job_kill(s->job);
		else
			transfer_job_cancel(s->job);
		return;
	}
	if (s->state == SESSION_TASK)
		return; /* when it is done */
	if (s->state == SESSION_WAITING) {
		daemon_session_refuse(s, transfer_job_type(s->job), STATUS_SHUTDOWN, "%s", why);
		daemon_session_give_up(s);
	}
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

void daemon_session_break(struct daemon_session *s, int error)
{
	if (error == -EBADMSG || error == -EPROTO)
		blame(s, PENALTY_PROTOCOL);
	daemon_session_drop(s, why_lost(error));
}

static void become_busy(struct daemon_session *s)
{
	if (s->busy)
		return;
	s->busy = true;
	TAILQ_INSERT_TAIL(&s->daemon->busy, s, busy_entry);
}

static void become_idle(struct daemon_session *s)
{
	s->idle_since_ns = clock_now_ns();
	deadline_start(&s->daemon->idle, &s->deadline, s->idle_since_ns);
}

void daemon_session_ready(struct daemon_session *s)
{
	s->state = SESSION_READY;
	become_idle(s);
	/* frames that came meanwhile make no descriptor readable any more */
	become_busy(s);
}

/* ---- replies ---- */

int daemon_session_reply(struct daemon_session *s, uint16_t type, const void *data, ssize_t len)
{
	if (len < 0)
		return (int)len;
	return control_put(
		link_control(s->link), type | MESSAGE_REPLY, STATUS_OK, data, (size_t)len);
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
	len = message_put_text(
		(struct wire_bytes){(const uint8_t *)text, strlen(text)}, data, sizeof data);
	if (len < 0)
		return (int)len;
	return control_put(link_control(s->link), type | MESSAGE_REPLY, status, data, (size_t)len);
}

/* ---- turns ---- */

/* One frame, or one frame's worth of a listing: 1; 0: nothing can be done now; -errno. */
static int step(struct daemon_session *s)
{
	struct control *c = link_control(s->link);
	struct message_header h;
	const uint8_t *data;
	int r;

	if (control_pending_bytes(c) > PENDING_HIGH) {
		control_push(c);
		if (control_pending_bytes(c) > PENDING_HIGH)
			return 0;
	}
	if (s->listing)
		r = handle_list_more(s);
	else {
		r = control_get(c, &h, &data);
		if (r != 1)
			return r;
		r = handle_frame(s, &h, data);
	}
	if (!r && s->state == SESSION_READY)
		become_idle(s);
	return r ? r : 1;
}

void daemon_session_turn(struct daemon_session *s)
{
	unsigned left = TURN_FRAMES;
	int r;

	if (s->busy) {
		TAILQ_REMOVE(&s->daemon->busy, s, busy_entry);
		s->busy = false;
	}
	if (s->dead || s->state == SESSION_RUNNING)
		return;
	/* armed first: what comes from here on makes the descriptor readable again */
	r = control_arm(link_control(s->link));
	if (s->state == SESSION_TASK) { /* frames wait; replies to earlier ones may leave */
		if (control_pending_bytes(link_control(s->link)))
			control_push(link_control(s->link));
		return;
	}
	while (!r && s->state & (SESSION_NEW | SESSION_READY | SESSION_WAITING)) {
		if (!left--) {
			become_busy(s);
			return;
		}
		r = step(s);
		if (!r)
			return;
		if (r == 1)
			r = 0;
	}
	if (s->state == SESSION_CLOSING)
		finish_closing(s);
	else if (r)
		daemon_session_break(s, r);
}

static void control_ready(void *owner)
{
	daemon_session_turn(owner);
}

static void watch_control(struct daemon_session *s)
{
	int r = poller_add(
		&s->daemon->poller, &s->watch, control_fd(link_control(s->link)), control_ready, s);

	if (r) {
		log_error("session %" PRIu32 " %s: epoll: %s", s->number, s->peer, strerror(-r));
		daemon_session_drop(s, "it cannot be watched");
	}
}

/* ---- connection events and time ---- */

static void control_event(struct daemon_session *s, const struct fabric_event *ev)
{
	if (ev->type == FABRIC_EVENT_CONNECTED) {
		s->connected = true;
		watch_control(s);
		if (!s->dead)
			daemon_session_turn(s);
		return;
	}
	s->lost = true;
	if (s->state == SESSION_RUNNING)
		return; /* its thread sees it too, and ends */
	if (s->state == SESSION_READY)
		daemon_session_turn(s); /* what it asked for before it went */
	if (s->state == SESSION_TASK)   /* it ends with it */
		poller_remove(&s->daemon->poller, &s->watch);
	else if (!s->dead) {
		if (s->state & SESSION_HALF_OPEN)
			blame(s, PENALTY_LEFT);
		daemon_session_drop(s, s->state == SESSION_CLOSING ? s->why : why_lost(ev->error));
	}
}

void daemon_session_event(struct daemon_session *s, const struct fabric_event *ev)
{
	if (s->dead)
		return;
	if (ev->chan == control_chan(link_control(s->link))) {
		control_event(s, ev);
		return;
	}
	/* one that was closed meanwhile, by a transfer's thread or for new ones, says nothing */
	if (!s->channels_accepted || !link_channel_event(s->link, ev))
		return;
	if (ev->type != FABRIC_EVENT_CONNECTED)
		s->channels_failed++;
	if (s->state == SESSION_WAITING)
		try_start_job(s);
}

bool daemon_session_accept_channel(
	struct daemon_session *s, struct fabric_chan *chan, const struct message_greeting *greeting)
{
	if (!(s->state & (SESSION_READY | SESSION_TASK)) || !s->channels_deadline.list)
		return false;
	fabric_chan_set_owner(chan, s);
	if (!link_accept_channel(s->link, chan, greeting) &&
		++s->channels_accepted == s->channels_expected)
		deadline_stop(&s->channels_deadline);
	return true;
}

void daemon_session_expired(struct daemon_session *s, struct deadline *d)
{
	if (d == &s->channels_deadline) {
		log_debug("session %" PRIu32 " %s: %u of %u data channels came", s->number, s->peer,
			s->channels_accepted, s->channels_expected);
		if (s->state == SESSION_WAITING)
			try_start_job(s);
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

/* ---- transfers ---- */

static void take_control_back(struct daemon_session *s)
{
	if (!poller_has(&s->watch))
		watch_control(s);
	if (!s->dead)
		daemon_session_ready(s);
}

void daemon_session_give_up(struct daemon_session *s)
{
	transfer_job_free(s->job);
	s->job = NULL;
	take_control_back(s);
}

/* The client has seen its channels connect; we may not have yet, and could not send on them. */
static bool channels_may_come(const struct daemon_session *s)
{
	return link_channel_count(s->link) < s->channels_accepted && !s->channels_failed &&
	       s->channels_deadline.list;
}

static int put_queued(struct daemon_session *s, unsigned position, uint64_t wait_ns)
{
	const struct job_turns *turns = &s->job->turns;
	const char *class = turns->waits_turns ? turns->claim.name : "";
	const struct message_queued queued = {
		.position = position,
		.wait_ns = wait_ns,
		.share = turns->claim.rate,
		.class = {(const uint8_t *)class, strlen(class)},
	};
	uint8_t data[64];
	ssize_t len = message_put_queued(&queued, data, sizeof data);

	if (!s->takes_queued)
		return 0;
	return len < 0 ? (int)len
		       : control_put(link_control(s->link), MESSAGE_QUEUED, STATUS_OK, data,
				 (size_t)len);
}

/* What it is granted; the reply says that it is. */
static int tell_admitted(struct daemon_session *s)
{
	if (!s->job->turns.waits_turns)
		return 0;
	return put_queued(s, 0, clock_now_ns() - s->job->turns.asked_ns);
}

static void try_start_job(struct daemon_session *s)
{
	int r;

	if (channels_may_come(s))
		return;
	deadline_stop(&s->channels_deadline);
	if (!link_channel_count(s->link)) {
		r = daemon_session_refuse(s, transfer_job_type(s->job), STATUS_INVALID,
			"no data channel is connected");
	} else if (!transfer_job_ask(s->job)) {
		return; /* daemon_session_granted */
	} else {
		r = tell_admitted(s);
		if (r) {
			daemon_session_break(s, r);
			return;
		}
		s->state = SESSION_RUNNING;
		poller_remove(&s->daemon->poller, &s->watch);
		r = transfer_job_start(s->job);
		if (!r)
			return;
		r = daemon_session_refuse(s, transfer_job_type(s->job), status_from_errno(r),
			"cannot start a transfer: %s", strerror(-r));
	}
	daemon_session_give_up(s);
	if (r)
		daemon_session_break(s, r);
}

void daemon_session_granted(struct daemon_session *s)
{
	try_start_job(s);
}

void daemon_session_queued(struct daemon_session *s, unsigned position, uint64_t wait_ns)
{
	int r = put_queued(s, position, wait_ns);

	if (position == 1 || !s->told_queued)
		log_debug("session %" PRIu32 " %s: %s waits, %u in line", s->number, s->peer,
			message_name(transfer_job_type(s->job)), position);
	s->told_queued = true;
	if (r)
		daemon_session_break(s, r);
}

static void refuse_waiting(struct daemon_session *s, uint16_t status, const char *why)
{
	int r = daemon_session_refuse(s, transfer_job_type(s->job), status, "%s", why);

	daemon_session_give_up(s);
	if (r)
		daemon_session_break(s, r);
}

void daemon_session_late(struct daemon_session *s)
{
	refuse_waiting(s, STATUS_TIMEOUT, "its deadline has passed before it could begin");
}

void daemon_session_start_job(struct daemon_session *s, struct transfer_job *job)
{
	if (s->lost) { /* nobody is there to send, or to take, anything */
		transfer_job_free(job);
		return;
	}
	s->job = job;
	s->told_queued = false;
	s->state = SESSION_WAITING;
	deadline_stop(&s->deadline);
	/* data channels that never connect must not hold it up for ever */
	deadline_start(&s->daemon->handshakes, &s->channels_deadline, clock_now_ns());
	switch (transfer_job_queue(job)) {
	case 0:
		try_start_job(s);
		break;
	case -ETIMEDOUT:
		daemon_session_late(s);
		break;
	default:
		refuse_waiting(s, STATUS_LIMIT, "too many transfers wait already: try again later");
	}
}

void daemon_session_job_finished(struct daemon_session *s)
{
	struct verdict why;
	enum verdict_scope outcome = transfer_job_finish(s->job, &s->files, &s->bytes, &why);

	statistics_add_job(&s->daemon->statistics, s, outcome > VERDICT_FILE);
	transfer_job_free(s->job);
	s->job = NULL;
	s->state = SESSION_READY;
	/* pages that are pinned would be held without a lease */
	if (fabric_chan_caps(control_chan(link_control(s->link)))->is_device)
		memory_unregister(&link_rail(s->link)->memory);
	if (outcome > VERDICT_FILE) /* both sides have closed them */
		s->channels_expected = s->channels_accepted = s->channels_failed = 0;
	if (s->lost || outcome == VERDICT_SESSION) {
		daemon_session_drop(s, s->lost ? "the connection was closed"
					       : why_lost(status_to_errno(why.status)));
		return;
	}
	take_control_back(s);
	if (daemon_session_is_ending(s) && !s->dead)
		daemon_session_stop(s);
}
