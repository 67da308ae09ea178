/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/greeting: see greeting.h.
 */
#include "session/greeting.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int greeting_show(struct fabric_chan *chan, const struct message_greeting *greeting)
{
	uint8_t bytes[FABRIC_PRIVATE_MAX];
	ssize_t len = message_put_greeting(greeting, bytes, sizeof bytes);

	assert(len > 0);
	return fabric_chan_connect(chan, bytes, (size_t)len);
}

int greeting_wait_answer(struct fabric_eq *eq, const struct fabric_chan *chan, uint64_t deadline_ns,
	struct message_welcome *welcome)
{
	struct fabric_event ev;
	int err;

	for (;;) {
		err = fabric_eq_wait(eq, &ev, clock_until_ms(deadline_ns));
		if (err <= 0)
			return err ? err : -ETIMEDOUT;
		if (ev.chan != chan)
			continue;
		switch (ev.type) {
		case FABRIC_EVENT_CONNECTED:
			if (message_get_welcome(welcome, ev.priv, ev.priv_len) || welcome->status ||
				welcome->version > MESSAGE_VERSION)
				return -EPROTO;
			return 0;
		case FABRIC_EVENT_REJECTED:
			if (message_get_welcome(welcome, ev.priv, ev.priv_len) || !welcome->status)
				return -EPROTO;
			return -EACCES;
		case FABRIC_EVENT_DISCONNECTED:
			return ev.error ? ev.error : -ECONNRESET;
		default:
			return ev.error ? ev.error : -ECONNREFUSED;
		}
	}
}

int greeting_welcome(
	struct fabric_chan *chan, uint16_t credits, const uint8_t token[MESSAGE_TOKEN_BYTES])
{
	/* the kernel's siw stops listening when somebody connects and goes without a request */
	struct message_welcome welcome = {.version = MESSAGE_VERSION,
		.flags = fabric_chan_caps(chan)->is_device ? 0 : MESSAGE_WELCOME_AHEAD,
		.credits = credits};
	uint8_t bytes[FABRIC_PRIVATE_MAX];
	ssize_t len;

	if (token)
		memcpy(welcome.token, token, sizeof welcome.token);
	len = message_put_welcome(&welcome, bytes, sizeof bytes);
	assert(len > 0);
	return fabric_chan_accept(chan, bytes, (size_t)len);
}

void greeting_refuse(struct fabric_chan *chan, uint16_t status)
{
	struct message_welcome welcome = {.version = MESSAGE_VERSION, .status = status};
	uint8_t bytes[FABRIC_PRIVATE_MAX];
	ssize_t len = message_put_welcome(&welcome, bytes, sizeof bytes);

	assert(len > 0);
	fabric_chan_reject(chan, bytes, (size_t)len);
}

int greeting_token(struct demux *demux, const struct message_token_context *context,
	uint8_t token[MESSAGE_TOKEN_BYTES])
{
	uint8_t bytes[MESSAGE_TOKEN_CONTEXT_BYTES];

	message_put_token_context(context, bytes);
	return demux_export(
		demux, MESSAGE_TOKEN_LABEL, bytes, sizeof bytes, token, MESSAGE_TOKEN_BYTES);
}

bool greeting_token_equal(
	const uint8_t a[MESSAGE_TOKEN_BYTES], const uint8_t b[MESSAGE_TOKEN_BYTES])
{
	uint8_t differ = 0;

	for (unsigned i = 0; i < MESSAGE_TOKEN_BYTES; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}
