/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls.c: requests and their replies, in their order, and what was sent ahead of the first
 * reply.  How a session begins and ends is in calls_open, what a transfer asks for in
 * calls_transfer, the requests for names and files in calls_names.
 */
#include "session/calls_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_DROP_MAX (64u << 20) /* of a reply that is only read to get behind it */

/* Status 0: that of the errno. */
int calls_fail(struct calls *c, int error, uint16_t status, const char *format, ...)
{
	va_list ap;

	c->error.status = status ? status : status_from_errno(error);
	va_start(ap, format);
	vsnprintf(c->error.text, sizeof c->error.text, format, ap);
	va_end(ap);
	return error;
}

/* The connection is of no use any more. */
int calls_lose(struct calls *c, int error, const char *doing)
{
	c->lost = true;
	switch (error) {
	case -ECANCELED:
		return calls_fail(c, error, STATUS_CANCELLED, "interrupted");
	case -ETIMEDOUT:
		return calls_fail(c, error, STATUS_TIMEOUT, "no answer to %s for %d s", doing,
			c->reply_timeout_ms / 1000);
	case -EBADMSG:
	case -EMSGSIZE:
	case -EPROTO:
		return calls_fail(
			c, -EPROTO, STATUS_PROTOCOL, "the server broke the protocol (%s)", doing);
	default:
		return calls_fail(
			c, -ECONNRESET, STATUS_DISCONNECTED, "connection lost (%s)", doing);
	}
}

int calls_bad_reply(struct calls *c, uint16_t type)
{
	return calls_lose(c, -EPROTO, message_name(type | MESSAGE_REPLY));
}

int calls_too_long(struct calls *c, uint16_t type)
{
	c->lost = true;
	return calls_fail(c, -EMSGSIZE, STATUS_LIMIT,
		"the answer to %s is too long: this side would have to hold all of it",
		message_name(type));
}

bool calls_lost(const struct calls *c)
{
	return c->lost;
}

const struct calls_info *calls_info(const struct calls *c)
{
	return &c->info;
}

