/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_login.c: codecs of LOGIN, and what is signed in it.
 *
 * Owns which method has a user and which data.
 */
#include "proto/message_login.h"

#include <string.h>

static bool message_no_nul(struct wire_bytes bytes)
{
	return !bytes.len || !memchr(bytes.data, '\0', bytes.len);
}

static bool message_user_ok(struct wire_bytes user)
{
	return user.len && user.len <= MESSAGE_NAME_MAX && message_no_nul(user);
}

const char *message_login_name(uint8_t method)
{
	static const char *const names[] = {
		[MESSAGE_LOGIN_ANONYMOUS] = "anonymous",
		[MESSAGE_LOGIN_PASSWORD] = "password",
		[MESSAGE_LOGIN_KEY] = "publickey",
		[MESSAGE_LOGIN_ONCE] = "one-time-key",
		[MESSAGE_LOGIN_CERTIFICATE] = "certificate",
		[MESSAGE_LOGIN_GRANT] = "grant",
	};

	return method < sizeof names / sizeof *names ? names[method] : NULL;
}

static bool message_login_ok(const struct message_login *m)
{
	struct message_login_key key;

	switch (m->method) {
	case MESSAGE_LOGIN_ANONYMOUS:
		return !m->user.len && !m->data.len;
	case MESSAGE_LOGIN_PASSWORD:
		return message_user_ok(m->user) && m->data.len &&
		       m->data.len <= MESSAGE_LOGIN_PASSWORD_MAX && message_no_nul(m->data);
	case MESSAGE_LOGIN_KEY:
		return message_user_ok(m->user) &&
		       !message_get_login_key(&key, m->data.data, m->data.len);
	case MESSAGE_LOGIN_ONCE:
		return !m->user.len && m->data.len == MESSAGE_LOGIN_ONCE_BYTES;
	case MESSAGE_LOGIN_CERTIFICATE:
		return (!m->user.len || message_user_ok(m->user)) && !m->data.len;
	case MESSAGE_LOGIN_GRANT:
		return !m->user.len && m->data.len && m->data.len <= MESSAGE_GRANT_MAX;
	default:
		return false;
	}
}

int message_get_login(struct message_login *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->method = wire_get_u8(&w);
	m->user = wire_get_bytes(&w, MESSAGE_NAME_MAX);
	m->data = wire_get_bytes(&w, MESSAGE_LOGIN_DATA_MAX);
	wire_require(&w, !w.error && message_login_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_login(const struct message_login *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_u8(&w, m->method);
	wire_put_bytes(&w, m->user, MESSAGE_NAME_MAX);
	wire_put_bytes(&w, m->data, MESSAGE_LOGIN_DATA_MAX);
	wire_require(&w, !w.error && message_login_ok(m));
	return wire_put_end(&w);
}

static bool message_login_key_ok(const struct message_login_key *m)
{
	return m->key.len && m->signature.len;
}

int message_get_login_key(struct message_login_key *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->key = wire_get_bytes(&w, MESSAGE_LOGIN_DATA_MAX);
	m->signature = wire_get_bytes(&w, MESSAGE_LOGIN_DATA_MAX);
	wire_require(&w, !w.error && message_login_key_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_login_key(const struct message_login_key *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_bytes(&w, m->key, MESSAGE_LOGIN_DATA_MAX);
	wire_put_bytes(&w, m->signature, MESSAGE_LOGIN_DATA_MAX);
	wire_require(&w, message_login_key_ok(m));
	return wire_put_end(&w);
}

static bool message_login_reply_ok(const struct message_login_reply *m)
{
	return !(m->rights & ~MESSAGE_RIGHTS) && m->max_inline <= MESSAGE_INLINE_MAX &&
	       (!m->user.len || message_user_ok(m->user)) && message_path_ok(m->home);
}

int message_get_login_reply(struct message_login_reply *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->rights = wire_get_u32(&w);
	m->exports = wire_get_u16(&w);
	m->max_inline = wire_get_u32(&w);
	m->user = wire_get_bytes(&w, MESSAGE_NAME_MAX);
	m->home = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	wire_require(&w, !w.error && message_login_reply_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_login_reply(const struct message_login_reply *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_u32(&w, m->rights);
	wire_put_u16(&w, m->exports);
	wire_put_u32(&w, m->max_inline);
	wire_put_bytes(&w, m->user, MESSAGE_NAME_MAX);
	wire_put_bytes(&w, m->home, MESSAGE_PATH_MAX);
	wire_require(&w, !w.error && message_login_reply_ok(m));
	return wire_put_end(&w);
}

size_t message_login_context(
	uint8_t method, struct wire_bytes user, uint8_t bytes[MESSAGE_LOGIN_CONTEXT_MAX])
{
	bytes[0] = method;
	if (user.len)
		memcpy(bytes + 1, user.data, user.len);
	return 1 + user.len;
}

void message_login_signed(const uint8_t exported[MESSAGE_LOGIN_EXPORT_BYTES],
	uint8_t bytes[MESSAGE_LOGIN_SIGNED_BYTES])
{
	const size_t label = sizeof MESSAGE_LOGIN_LABEL - 1;

	memcpy(bytes, MESSAGE_LOGIN_LABEL, label);
	memcpy(bytes + label, exported, MESSAGE_LOGIN_EXPORT_BYTES);
}
