/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_transfers: see session_transfers.h.
 *
 * Owns the session's jobs, and what is known of their data channels.
 */
#include "rftpd/serve/session_transfers.h"

#include "base/clock.h"
#include "proto/status.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/serve/close_task.h"
#include "rftpd/serve/daemon_session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static unsigned number_of(const struct daemon_session *s, const struct session_transfer *t)
{
	return (unsigned)(t - s->transfers.of);
}

struct session_transfer *session_transfers_asked(struct daemon_session *s)
{
	return &s->transfers.of[s->asked];
}

bool session_transfers_busy(const struct daemon_session *s, unsigned transfer)
{
	const struct session_transfer *t = &s->transfers.of[transfer];

	return t->job && t != s->transfers.waits;
}

bool session_transfers_expect(const struct daemon_session *s)
{
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++)
		if (s->transfers.of[i].channels_deadline.list)
			return true;
	return false;
}

/* ---- data channels ---- */

void session_transfers_expect_channels(
	struct daemon_session *s, struct session_transfer *t, unsigned count)
{
	s->daemon->channels_expected += count;
	s->daemon->channels_expected -= t->channels_expected;
	t->channels_expected = count;
	t->channels_accepted = t->channels_failed = 0;
	deadline_stop(&t->channels_deadline);
	/* those that do not come in time are not waited for any more */
	if (count)
		deadline_start(&s->daemon->handshakes, &t->channels_deadline, clock_now_ns());
}

bool session_transfers_accept_channel(
	struct daemon_session *s, struct fabric_chan *chan, const struct message_greeting *greeting)
{
	unsigned number = link_transfer_of(greeting);
	struct session_transfer *t = &s->transfers.of[number];

	if (!(s->state & (SESSION_READY | SESSION_TASK | SESSION_RUNNING | SESSION_WAITING)) ||
		number >= MESSAGE_TRANSFERS_MAX || (t->job && t != s->transfers.waits) ||
		!t->channels_deadline.list)
		return false;
	fabric_chan_set_owner(chan, s);
	if (!link_accept_channel(s->link, chan, greeting) &&
		++t->channels_accepted == t->channels_expected && !t->job)
		deadline_stop(&t->channels_deadline);
	return true;
}

static void try_start(struct daemon_session *s);

void session_transfers_event(struct daemon_session *s, const struct fabric_event *ev)
{
	struct session_transfer *t;
	unsigned number;

	/* one that was closed meanwhile, by a transfer's thread or for new ones, says nothing */
	if (!link_channel_event(s->link, ev, &number))
		return;
	t = &s->transfers.of[number];
	if (!t->channels_accepted)
		return;
	if (ev->type != FABRIC_EVENT_CONNECTED)
		t->channels_failed++;
	if (t == s->transfers.waits)
		try_start(s);
}

bool session_transfers_expired(struct daemon_session *s, const struct deadline *d)
{
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
		struct session_transfer *t = &s->transfers.of[i];

		if (d != &t->channels_deadline)
			continue;
		log_debug("session %" PRIu32 " %s: %u of %u data channels came", s->number, s->peer,
			t->channels_accepted, t->channels_expected);
		if (t == s->transfers.waits)
			try_start(s);
		return true;
	}
	return false;
}

/* ---- early data ---- */

int session_transfers_early(struct daemon_session *s)
{
	session_transfers_asked(s)->early = true;
	return demux_park(link_demux(s->link), s->asked);
}

/* One at a time is asked for and does not run yet. */
void session_transfers_refused(struct daemon_session *s)
{
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
		struct session_transfer *t = &s->transfers.of[i];

		if (!t->early)
			continue;
		t->early = false;
		t->refused = true;
		session_transfers_expect_channels(s, t, 0);
		if (demux_drop(link_demux(s->link), i))
			daemon_session_break(s, -ENOMEM);
	}
}

static int are_closed(struct daemon_session *s, unsigned transfer, unsigned unused)
{
	(void)s;
	(void)transfer;
	(void)unused;
	return 0;
}

