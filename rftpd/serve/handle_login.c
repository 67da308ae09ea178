/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_login: LOGIN: what a client shows is checked, and it is let in or refused.
 *
 * A check that takes a while is a task of a pool of its own, which holds no more than a few
 * threads.  It uses nothing of the session, which may end meanwhile.  A refusal is held back for as
 * long as counts from the request, so that it says neither how long the check took nor how; nobody
 * else waits for that.
 */
#include "base/addr.h"
#include "base/clock.h"
#include "proto/message_login.h"
#include "proto/status.h"
#include "rftpd/auth/login.h"
#include "rftpd/serve/admit.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_limits.h"
#include "rftpd/serve/inline_batch.h"
#include "rftpd/serve/session_log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GUESSES_MAX 3u /* wrong passwords, and then the session ends */
#define TRIES_MAX 8u   /* and wrong logins of any kind: an agent may have many keys */
#define CHECKS_MAX 256u

#define SAME(right) ((int)MESSAGE_RIGHT_##right == (int)PLACE_##right)
_Static_assert(SAME(READ) && SAME(LIST) && SAME(WRITE) && SAME(DELETE) && SAME(APPEND),
	"the rights on the wire are a place's");

struct login_check {
	struct task task; /* first */
	struct daemon *daemon;
	struct daemon_session *session; /* NULL: it has gone */
	struct login_attempt *attempt;
	uint64_t since_ns;
	bool right;
	struct grant *grant; /* that was shown, and taken; or NULL */
	uint16_t status;     /* of a refusal that says why: who shows a grant knows it; 0: none */
};

static void free_check(struct login_check *c)
{
	login_attempt_free(c->attempt);
	grant_free(c->grant);
	free(c);
}

void handle_login_forget(struct daemon_session *s)
{
	if (s->check)
		s->check->session = NULL; /* its task frees it */
	s->check = NULL;
	deadline_stop(&s->refusal);
}

static void audit(const struct daemon_session *s, const struct login_attempt *a, bool right)
{
	audit_write(&s->daemon->audit,
		&(struct audit_event){.event = "login",
			.session = s->number,
			.peer = s->peer,
			.user = right ? identity_name(&a->identity) : a->shown.user,
			.method = message_login_name(a->shown.method),
			.status = right ? STATUS_OK : STATUS_LOGIN,
			.text = right ? NULL : a->why});
}

/* ---- outcomes ---- */

static int welcome(struct daemon_session *s, struct login_attempt *a)
{
	uint8_t reply[20 + MESSAGE_NAME_MAX + MESSAGE_PATH_MAX];
	const char *user = identity_user(&a->identity);
	const char *home = s->daemon->once.active ? once_home() : "/";
	const struct message_login_reply m = {
		.rights = view_rights(s->view),
		.exports = (uint16_t)view_listed(s->view),
		.max_inline = inline_batch_max(s),
		.user = {(const uint8_t *)a->identity.user, strlen(a->identity.user)},
		.home = {(const uint8_t *)home, strlen(home)},
	};

	s->who = a->identity;
	quotas_share(s);
	if (s->who.method == MESSAGE_LOGIN_ONCE)
		once_taken(s->daemon);
	s->opener = a->opener;
	a->opener = NULL;
	deadline_stop(&s->login_deadline);
	session_log(s, LOG_LEVEL_INFO, "logged in as %s (%s)", user ? user : "anonymous",
		message_login_name(s->who.method));
	audit(s, a, true);
	daemon_session_ready(s);
	return daemon_session_reply(
		s, MESSAGE_LOGIN, reply, message_put_login_reply(&m, reply, sizeof reply));
}

/* Who he is has been shown: he may know why. */
static int turn_away(
	struct daemon_session *s, struct login_attempt *a, const struct limit_rule *rule)
{
	int err;

