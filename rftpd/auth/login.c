/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/login: see login.h.
 */
#include "rftpd/auth/login.h"

#include "base/log.h"
#include "base/opener.h"
#include "rftpd/auth/authorized_keys.h"
#include "rftpd/auth/certificate_users.h"
#include "rftpd/auth/monitor.h"
#include "rftpd/auth/users_file.h"
#include "session/tls_sign.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned login_methods(const struct daemon_settings *s)
{
	return (daemon_settings_lets_anonymous(s) ? 1u << MESSAGE_LOGIN_ANONYMOUS : 0) |
	       (s->users || s->system_users ? 1u << MESSAGE_LOGIN_PASSWORD : 0) |
	       (s->authorized_keys ? 1u << MESSAGE_LOGIN_KEY : 0) |
	       (s->once_key ? 1u << MESSAGE_LOGIN_ONCE : 0) |
	       (s->client_ca ? 1u << MESSAGE_LOGIN_CERTIFICATE : 0) |
	       (s->copies_from ? 1u << MESSAGE_LOGIN_GRANT : 0);
}

/* As whom the daemon runs; (uid_t)-1: that is not known. */
static uid_t uid_of_daemon(const struct daemon_settings *s, bool trial)
{
	const char *name = s->system_users ? monitor_user(s) : s->user;
	const struct passwd *user;

	if (!trial || geteuid())
		return geteuid();
	user = name ? getpwnam(name) : NULL;
	return user ? user->pw_uid : (uid_t)-1;
}