uint32_t calls_rtt_us(const struct calls *c)
{
	uint64_t us = c->info.rtt_ns / 1000;

	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

const struct calls_error *calls_error(const struct calls *c)
{
	return &c->error;
}

struct link *calls_link(struct calls *c)
{
	return c->link;
}

int calls_event_fd(const struct calls *c)
{
	return link_event_fd(c->link);
}

int calls_check(struct calls *c)
{
	int err;

	if (c->lost)
		return -ENOTCONN;
	err = link_check_events(c->link);
	return err ? calls_lose(c, err, "idle") : 0;
}

void calls_measured(struct calls *c, uint64_t took_ns)
{
	if (took_ns < c->info.rtt_ns)
		c->info.rtt_ns = took_ns;
}

/* ---- requests ---- */

void calls_on_queued(struct calls *c, calls_queued_function *queued, void *ctx)
{
	c->queued = queued;
	c->queued_ctx = ctx;
}

/* Whether a request of this type may wait in line at the daemon. */
static bool calls_begins_transfer(uint16_t type)
{
	return type == MESSAGE_STORE || type == MESSAGE_RETRIEVE || type == MESSAGE_FEED ||
	       type == MESSAGE_SEND_COPY;
}

/* The transfer of a request waits in line: 0, or -EPROTO. */
int calls_take_queued(struct calls *c, uint16_t type, const uint8_t *data, size_t len)
{
	struct message_queued queued;

	if (!calls_begins_transfer(type) || message_get_queued(&queued, data, len))
		return calls_bad_reply(c, type);
	if (c->queued)
		c->queued(c->queued_ctx, &queued);
	return 0;
}

struct demux_port *calls_port(const struct calls *c)
{
	return demux_dialogue(link_demux(c->link));
}

uint64_t calls_deadline(const struct calls *c)
{
	if (c->all_by_ns)
		return c->all_by_ns;
	return clock_now_ns() + (uint64_t)c->reply_timeout_ms * NS_PER_MS;
}

/* Until another frame is there.  Who sends without a pause does not keep us from giving up. */
static int calls_wait(struct calls *c, uint64_t deadline)
{
	struct pollfd cancel = {c->cancel_fd, POLLIN, 0};

	if (!clock_until_ms(deadline))
		return -ETIMEDOUT;
	if (poll(&cancel, 1, 0) > 0)
		return -ECANCELED;
	return demux_wait(calls_port(c), clock_until_ms(deadline), c->cancel_fd);
}

/* A frame that is the reply to a request, or nothing that may come. */
int calls_take_reply(struct calls *c, uint16_t type, const struct message_header *header,
	const uint8_t *data, const uint8_t **reply, size_t *reply_len)
{
	struct wire_bytes text;
	int err;

	if (header->type != (type | MESSAGE_REPLY))
		return calls_bad_reply(c, type);
	if (!header->response) {
		*reply = data;
		*reply_len = header->length;
		return 0;
	}
	if (message_get_text(&text, data, header->length))
		return calls_bad_reply(c, type);
	err = status_to_errno(header->response);
	/* what the client means by these is its own connection, not an answer */
	return calls_fail(c, err ? err : -EPROTO, header->response, "%.*s", (int)text.len,
		(const char *)text.data);
}

int calls_reply(struct calls *c, uint16_t type, const uint8_t **reply, size_t *reply_len)
{
	struct demux_port *port = calls_port(c);
	uint64_t deadline = calls_deadline(c);
	struct message_header header;
	const uint8_t *data;
	int err;

	for (;;) {
		err = demux_get(port, &header, &data);
		if (err == 1 && header.type == MESSAGE_QUEUED) {
			err = calls_take_queued(c, type, data, header.length);
			if (err)
				return err;
			deadline = calls_deadline(c);
		} else if (err && (err < 0 || header.type != MESSAGE_PING)) {
			break;
		}
		/* a PING is a transfer's keep-alive that crossed its end, and no answer: a peer who
		 * sends nothing else has no longer than one who is silent */
		err = calls_wait(c, deadline);
		if (err == -ECANCELED && calls_begins_transfer(type))
			return err; /* calls_leave */
		if (err)            /* the reply would come later, as that of another request */
			return calls_lose(c, err, message_name(type));
	}
	if (err < 0)
		return calls_lose(c, err, message_name(type));
	return calls_take_reply(c, type, &header, data, reply, reply_len);
}

/* ---- what was sent ahead ---- */

void calls_pop_ahead(struct calls *c)
{
	free(c->ahead[0].data);
	c->ahead_count--;
	memmove(c->ahead, c->ahead + 1, c->ahead_count * sizeof *c->ahead);
}

/* All frames of a reply that nobody asks for. */
static void calls_drop_reply(struct calls *c, uint16_t type)
{
	struct message_list_reply head = {.more = 1};
	const uint8_t *reply;
	size_t len, bytes = 0;
	struct wire wire;

	while (head.more && !calls_reply(c, type, &reply, &len)) {
		bytes += len;
		if (type != MESSAGE_LIST || message_get_list_head(&head, &wire, reply, len))
			head.more = 0;
		if (bytes > CALLS_DROP_MAX)
			calls_too_long(c, type);
	}
}

/* Takes in the replies to the first `count` of them. */
static int calls_pass_by(struct calls *c, unsigned count)
{
	for (; count && !c->lost; count--) {
		calls_drop_reply(c, c->ahead[0].type);
		calls_pop_ahead(c);
	}
	return c->lost ? -ENOTCONN : 0;
}

int calls_settle(struct calls *c)
{
	return calls_pass_by(c, c->ahead_count);
}

/* Which of them this is, counted from 0; -1: it was not sent. */
static int calls_find_ahead(
	const struct calls *c, unsigned transfer, uint16_t type, const void *data, size_t len)
{
	for (unsigned i = 0; i < c->ahead_count; i++) {
		const struct calls_ahead *a = &c->ahead[i];

		if (a->type == type && a->transfer == transfer && a->len == len &&
			(!len || !memcmp(a->data, data, len)))
			return (int)i;
	}
	return -1;
}

void calls_ahead(struct calls *c, unsigned transfer, uint16_t type, const void *data, ssize_t len)
{
	struct calls_ahead *a = &c->ahead[c->ahead_count];

	if (!c->may_ahead || c->ahead_count == CALLS_AHEAD_MAX || len < 0)
		return;
	*a = (struct calls_ahead){.type = type, .transfer = (uint16_t)transfer, .len = (size_t)len};
	a->data = malloc(a->len ? a->len : 1);
	if (!a->data)
		return;
	if (len)
		memcpy(a->data, data, a->len);
	if (!demux_put(calls_port(c), type, a->transfer, data, a->len))
		c->ahead_count++;
	else
		free(a->data); /* whoever waits for the login is told */
}

/* A request is on its way: sent now, or before.  0 or -errno. */
int calls_send_for(struct calls *c, unsigned transfer, uint16_t type, const void *data, ssize_t len)
{
	int err, sent;

	if (c->lost)
		return calls_fail(c, -ENOTCONN, STATUS_DISCONNECTED, "not connected");
	if (len < 0)
		return calls_fail(c, (int)len, STATUS_NAME, "the name is too long or not allowed");
	sent = calls_find_ahead(c, transfer, type, data, (size_t)len);
	err = calls_pass_by(c, sent < 0 ? c->ahead_count : (unsigned)sent);
	if (err) /* which has said why */
		return err;
	if (sent >= 0) {
		calls_pop_ahead(c);
		return 0;
	}
	err = demux_put(calls_port(c), type, (uint16_t)transfer, data, (size_t)len);
	return err ? calls_lose(c, err, message_name(type)) : 0;
}

int calls_send(struct calls *c, uint16_t type, const void *data, ssize_t len)
{
	return calls_send_for(c, 0, type, data, len);
}

int calls_ask(struct calls *c, uint16_t type, const void *data, ssize_t len, const uint8_t **reply,
	size_t *reply_len)
{
	return calls_ask_for(c, 0, type, data, len, reply, reply_len);
}

int calls_ask_for(struct calls *c, unsigned transfer, uint16_t type, const void *data, ssize_t len,
	const uint8_t **reply, size_t *reply_len)
{
	const uint8_t *ignored;
	size_t ignored_len;
	int err = calls_send_for(c, transfer, type, data, len);

	if (err)
		return err;
	return calls_reply(c, type, reply ? reply : &ignored, reply_len ? reply_len : &ignored_len);
}

int calls_admit(struct calls *c, const char *class, uint64_t deadline_ns, bool fail)
{
	uint8_t data[14 + MESSAGE_CLASS_MAX];
	const struct message_admit admit = {
		.deadline_ns = deadline_ns,
		.flags = fail ? MESSAGE_ADMIT_FAIL : 0,
		.class = {(const uint8_t *)class, strlen(class)},
	};
	int err;

	if (admit.deadline_ns == c->admit.deadline_ns && admit.flags == c->admit.flags &&
		!strcmp(class, c->class))
		return 0;
	err = calls_ask(
		c, MESSAGE_ADMIT, data, message_put_admit(&admit, data, sizeof data), NULL, NULL);
	if (err)
		return err;
	c->admit = admit;
	snprintf(c->class, sizeof c->class, "%s", class);
	return 0;
}
