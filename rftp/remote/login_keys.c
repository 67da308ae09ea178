/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/login_keys: see login_keys.h.
 */
#include "rftp/remote/login_keys.h"

#include "proto/message_login.h"
#include "session/calls.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_key(const struct login_keys *l, const struct tls_key *key)
{
	for (unsigned i = 0; i < l->count; i++)
		if (tls_key_equal(&l->keys[i], key))
			return true;
	return false;
}

/* Which it has now: with its seed, or with the agent to sign, or it waits for its passphrase. */
static int add_file(struct login_keys *l, const char *path, char why[SSH_KEY_WHY_MAX])
{
	int err = ssh_key_load(path, &l->file, why);

	if (err)
		return err;
	l->has_file = !l->file.encrypted;
	if (!l->file.encrypted || has_key(l, &l->file.public))
		return 0;
	if (l->file.is_strange) {
		snprintf(why, SSH_KEY_WHY_MAX,
			"%.200s has a passphrase, in a way that is not known here: use ssh-agent "
			"(ssh-add)",
			path);
		return -EACCES;
	}
	snprintf(l->locked, sizeof l->locked, "%s", path);
	return 0;
}

/* The one that is named, and no other. */
static int use_identity(struct login_keys *l, const char *path, char why[SSH_KEY_WHY_MAX])
{
	int err = add_file(l, path, why);

	if (err)
		return err;
	l->keys[0] = l->file.public;
	l->count = !*l->locked;
	return 0;
}

static void use_usual(struct login_keys *l)
{
	const char *home = getenv("HOME");
	char path[PATH_MAX];

	if (l->count > LOGIN_KEYS_MAX)
		l->count = LOGIN_KEYS_MAX;
	if (!home || snprintf(path, sizeof path, "%s/.ssh/id_ed25519", home) >= (int)sizeof path)
		snprintf(l->unused, sizeof l->unused, "there is no HOME with a key in it");
	else if (access(path, F_OK))
		snprintf(l->unused, sizeof l->unused, "%.200s: %s", path, strerror(errno));
	else if (!add_file(l, path, l->unused) && l->has_file && !has_key(l, &l->file.public))
		l->keys[l->count++] = l->file.public;
}

int login_keys_open(
	struct login_keys *l, const char *identity, int cancel_fd, char why[SSH_KEY_WHY_MAX])
{
	int n;

	*l = (struct login_keys){.agent = ssh_agent_connect()};
	n = l->agent < 0 ? 0 : ssh_agent_keys(l->agent, cancel_fd, l->keys);
	if (n == -ECANCELED) {
		snprintf(why, SSH_KEY_WHY_MAX, "interrupted");
		return n;
	}
	l->agent_keys = l->agent < 0 ? l->agent : n;
	l->count = n > 0 ? (unsigned)n : 0;
	if (*identity)
		return use_identity(l, identity, why);
	use_usual(l);
	return 0;
}

void login_keys_close(struct login_keys *l)
{
	if (l->agent >= 0)
		close(l->agent);
	explicit_bzero(l, sizeof *l);
	l->agent = -1;
}

void login_keys_again(struct login_keys *l)
{
	l->at = 0;
}

int login_keys_unlock(struct login_keys *l, const char *passphrase, char why[SSH_KEY_WHY_MAX])
{
	int err = ssh_key_unlock(l->locked, passphrase, &l->file, why);

	if (err)
		return err;
	*l->locked = '\0';
	l->has_file = true;
	l->at = l->count;
	l->keys[l->count++] = l->file.public;
	return 0;
}

static int sign(struct login_keys *l, const struct tls_key *key, int cancel_fd,
	const uint8_t message[MESSAGE_LOGIN_SIGNED_BYTES], uint8_t signature[TLS_SIGNATURE_BYTES])
{
	if (l->has_file && tls_key_equal(key, &l->file.public))
		return tls_sign(l->file.seed, message, MESSAGE_LOGIN_SIGNED_BYTES, signature);
	return ssh_agent_sign(
		l->agent, cancel_fd, key, message, MESSAGE_LOGIN_SIGNED_BYTES, signature);
}

int login_keys_next(struct login_keys *l, const struct tls *tls, const char *user, int cancel_fd,
	struct wire_bytes *data, char shown[TLS_FINGERPRINT_MAX], char why[SSH_KEY_WHY_MAX])
{
	const struct wire_bytes name = {(const uint8_t *)user, strlen(user)};
	uint8_t context[MESSAGE_LOGIN_CONTEXT_MAX], exported[MESSAGE_LOGIN_EXPORT_BYTES];
	uint8_t message[MESSAGE_LOGIN_SIGNED_BYTES], signature[TLS_SIGNATURE_BYTES];
	const struct tls_key *key;
	ssize_t len;
	int err;

	if (l->at == l->count)
		return 0;
	key = &l->keys[l->at++];
	tls_key_fingerprint(key, shown);
	err = tls_export(tls, MESSAGE_LOGIN_LABEL, context,
		message_login_context(MESSAGE_LOGIN_KEY, name, context), exported, sizeof exported);
	if (!err) {
		message_login_signed(exported, message);
		err = sign(l, key, cancel_fd, message, signature);
	}
	if (err) {
		snprintf(why, SSH_KEY_WHY_MAX, "%s: %s", shown,
			err == -EACCES      ? "ssh-agent does not sign with it"
			: err == -ECANCELED ? "interrupted"
					    : strerror(-err));
		return err;
	}
	len = calls_login_key((struct wire_bytes){key->blob, key->len},
		(struct wire_bytes){signature, sizeof signature}, l->data, sizeof l->data);
	if (len < 0)
		return (int)len;
	*data = (struct wire_bytes){l->data, (size_t)len};
	return 1;
}