int session_transfers_tidy(struct daemon_session *s)
{
	int err = 0;

	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX && !err; i++) {
		struct session_transfer *t = &s->transfers.of[i];

		if (!t->refused)
			continue;
		t->refused = false;
		err = close_task_do(s, i, are_closed, 0);
		if (s->state == SESSION_TASK)
			return 1;
	}
	return err;
}

/* ---- waiting ---- */

static void forget_waiting(struct daemon_session *s)
{
	struct session_transfer *t = s->transfers.waits;

	if (!t)
		return;
	deadline_stop(&t->channels_deadline);
	transfer_job_free(t->job); /* which leaves the line at once */
	t->job = NULL;
	s->transfers.waits = NULL;
}

void session_transfers_give_up(struct daemon_session *s)
{
	forget_waiting(s);
	daemon_session_ready(s);
}

/* The client asks for the transfer as soon as it knows what its channels are to show. */
static bool channels_may_come(const struct daemon_session *s, const struct session_transfer *t)
{
	return !t->job->copy &&
	       link_channel_count(s->link, number_of(s, t)) < t->channels_expected &&
	       !t->channels_failed && t->channels_deadline.list;
}

unsigned session_transfers_channels(const struct daemon_session *s, unsigned transfer)
{
	const struct session_transfer *t = &s->transfers.of[transfer];
	unsigned open = link_channel_count(s->link, transfer);
	bool expected = t->channels_deadline.list && !t->channels_failed;

	return expected && t->channels_expected > open ? t->channels_expected : open;
}

static int put_queued(struct daemon_session *s, unsigned position, uint64_t wait_ns)
{
	const struct job_turns *turns = &s->transfers.waits->job->turns;
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
		       : demux_put(daemon_session_dialogue(s), MESSAGE_QUEUED, STATUS_OK, data,
				 (size_t)len);
}

void session_transfers_queued(struct daemon_session *s, unsigned position, uint64_t wait_ns)
{
	int err = put_queued(s, position, wait_ns);

	if (position == 1 || !s->told_queued)
		log_debug("session %" PRIu32 " %s: %s waits, %u in line", s->number, s->peer,
			message_name(transfer_job_type(s->transfers.waits->job)), position);
	s->told_queued = true;
	if (err) {
		session_transfers_give_up(s);
		daemon_session_break(s, err);
	}
}

/* What it is granted; the reply says that it is. */
static int tell_admitted(struct daemon_session *s)
{
	const struct job_turns *turns = &s->transfers.waits->job->turns;

	return turns->waits_turns ? put_queued(s, 0, clock_now_ns() - turns->asked_ns) : 0;
}

static int run_job(struct daemon_session *s, struct session_transfer *t)
{
	struct demux_port *port = NULL; /* of a copy only the loop says anything */
	int err = t->job->copy ? 0 : demux_open(link_demux(s->link), number_of(s, t), &port);

	if (err)
		return err;
	err = transfer_job_start(t->job);
	if (err) {
		demux_close(port);
		return err;
	}
	t->early = false;
	s->transfers.waits = NULL;
	s->transfers.running++;
	daemon_session_ready(s);
	return 0;
}

static void refuse_waiting(struct daemon_session *s, uint16_t status, const char *why)
{
	int err = daemon_session_refuse(
		s, transfer_job_type(s->transfers.waits->job), status, "%s", why);

	session_transfers_give_up(s);
	if (err)
		daemon_session_break(s, err);
}

static void try_start(struct daemon_session *s)
{
	struct session_transfer *t = s->transfers.waits;
	char why[128];
	int err;

	if (channels_may_come(s, t))
		return;
	deadline_stop(&t->channels_deadline);
	if (!t->job->copy && !link_channel_count(s->link, number_of(s, t))) {
		refuse_waiting(s, STATUS_INVALID, "no data channel is connected");
		return;
	}
	if (!transfer_job_ask(t->job))
		return; /* session_transfers_granted */
	err = tell_admitted(s);
	if (err) {
		session_transfers_give_up(s);
		daemon_session_break(s, err);
		return;
	}
	err = run_job(s, t);
	if (!err)
		return;
	snprintf(why, sizeof why, "cannot start a transfer: %s", strerror(-err));
	refuse_waiting(s, status_from_errno(err), why);
}

void session_transfers_granted(struct daemon_session *s)
{
	try_start(s);
}