int login_check_settings(const struct daemon_settings *s, bool trial)
{
	const uid_t daemon = uid_of_daemon(s, trial);
	char why[USERS_WHY_MAX], path[PATH_MAX], user[CERTIFICATE_USER_MAX];

	if (s->users && users_check(s->users, daemon, why)) {
		log_error("users: %s", why);
		return -EINVAL;
	}
	if (s->users && *why)
		log_warning("users: %s", why);
	if (s->authorized_keys && !strstr(s->authorized_keys, "%u")) {
		log_error("authorized-keys %s: name a file for each user, with %%u in the place of "
			  "the name",
			s->authorized_keys);
		return -EINVAL;
	}
	if (s->authorized_keys &&
		authorized_keys_path(s->authorized_keys, "x", path, sizeof path)) {
		log_error("authorized-keys %s: only %%u and %%%% may stand there",
			s->authorized_keys);
		return -EINVAL;
	}
	if (!s->client_ca != !s->certificate_users) {
		log_error("client-ca and certificate-users belong together: who vouches, and for "
			  "whom");
		return -EINVAL;
	}
	if (s->certificate_users && certificate_users_lookup(s->certificate_users, daemon, "", "",
					    user, why) != -ENOENT) {
		log_error("certificate-users: %s", why);
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
	free(a->authorized_keys);
	free(a->certificate_users);
	free(a->names);
	explicit_bzero(a->exported, sizeof a->exported);
	opener_free(a->opener);
	free(a);
}

static bool copy(char **to, const char *from)
{
	return !from || (*to = strdup(from));
}

/* What the session itself says: it may be gone when the check runs.  false: no memory. */
static bool look_at_session(struct login_attempt *a, const struct tls *tls)
{
	const struct wire_bytes user = {(const uint8_t *)a->shown.user, strlen(a->shown.user)};
	uint8_t context[MESSAGE_LOGIN_CONTEXT_MAX];

	if (a->shown.method == MESSAGE_LOGIN_CERTIFICATE && a->certificate_users)
		return tls_peer_names(tls, &a->names, a->names_why) != -ENOMEM;
	if (a->shown.method != MESSAGE_LOGIN_KEY)
		return true;
	return !tls_export(tls, MESSAGE_LOGIN_LABEL, context,
		message_login_context(a->shown.method, user, context), a->exported,
		sizeof a->exported);
}

struct login_attempt *login_attempt_new(const struct message_login *login,
	const struct daemon_settings *settings, const struct tls *tls)
{
	struct login_attempt *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	a->shown.method = login->method;
	if (login->user.len)
		memcpy(a->shown.user, login->user.data, login->user.len); /* the codec bounds it */
	a->anonymous = daemon_settings_lets_anonymous(settings);
	a->once_key = settings->once_key;
	a->once_user = settings->once_user;
	a->system_users = settings->system_users;
	a->len = login->data.len;
	a->data = malloc(a->len + 1);
	if (!a->data || !copy(&a->users, settings->users) ||
		!copy(&a->authorized_keys, settings->authorized_keys) ||
		!copy(&a->certificate_users, settings->certificate_users) ||
		!look_at_session(a, tls)) {
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
	return a->shown.method != MESSAGE_LOGIN_ANONYMOUS && a->shown.method != MESSAGE_LOGIN_ONCE;
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

/* In the file.  Who is not there is a user of this host, if there are any. */
static int find_user(struct login_attempt *a, const char *name, char hash[USERS_HASH_MAX])
{
	*hash = '\0';
	if (!a->users)
		return 0;
	return a->system_users ? users_find_settled(a->users, name, hash, a->why)
			       : users_find(a->users, name, hash, a->why);
}

/* A password is tried against a hash in any case: the time says nothing of who is there. */
static bool check_password(struct login_attempt *a)
{
	char hash[USERS_HASH_MAX];
	bool right;
	int found;

	if (!a->users && !a->system_users)
		return fail(a, "there are no passwords here (users)");
	found = find_user(a, a->shown.user, hash);
	if (found < 0)
		log_error("users: %s", a->why);
	/* who has an entry in the file, also a broken one, is that user, and nobody of this host */
	if (!found && a->system_users) {
		a->asks = true;
		return false;
	}
	right = users_verify((const char *)a->data, hash);
	if (!right && !found)
		fail(a, "there is no such user");
	else if (!right && *hash)
		fail(a, "the password is wrong");
	explicit_bzero(hash, sizeof hash);
	return right;
}

/* The signature first: a key that somebody else's file names says nothing by itself. */
static bool check_key(struct login_attempt *a)
{
	uint8_t message[MESSAGE_LOGIN_SIGNED_BYTES];
	char path[PATH_MAX], fingerprint[TLS_FINGERPRINT_MAX], why[AUTHORIZED_WHY_MAX];
	struct message_login_key shown;
	struct tls_key key;
	bool right;

	if (!a->authorized_keys)
		return fail(a, "there are no keys here (authorized-keys)");
	if (message_get_login_key(&shown, a->data, a->len) ||
		tls_key_from_blob(&key, shown.key.data, shown.key.len))
		return fail(a, "its key is no Ed25519 key");
	message_login_signed(a->exported, message);
	if (!tls_verify(&key, message, sizeof message, shown.signature.data, shown.signature.len))
		return fail(a, "its signature is not of this session, this user and its key");
	if (!users_name_ok(a->shown.user) ||
		authorized_keys_path(a->authorized_keys, a->shown.user, path, sizeof path))
		return fail(a, "there can be no such user");
	right = authorized_keys_file_has(path, &key, why);
	tls_key_fingerprint(&key, fingerprint);
	if (!right)
		snprintf(a->why, sizeof a->why, "%s (%.300s)", fingerprint, why);
	return right;
}

static bool check_certificate(struct login_attempt *a)
{
	if (!a->certificate_users)
		return fail(a, "there are no certificates here (client-ca)");
	if (!a->names)
		return fail(a, a->names_why);
	return !certificate_users_lookup(
		a->certificate_users, geteuid(), a->names, a->shown.user, a->identity.user, a->why);
}

/* Takes a time that does not depend on where they differ. */
static bool check_once(struct login_attempt *a)
{
	uint8_t differ = 0;

	if (!a->once_key)
		return fail(a, "there is no one-time key here");
	for (size_t i = 0; i < a->len; i++) /* the codec has seen to its length */
		differ |= a->data[i] ^ a->once_key[i];
	if (!differ) {
		snprintf(a->shown.user, sizeof a->shown.user, "%s", a->once_user);
		return true;
	}
	return fail(a, "the one-time key is wrong");
}

static bool end(struct login_attempt *a, bool right)
{
	if (right && a->shown.method != MESSAGE_LOGIN_CERTIFICATE)
		a->identity = a->shown;
	a->identity.method = a->shown.method;
	return right;
}

/* Who has an entry in the file is that user, and nobody of this host by another spelling. */
static bool is_of_the_file(struct login_attempt *a, const char *name)
{
	char hash[USERS_HASH_MAX];
	int found = find_user(a, name, hash);

	explicit_bzero(hash, sizeof hash);
	if (found > 0)
		fail(a, "PAM names a user who is one of the file (users)");
	return found != 0;
}

bool login_attempt_ask(struct login_attempt *a)
{
	const struct monitor_login login = {a->shown.user, (const char *)a->data, a->address};
	char name[MONITOR_NAME_MAX];
	bool right = !monitor_login(&login, &a->opener, name, a->why, sizeof a->why);

	if (right && strcmp(name, a->shown.user) != 0) {
		if (!users_name_ok(name))
			right = fail(a, "PAM names a user whom there can be none of");
		else
			right = !is_of_the_file(a, name);
	}
	if (right)
		snprintf(a->shown.user, sizeof a->shown.user, "%s", name);
	return end(a, right);
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
	case MESSAGE_LOGIN_KEY:
		right = check_key(a);
		break;
	case MESSAGE_LOGIN_CERTIFICATE:
		right = check_certificate(a);
		break;
	case MESSAGE_LOGIN_ONCE:
		right = check_once(a);
		break;
	default:
		return fail(a, "this method is not known here");
	}
	return end(a, right);
}