	if (rule)
		snprintf(a->why, sizeof a->why,
			"there are as many sessions as may be (limit = %.100s)", rule->text);
	else
		snprintf(a->why, sizeof a->why,
			"he has as many sessions as a user may have (max-per-user)");
	session_log(s, LOG_LEVEL_WARNING, "login as %.64s refused: %s", a->identity.user, a->why);
	audit(s, a, false);
	err = daemon_session_refuse(s, MESSAGE_LOGIN, STATUS_LIMIT, "%s",
		rule ? "there are as many sessions of your user, address, or in all, as may be"
		     : "you have as many sessions as a user may have");
	daemon_session_close(s, "there are as many sessions as may be");
	return err;
}

static void hold_back(struct daemon_session *s, const struct login_check *c)
{
	const struct login_attempt *a = c->attempt;
	bool guess = login_attempt_is_guess(a);

	s->daemon->statistics.logins_failed++;
	admit_blame(
		s->daemon, fabric_chan_peer(control_chan(link_control(s->link))), PENALTY_LOGIN);
	s->login_tries++;
	s->login_guesses += guess;
	session_log(s, LOG_LEVEL_WARNING, "login as %.64s refused (%s): %s",
		*a->shown.user ? a->shown.user : "anonymous", message_login_name(a->shown.method),
		a->why);
	audit(s, a, false);
	deadline_start(&s->daemon->refusals[guess], &s->refusal, c->since_ns);
}

/* The same words for whatever it was. */
int handle_login_refuse(struct daemon_session *s)
{
	bool last = s->login_guesses >= GUESSES_MAX || s->login_tries >= TRIES_MAX;
	int err = daemon_session_refuse(s, MESSAGE_LOGIN, STATUS_LOGIN, "%s",
		last ? "the login is refused, and there were too many" : "the login is refused");

	if (!err && last)
		daemon_session_close(s, "too many logins were refused");
	else if (!err)
		daemon_session_await_login(s);
	return err;
}

/* ---- grants ---- */

/* Whose it is was shown when it was given; what it is good for is known. */
static void check_grant(struct login_check *c, const struct message_login *login)
{
	struct daemon *d = c->daemon;
	struct login_attempt *a = c->attempt;
	int err = grants_take(
		&d->grants, login->data.data, login->data.len, (uint64_t)time(NULL), &c->grant);

	switch (d->settings->copies_from ? err : -EOPNOTSUPP) {
	case 0:
		c->right = true;
		a->identity = c->grant->who;
		a->identity.method = MESSAGE_LOGIN_GRANT;
		a->opener = c->grant->opener;
		c->grant->opener = NULL;
		return;
	case -ETIME:
		c->status = STATUS_DENIED;
		snprintf(a->why, sizeof a->why, "the grant has expired");
		return;
	case -EALREADY:
		c->status = STATUS_DENIED;
		snprintf(a->why, sizeof a->why,
			"the grant was used already, or the session that gave it has ended");
		return;
	default:
		snprintf(a->why, sizeof a->why, "it is no grant of this daemon's");
	}
}

/* It is for storing, and nothing else. */
static void limit_to_grant(struct daemon_session *s, struct login_check *c)
{
	for (unsigned i = 0; i < s->view->count; i++)
		s->view->entries[i].place.rights &= PLACE_WRITE;
	s->grant = c->grant;
	c->grant = NULL;
}

static int refuse_grant(struct daemon_session *s, const struct login_check *c)
{
	int err;

	session_log(s, LOG_LEVEL_WARNING, "login refused (grant): %s", c->attempt->why);
	audit(s, c->attempt, false);
	err = daemon_session_refuse(s, MESSAGE_LOGIN, c->status, "%s", c->attempt->why);
	daemon_session_close(s, "its grant is not good any more");
	return err;
}