void session_transfers_late(struct daemon_session *s)
{
	refuse_waiting(s, STATUS_TIMEOUT, "its deadline has passed before it could begin");
}

void session_transfers_start(struct daemon_session *s, struct transfer_job *job)
{
	struct session_transfer *t = &s->transfers.of[job->number];

	assert(!t->job && !s->transfers.waits);
	if (s->lost) { /* nobody is there to send, or to take, anything */
		transfer_job_free(job);
		return;
	}
	t->job = job;
	s->transfers.waits = t;
	s->told_queued = false;
	s->state = SESSION_WAITING;
	deadline_stop(&s->deadline);
	/* data channels that never connect must not hold it up for ever */
	deadline_start(&s->daemon->handshakes, &t->channels_deadline, clock_now_ns());
	switch (transfer_job_queue(job)) {
	case 0:
		try_start(s);
		break;
	case -ETIMEDOUT:
		session_transfers_late(s);
		break;
	case -ENOSPC:
		refuse_waiting(s, STATUS_LIMIT, "too many transfers wait already: try again later");
		break;
	default:
		refuse_waiting(s, STATUS_NO_MEMORY, "out of memory");
	}
}

/* ---- running ---- */

void session_transfers_cancel(struct daemon_session *s)
{
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
		struct transfer_job *job = s->transfers.of[i].job;

		if (!session_transfers_busy(s, i))
			continue;
		if (s->killed)
			transfer_job_kill(job);
		else if (s->daemon->stopping)
			transfer_job_cancel(job);
		else
			transfer_job_break(job);
	}
}

void session_transfers_give_up_all(struct daemon_session *s)
{
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++)
		if (session_transfers_busy(s, i))
			transfer_job_give_up(s->transfers.of[i].job);
}

void session_transfers_lost(struct daemon_session *s)
{
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++)
		if (session_transfers_busy(s, i) && s->transfers.of[i].job->copy)
			transfer_job_give_up(s->transfers.of[i].job);
}

bool session_transfers_abort_copy(struct daemon_session *s)
{
	struct transfer_job *job = session_transfers_asked(s)->job;

	if (!job || !job->copy || !session_transfers_busy(s, s->asked))
		return false;
	job->copy->was_aborted = true;
	transfer_job_give_up(job);
	return true;
}

void session_transfers_copied(struct transfer_job *job)
{
	struct daemon_session *s = job->session;
	int err = s->lost || s->dead ? 0 : copy_job_tell(job);

	if (err)
		daemon_session_break(s, err);
}

/* The last replies, and what an ABORT is answered with. */
static void tell_copy_end(struct daemon_session *s, struct transfer_job *job)
{
	int err = s->lost || s->dead ? 0 : copy_job_tell_end(job);

	if (!err && !s->lost && job->copy->was_aborted)
		err = daemon_session_abort(s, job->number);
	if (err)
		daemon_session_break(s, err);
}

void session_transfers_finished(struct transfer_job *job)
{
	struct daemon_session *s = job->session;
	struct session_transfer *t = &s->transfers.of[job->number];
	struct verdict why;
	bool is_copy;
	enum verdict_scope outcome = transfer_job_finish(job, &s->files, &s->bytes, &why);

	if (job->copy)
		tell_copy_end(s, job);
	is_copy = job->copy;
	statistics_add_job(&s->daemon->statistics, job, outcome > VERDICT_FILE);
	transfer_job_free(job);
	t->job = NULL;
	s->transfers.running--;
	if (is_copy) { /* it had no data channels of this session */
		daemon_session_over(s);
		return;
	}
	if (outcome > VERDICT_FILE) /* both sides have closed them */
		session_transfers_expect_channels(s, t, 0);
	if (outcome == VERDICT_SESSION)
		daemon_session_break(s, status_to_errno(why.status));
	daemon_session_over(s);
}

void session_transfers_free(struct daemon_session *s)
{
	forget_waiting(s);
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
		struct session_transfer *t = &s->transfers.of[i];

		deadline_stop(&t->channels_deadline);
		s->daemon->channels_expected -= t->channels_expected;
		t->channels_expected = 0;
	}
}
