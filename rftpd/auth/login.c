/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/login: see login.h.
 */
#include "rftpd/auth/login.h"

#include "base/log.h"
#include "rftpd/auth/users_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned login_methods(const struct daemon_settings *s)
{
	return (daemon_settings_lets_anonymous(s) ? 1u << MESSAGE_LOGIN_ANONYMOUS : 0) |
	       (s->users ? 1u << MESSAGE_LOGIN_PASSWORD : 0);
}

int login_check_settings(const struct daemon_settings *s)
{
	char why[USERS_WHY_MAX];

	if (s->users && users_check(s->users, why)) {
		log_error("users: %s", why);
		return -EINVAL;
	}
	return 0;
}

/* ---- attempts ---- */

void login_attempt_free(struct login_attempt *a)
{
	if (!a)
		return;
	if (a->data)
		explicit_bzero(a->data, a->len);
	free(a->data);
	free(a->users);
	free(a);
}

static bool copy(char **to, const char *from)
{
	return !from || (*to = strdup(from));
}

struct login_attempt *login_attempt_new(const struct message_login *login,
	const struct daemon_settings *settings, const struct tls *tls)
{
	struct login_attempt *a = calloc(1, sizeof *a);

	(void)tls;
	if (!a)
		return NULL;
	a->shown.method = login->method;
	if (login->user.len)
		memcpy(a->shown.user, login->user.data, login->user.len); /* the codec bounds it */
	a->anonymous = daemon_settings_lets_anonymous(settings);
	a->len = login->data.len;
	a->data = malloc(a->len + 1);
	if (!a->data || !copy(&a->users, settings->users)) {
		login_attempt_free(a);
		return NULL;
	}
	if (a->len)
		memcpy(a->data, login->data.data, a->len);
	a->data[a->len] = '\0';
	return a;
}

bool login_attempt_is_slow(const struct login_attempt *a)
{
	return a->shown.method == MESSAGE_LOGIN_PASSWORD;
}

bool login_attempt_is_guess(const struct login_attempt *a)
{
	return a->shown.method == MESSAGE_LOGIN_PASSWORD || a->shown.method == MESSAGE_LOGIN_ONCE;
}

static bool fail(struct login_attempt *a, const char *why)
{
	snprintf(a->why, sizeof a->why, "%s", why);
	return false;
}

/* A password is tried against a hash in any case: the time says nothing of who is there. */
static bool check_password(struct login_attempt *a)
{
	char hash[USERS_HASH_MAX] = "";
	bool right;
	int r;

	if (!a->users)
		return fail(a, "there are no passwords here (users)");
	r = users_find(a->users, a->shown.user, hash, a->why);
	if (r)
		log_error("users: %s", a->why);
	right = users_verify((const char *)a->data, hash);
	if (r)
		return false;
	if (!right)
		fail(a, *hash ? "the password is wrong" : "there is no such user");
	explicit_bzero(hash, sizeof hash);
	return right;
}

bool login_attempt_check(struct login_attempt *a)
{
	bool right;

	switch (a->shown.method) {
	case MESSAGE_LOGIN_ANONYMOUS:
		right = a->anonymous || fail(a, "anonymous is not let in");
		break;
	case MESSAGE_LOGIN_PASSWORD:
		right = check_password(a);
		break;
	default:
		return fail(a, "this method is not known here");
	}
	if (right)
		a->identity = a->shown;
	return right;
}