/* Takes the check over. */
static int conclude(struct daemon_session *s, struct login_check *c)
{
	struct login_attempt *a = c->attempt;
	const struct limit_rule *rule = NULL;
	int err = 0;

	if (c->right) {
		s->view = view_new(s->daemon->exports, identity_user(&a->identity),
			fabric_chan_peer(control_chan(link_control(s->link))),
			!daemon_settings_has_logins(s->daemon->settings), &err);
		if (err == -EACCES) { /* a right password must not show by it */
			snprintf(a->why, sizeof a->why,
				"no export is for this user from this address");
			c->right = false;
			err = 0;
		}
	}
	if (!err && c->right && c->grant)
		limit_to_grant(s, c);
	if (!err && c->status) {
		err = refuse_grant(s, c);
		free_check(c);
		return err;
	}
	if (!err && c->right)
		rule = session_limits_login(s->daemon, identity_user(&a->identity),
			fabric_chan_peer(control_chan(link_control(s->link))));
	if (!err && c->right &&
		(rule || (identity_user(&a->identity) &&
				 admit_user_is_full(s->daemon, identity_user(&a->identity)))))
		err = turn_away(s, a, rule);
	else if (!err && c->right)
		err = welcome(s, a);
	else if (!err)
		hold_back(s, c);
	free_check(c);
	return err;
}

/* ---- the check ---- */

static void run_check(struct task *task)
{
	struct login_check *c = (struct login_check *)task;

	c->right = login_attempt_check(c->attempt);
}

static void run_ask(struct task *task)
{
	struct login_check *c = (struct login_check *)task;

	c->right = login_attempt_ask(c->attempt);
}

static int cannot_check(struct daemon_session *s, struct login_check *c, int err)
{
	free_check(c);
	session_log(s, LOG_LEVEL_WARNING, "its login is not checked: %s",
		err == -EUSERS ? "too many wait" : strerror(-err));
	err = daemon_session_refuse(s, MESSAGE_LOGIN, STATUS_LIMIT, "too many log in now");
	daemon_session_close(s, "too many log in");
	return err;
}

/* Who waits for PAM keeps no password of the file waiting, nor do those keep him. */
static int ask(struct login_check *c)
{
	c->attempt->asks = false;
	c->task.run = run_ask;
	return task_pool_start(c->daemon->asks, &c->task, clock_now_ns());
}

static void end_check(struct task *task)
{
	struct login_check *c = (struct login_check *)task;
	struct daemon_session *s = c->session;
	int err = 0;

	if (s && c->attempt->asks && !(err = ask(c)))
		return;
	c->daemon->check_count--;
	if (!s) {
		free_check(c);
		return;
	}
	assert(s->state == SESSION_CHECKING && s->check == c);
	s->check = NULL;
	err = err ? cannot_check(s, c, err) : conclude(s, c);
	if (err)
		daemon_session_break(s, err);
}

static int start_check(struct daemon_session *s, struct login_check *c)
{
	struct daemon *d = s->daemon;
	int err = d->check_count >= CHECKS_MAX ? -EUSERS : 0;

	c->task.run = run_check;
	c->task.done = end_check;
	if (!err)
		err = task_pool_start(d->checks, &c->task, c->since_ns);
	if (!err) {
		d->check_count++;
		s->check = c;
		return 0;
	}
	return cannot_check(s, c, err);
}

int handle_login(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_login login;
	struct login_check *c;
	int err = message_get_login(&login, data, len);
	uint16_t port;

	if (err)
		return err;
	c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->daemon = s->daemon;
	c->session = s;
	c->since_ns = clock_now_ns();
	c->attempt =
		login_attempt_new(&login, s->daemon->settings, control_tls(link_control(s->link)));
	if (!c->attempt) {
		free(c);
		return -ENOMEM;
	}
	(void)addr_split(s->peer, c->attempt->address, sizeof c->attempt->address, 0, &port);
	s->state = SESSION_CHECKING;
	s->refused_requests = 0;
	if (login.method == MESSAGE_LOGIN_GRANT) {
		check_grant(c, &login);
		return conclude(s, c);
	}
	if (login_attempt_is_slow(c->attempt))
		return start_check(s, c);
	c->right = login_attempt_check(c->attempt);
	return conclude(s, c);
}
