/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_greeting.c: codecs of what connect and accept show in their private data.
 *
 * Owns its layout and its limits.
 */
#include "proto/message_greeting.h"

#include <string.h>

/* Trailing zeros are padding of the transport, not ours. */
static void message_skip_padding(struct wire *w)
{
	while (!w->error && wire_left(w) > 0)
		wire_require(w, wire_get_u8(w) == 0);
}

static bool message_greeting_ok(const struct message_greeting *m)
{
	static const uint8_t zeros[MESSAGE_TOKEN_BYTES];

	if (m->version == 0)
		return false;
	switch (m->kind) {
	case MESSAGE_CHANNEL_CONTROL:
		return m->index == 0 && m->session == 0 && m->credits >= MESSAGE_CREDITS_MIN &&
		       !memcmp(m->token, zeros, sizeof(zeros));
	case MESSAGE_CHANNEL_DATA:
		return m->index < MESSAGE_CHANNELS_MAX * MESSAGE_TRANSFERS_MAX;
	default:
		return false;
	}
}

int message_get_greeting(struct message_greeting *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	wire_require(&w, wire_get_u32(&w) == MESSAGE_MAGIC);
	m->version = wire_get_u8(&w);
	m->kind = wire_get_u8(&w);
	m->index = wire_get_u16(&w);
	m->session = wire_get_u32(&w);
	m->credits = wire_get_u16(&w);
	wire_get_raw(&w, m->token, sizeof(m->token));
	wire_require(&w, message_greeting_ok(m));
	message_skip_padding(&w);
	return wire_finish(&w);
}

ssize_t message_put_greeting(const struct message_greeting *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_greeting_ok(m));
	wire_put_u32(&w, MESSAGE_MAGIC);
	wire_put_u8(&w, m->version);
	wire_put_u8(&w, m->kind);
	wire_put_u16(&w, m->index);
	wire_put_u32(&w, m->session);
	wire_put_u16(&w, m->credits);
	wire_put_raw(&w, m->token, sizeof(m->token));
	return wire_put_end(&w);
}

/* A refusal need not name a version: the other side may not speak any of ours. */
static bool message_welcome_ok(const struct message_welcome *m)
{
	return (m->version != 0 || m->status != 0) && !(m->flags & ~MESSAGE_WELCOME_AHEAD);
}

int message_get_welcome(struct message_welcome *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	wire_require(&w, wire_get_u32(&w) == MESSAGE_MAGIC);
	m->version = wire_get_u8(&w);
	m->flags = wire_get_u8(&w);
	m->credits = wire_get_u16(&w);
	m->status = wire_get_u16(&w);
	wire_get_raw(&w, m->token, sizeof(m->token));
	wire_require(&w, message_welcome_ok(m));
	message_skip_padding(&w);
	return wire_finish(&w);
}

ssize_t message_put_welcome(const struct message_welcome *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_welcome_ok(m));
	wire_put_u32(&w, MESSAGE_MAGIC);
	wire_put_u8(&w, m->version);
	wire_put_u8(&w, m->flags);
	wire_put_u16(&w, m->credits);
	wire_put_u16(&w, m->status);
	wire_put_raw(&w, m->token, sizeof(m->token));
	return wire_put_end(&w);
}

void message_put_token_context(
	const struct message_token_context *m, uint8_t bytes[MESSAGE_TOKEN_CONTEXT_BYTES])
{
	struct wire w;

	wire_init_put(&w, bytes, MESSAGE_TOKEN_CONTEXT_BYTES);
	wire_put_u8(&w, m->direction);
	wire_put_u8(&w, 0);
	wire_put_u16(&w, m->index);
	wire_put_u32(&w, m->session);
	wire_put_raw(&w, m->nonce, sizeof(m->nonce));
}
