/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls.c: owns the fabric, the link and what HELLO agreed on.  Knows the session
 * messages that every session has (HELLO, BYE, PING, CHANNELS); requests for names and files are
 * rftp/remote/remote's.
 */
#include "session/calls.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "proto/message.h"
#include "session/connect.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_REPLY_MS 60000 /* the daemon has so long to answer */
#define SESSION_BYE_MS 500
#define SESSION_PINGS 4
#define SESSION_PINGS_NS (20 * NS_PER_MS) /* on a long way one or two PINGs say enough */

struct session {
	struct fabric *fabric;
	struct link *link;
	int cancel_fd, timeout_ms;
	bool lost;
	uint32_t number;
	struct session_info info;
	struct session_error error;
	session_queued_function *queued;
	void *queued_ctx;
};

static int session_fail(struct session *s, int error, uint16_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Status 0: that of the errno. */
static int session_fail(struct session *s, int error, uint16_t status, const char *format, ...)
{
	va_list ap;

	s->error.status = status ? status : status_from_errno(error);
	va_start(ap, format);
	vsnprintf(s->error.text, sizeof s->error.text, format, ap);
	va_end(ap);
	return error;
}

/* The connection is of no use any more. */
static int session_lose(struct session *s, int error, const char *doing)
{
	s->lost = true;
	switch (error) {
	case -ECANCELED:
		return session_fail(s, error, STATUS_CANCELLED, "interrupted");
	case -ETIMEDOUT:
		return session_fail(s, error, STATUS_TIMEOUT, "no answer to %s for %d s", doing,
			SESSION_REPLY_MS / 1000);
	case -EBADMSG:
	case -EMSGSIZE:
	case -EPROTO:
		return session_fail(
			s, -EPROTO, STATUS_PROTOCOL, "the server broke the protocol (%s)", doing);
	default:
		return session_fail(
			s, -ECONNRESET, STATUS_DISCONNECTED, "connection lost (%s)", doing);
	}
}

int session_bad_reply(struct session *s, uint16_t type)
{
	return session_lose(s, -EPROTO, message_name(type | MESSAGE_REPLY));
}

bool session_lost(const struct session *s)
{
	return s->lost;
}

const struct session_info *session_info(const struct session *s)
{
	return &s->info;
}

uint32_t session_rtt_us(const struct session *s)
{
	uint64_t us = s->info.rtt_ns / 1000;

	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

const struct session_error *session_error(const struct session *s)
{
	return &s->error;
}

struct link *session_link(struct session *s)
{
	return s->link;
}

int session_event_fd(const struct session *s)
{
	return link_event_fd(s->link);
}

int session_check(struct session *s)
{
	int err;

	if (s->lost)
		return -ENOTCONN;
	err = link_check_events(s->link);
	return err ? session_lose(s, err, "idle") : 0;
}

/* ---- requests ---- */

void session_on_queued(struct session *s, session_queued_function *queued, void *ctx)
{
	s->queued = queued;
	s->queued_ctx = ctx;
}

/* The transfer of a request waits in line: 0, or -EPROTO. */
static int session_take_queued(struct session *s, uint16_t type, const uint8_t *data, size_t len)
{
	struct message_queued queued;

	if ((type != MESSAGE_STORE && type != MESSAGE_RETRIEVE && type != MESSAGE_FEED) ||
		message_get_queued(&queued, data, len))
		return session_bad_reply(s, type);
	if (s->queued)
		s->queued(s->queued_ctx, queued.position);
	return 0;
}

int session_reply(struct session *s, uint16_t type, const uint8_t **reply, size_t *reply_len)
{
	struct control *control = link_control(s->link);
	uint64_t deadline = clock_now_ns() + SESSION_REPLY_MS * NS_PER_MS;
	struct message_header header;
	struct wire_bytes text;
	const uint8_t *data;
	int err;

	for (;;) {
		err = control_get(control, &header, &data);
		if (err == 1 && header.type == MESSAGE_PING)
			continue; /* a transfer's keep-alive that crossed its end */
		if (err == 1 && header.type == MESSAGE_QUEUED) {
			err = session_take_queued(s, type, data, header.length);
			if (err)
				return err;
			deadline = clock_now_ns() + SESSION_REPLY_MS * NS_PER_MS;
			continue;
		}
		if (err)
			break;
		err = control_wait(control, clock_until_ms(deadline), s->cancel_fd);
		if (err) /* the reply would come later, as that of another request */
			return session_lose(s, err, message_name(type));
	}
	if (err < 0)
		return session_lose(s, err, message_name(type));
	if (header.type != (type | MESSAGE_REPLY))
		return session_bad_reply(s, type);
	if (!header.response) {
		*reply = data;
		*reply_len = header.length;
		return 0;
	}
	if (message_get_text(&text, data, header.length))
		return session_bad_reply(s, type);
	err = status_to_errno(header.response);
	/* what the client means by these is its own connection, not an answer */
	return session_fail(s, err ? err : -EPROTO, header.response, "%.*s", (int)text.len,
		(const char *)text.data);
}

int session_call(struct session *s, uint16_t type, const void *data, ssize_t len,
	const uint8_t **reply, size_t *reply_len)
{
	const uint8_t *ignored;
	size_t ignored_len;
	int err;

	if (s->lost)
		return session_fail(s, -ENOTCONN, STATUS_DISCONNECTED, "not connected");
	if (len < 0)
		return session_fail(
			s, (int)len, STATUS_NAME, "the name is too long or not allowed");
	err = control_put(link_control(s->link), type, 0, data, (size_t)len);
	if (err)
		return session_lose(s, err, message_name(type));
	return session_reply(
		s, type, reply ? reply : &ignored, reply_len ? reply_len : &ignored_len);
}

/* ---- opening ---- */

static uint32_t session_engines(void)
{
	uint32_t bits = 0;

	for (unsigned i = 0; engine_at(i); i++)
		bits |= 1u << engine_at(i)->id;
	return bits;
}

static int session_hello(struct session *s)
{
	static const char agent[] = "rftp/" RFTP_VERSION;
	uint8_t data[512];
	struct message_hello hello = {
		.version = MESSAGE_VERSION,
		.max_channels = MESSAGE_CHANNELS_MAX,
		.max_block = TRANSFER_BLOCK_MAX,
		.max_depth = link_max_depth(s->link),
		.engines = session_engines(),
		.agent = {(const uint8_t *)agent, sizeof agent - 1},
	};
	const struct message_hello asked = hello;
	uint64_t started = clock_now_ns();
	const uint8_t *reply;
	size_t len;
	int err = session_call(
		s, MESSAGE_HELLO, data, message_put_hello(&hello, data, sizeof data), &reply, &len);

	if (err)
		return err;
	s->info.rtt_ns = clock_now_ns() - started;
	if (message_get_hello(&hello, reply, len) || hello.version > asked.version ||
		hello.max_channels > asked.max_channels || hello.max_block > asked.max_block ||
		hello.max_depth > asked.max_depth || hello.engines & ~asked.engines)
		return session_bad_reply(s, MESSAGE_HELLO);
	s->number = hello.session;
	s->info.max_channels = hello.max_channels;
	s->info.max_block = hello.max_block;
	s->info.max_depth = hello.max_depth;
	s->info.engines = hello.engines;
	s->info.read_only = hello.flags & MESSAGE_HELLO_READ_ONLY;
	snprintf(s->info.agent, sizeof s->info.agent, "%.*s", (int)hello.agent.len,
		(const char *)hello.agent.data);
	return 0;
}

/* The least of a few is nearest to what the network itself takes. */
static int session_measure(struct session *s)
{
	uint64_t spent = 0;

	for (unsigned i = 0; i < SESSION_PINGS && spent < SESSION_PINGS_NS; i++) {
		struct message_ping ping = {.cookie = i + 1}, pong;
		uint8_t data[16];
		uint64_t started = clock_now_ns(), took;
		const uint8_t *reply;
		size_t len;
		int err = session_call(s, MESSAGE_PING, data,
			message_put_ping(&ping, data, sizeof data), &reply, &len);

		if (err)
			return err;
		if (message_get_ping(&pong, reply, len) || pong.cookie != ping.cookie)
			return session_bad_reply(s, MESSAGE_PING);
		took = clock_now_ns() - started;
		spent += took;
		if (took < s->info.rtt_ns)
			s->info.rtt_ns = took;
	}
	return 0;
}

int session_open(
	const struct session_params *params, struct session **out, struct session_error *error)
{
	struct session *s = calloc(1, sizeof *s);
	int err;

	*error = (struct session_error){.status = STATUS_NO_MEMORY};
	if (!s)
		return -ENOMEM;
	s->cancel_fd = params->cancel_fd;
	s->timeout_ms = params->connect_timeout_ms;
	err = connect_any(params, &s->fabric, &s->link, s->info.address, &s->error);
	if (err)
		goto err_free;
	s->info.fabric = link_fabric_name(s->link);
	fabric_chan_describe(control_chan(link_control(s->link)), s->info.description,
		sizeof s->info.description);
	err = session_hello(s);
	if (!err)
		err = session_measure(s);
	if (err)
		goto err_free;
	*out = s;
	return 0;

err_free:
	*error = s->error;
	s->lost = true; /* no BYE to who would not have us */
	session_close(s);
	return err;
}

static void session_bye(struct session *s)
{
	struct control *control = link_control(s->link);
	uint64_t deadline = clock_now_ns() + SESSION_BYE_MS * NS_PER_MS;
	struct message_header header;
	const uint8_t *data;

	if (control_put(control, MESSAGE_BYE, 0, NULL, 0))
		return;
	while (!control_get(control, &header, &data))
		if (control_wait(control, clock_until_ms(deadline), -1))
			break;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	if (s->link && !s->lost)
		session_bye(s);
	link_free(s->link);
	fabric_close(s->fabric);
	free(s);
}

/* ---- data channels ---- */

int session_channels(struct session *s, unsigned count)
{
	struct message_channels request;
	struct message_channels_reply granted;
	uint8_t data[16];
	const uint8_t *reply;
	size_t len;
	int err;

	if (s->lost)
		return session_fail(s, -ENOTCONN, STATUS_DISCONNECTED, "not connected");
	if (!count)
		count = link_suggest_channels(s->link, s->info.rtt_ns);
	if (count > s->info.max_channels)
		count = s->info.max_channels;
	if (link_channel_count(s->link) == count)
		return 0;
	request.count = (uint16_t)count;
	err = session_call(s, MESSAGE_CHANNELS, data,
		message_put_channels(&request, data, sizeof data), &reply, &len);
	if (err)
		return err;
	if (message_get_channels_reply(&granted, reply, len) || !granted.count ||
		granted.count > count)
		return session_bad_reply(s, MESSAGE_CHANNELS);
	s->info.max_channels = granted.count < count ? granted.count : s->info.max_channels;
	err = link_open_channels(s->link, s->number, &granted, s->timeout_ms);
	if (!err)
		return 0;
	s->lost = true;
	return session_fail(s, err, 0, "the data channels can not be opened: %s",
		status_text(status_from_errno(err)));
}

int session_after_transfer(struct session *s, int error, const struct transfer_stats *stats)
{
	const char *text = stats->text;

	if (transfer_session_lost(error)) {
		session_lose(s, error, "transfer");
		if (!*text)
			return error;
	} else {
		session_fail(s, error, stats->status, "%s", text);
		return error;
	}
	return session_fail(
		s, error, s->error.status, "%s: %s", status_text(s->error.status), text);
}
