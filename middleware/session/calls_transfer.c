/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_transfer: what a transfer asks the daemon for: data channels, its beginning, and
 * leaving it; see calls.h.
 */
#include "session/calls_impl.h"

#include "base/clock.h"
#include "proto/transfer.h"

#include <errno.h>
#include <string.h>

#define CALLS_LEAVE_MS 10000 /* the daemon answers ABORT within this, or the session is lost */
#define CALLS_AHEAD_NS (10 * NS_PER_MS) /* from here on the number of channels depends on it */

static int calls_no_channels(struct calls *c, int err)
{
	c->lost = true;
	/* nobody listens any more: the daemon that let us in has gone */
	return calls_fail(c, err, err == -ECONNREFUSED ? STATUS_DISCONNECTED : 0,
		"the data channels cannot be opened: %s", status_text(status_from_errno(err)));
}

/* ABORT may cross the daemon's reply, which goes by like all else that comes before its answer,
 * which is ABORT. */
int calls_leave(struct calls *c, unsigned transfer, uint16_t type,
	int (*replied)(void *ctx, const uint8_t *data, size_t len), void *ctx)
{
	const struct transfer_abort abort = {.status = STATUS_CANCELLED};
	uint64_t deadline = clock_now_ns() + CALLS_LEAVE_MS * NS_PER_MS;
	struct demux_port *port = calls_port(c);
	struct message_header header;
	const uint8_t *frame;
	uint8_t data[16];
	ssize_t len = transfer_put_abort(&abort, data, sizeof data);
	int err = demux_put(port, TRANSFER_ABORT, (uint16_t)transfer, data, (size_t)len);

	while (!err) {
		err = demux_get(port, &header, &frame);
		if (err > 0 && header.type == TRANSFER_ABORT && header.response == transfer)
			break;
		if (err > 0 && header.type != MESSAGE_PING && header.type < TRANSFER_OFFER &&
			header.type != (type | MESSAGE_REPLY))
			return calls_bad_reply(c, type);
		if (err > 0 && replied && header.type == (type | MESSAGE_REPLY) &&
			!header.response && replied(ctx, frame, header.length))
			return calls_bad_reply(c, type);
		if (err >= 0)
			err = clock_until_ms(deadline)
				      ? demux_wait(port, clock_until_ms(deadline), -1)
				      : -ETIMEDOUT;
	}
	if (err < 0)
		return calls_lose(c, -ECANCELED, message_name(type));
	link_close_channels(c->link, transfer);
	return calls_fail(c, -ECANCELED, STATUS_CANCELLED, "%s", "");
}

/*
 * The data channels that were begun are all there.  0; or -errno, and then the session is lost: but
 * for a daemon that has refused the request and closed them, whose refusal it is then, and whose
 * answer to ABORT was the last for the port.
 */
static int calls_finish_channels(
	struct calls *c, unsigned transfer, uint16_t type, struct demux_port **port)
{
	int err = link_finish_channels(c->link, transfer, c->connect_timeout_ms);
	struct calls_error refused;
	const uint8_t *reply;
	size_t len;
	int got;

	if (!err)
		return 0;
	c->all_by_ns = clock_now_ns() + (uint64_t)c->connect_timeout_ms * NS_PER_MS;
	got = calls_reply(c, type, &reply, &len);
	c->all_by_ns = 0;
	if (!got || got == -ECANCELED || c->lost)
		return calls_no_channels(c, err);
	refused = c->error;
	demux_close(*port);
	*port = NULL;
	/* it may wait for this side's word that nothing follows */
	(void)calls_leave(c, transfer, type, NULL, NULL);
	c->error = refused; /* which holds, too, of a daemon that is gone behind it */
	return got;
}

/* The port is there before the first frame of the transfer can come. */
int calls_begin(struct calls *c, unsigned transfer, uint16_t type, const void *data, ssize_t len)
{
	struct demux_port *port = NULL;
	const uint8_t *reply;
	size_t reply_len;
	int err = c->lost ? 0 : demux_open(link_demux(c->link), transfer, &port);

	if (err)
		return calls_fail(c, err, 0, "%s", message_name(type));
	err = calls_send_for(c, transfer, type, data, len);
	if (!err) /* which the daemon waits for, too */
		err = calls_finish_channels(c, transfer, type, &port);
	if (!err)
		err = calls_reply(c, type, &reply, &reply_len);
	if (err)
		demux_close(port); /* what comes for it is the dialogue's */
	return err == -ECANCELED && !c->lost ? calls_leave(c, transfer, type, NULL, NULL) : err;
}

int calls_begin_early(
	struct calls *c, unsigned transfer, uint16_t type, const void *data, ssize_t len)
{
	struct demux_port *port = NULL;
	int err;

	err = c->lost ? 0 : demux_open(link_demux(c->link), transfer, &port);
	if (err)
		return calls_fail(c, err, 0, "%s", message_name(type));
	c->answer_by_ns = calls_deadline(c);
	err = calls_send_for(c, transfer, type, data, len);
	if (!err)
		err = calls_finish_channels(c, transfer, type, &port);
	if (err)
		demux_close(port);
	return err;
}

int calls_answered(struct calls *c, uint16_t type)
{
	struct message_header header;
	const uint8_t *data, *reply;
	size_t len;
	int err;

	if (c->lost)
		return -ENOTCONN;
	while ((err = demux_get(calls_port(c), &header, &data)) == 1) {
		if (header.type == MESSAGE_PING)
			continue;
		if (header.type != MESSAGE_QUEUED) {
			err = calls_take_reply(c, type, &header, data, &reply, &len);
			return err ? err : 1;
		}
		err = calls_take_queued(c, type, data, header.length);
		if (err)
			return err;
		c->answer_by_ns = calls_deadline(c);
	}
	if (!err && !clock_until_ms(c->answer_by_ns))
		err = -ETIMEDOUT;
	return err < 0 ? calls_lose(c, err, message_name(type)) : 0;
}

/* ---- data channels ---- */

void calls_channels_ahead(struct calls *c, unsigned transfer, unsigned count)
{
	uint64_t transport = fabric_chan_rtt_ns(control_chan(link_control(c->link)));
	struct message_channels request;
	uint8_t data[16];

	if (!c->may_ahead || c->ahead_channels)
		return;
	if (!count) /* as far as it is known: TLS took two busy hosts' time, too */
		count = link_suggest_channels(c->link, transport);
	if (!transport && c->info.rtt_ns > CALLS_AHEAD_NS) /* better asked when more is known */
		return;
	request.count = (uint16_t)count;
	calls_ahead(c, transfer, MESSAGE_CHANNELS, data,
		message_put_channels(&request, data, sizeof data));
	c->ahead_channels = count;
}

int calls_channels(struct calls *c, unsigned transfer, unsigned count)
{
	struct message_channels request;
	struct message_channels_reply granted;
	uint8_t data[16];
	const uint8_t *reply;
	bool ahead = false;
	uint64_t began;
	size_t len;
	int err;

	if (c->lost)
		return calls_fail(c, -ENOTCONN, STATUS_DISCONNECTED, "not connected");
	if (c->ahead_channels && (!count || count == c->ahead_channels)) {
		count = c->ahead_channels; /* the server takes off what is too many */
		ahead = true;
	}
	c->ahead_channels = 0;
	if (!count)
		count = link_suggest_channels(c->link, c->info.rtt_ns);
	if (count > c->info.max_channels && !ahead)
		count = c->info.max_channels;
	if (link_channel_count(c->link, transfer) == count)
		return 0;
	request.count = (uint16_t)count;
	began = clock_now_ns();
	err = calls_send_for(c, transfer, MESSAGE_CHANNELS, data,
		message_put_channels(&request, data, sizeof data));
	if (!err && !ahead)
		link_dial_ahead(c->link, count, c->connect_timeout_ms);
	if (!err)
		err = calls_reply(c, MESSAGE_CHANNELS, &reply, &len);
	if (err) {
		link_hang_up(c->link);
		return err;
	}
	if (message_get_channels_reply(&granted, reply, len) || !granted.count ||
		granted.count > count || granted.count > c->info.max_channels)
		return calls_bad_reply(c, MESSAGE_CHANNELS);
	if (!ahead)
		calls_measured(c, clock_now_ns() - began);
	c->info.max_channels = granted.count < count ? granted.count : c->info.max_channels;
	err = link_begin_channels(c->link, transfer, c->number, &granted, c->connect_timeout_ms);
	return err ? calls_no_channels(c, err) : 0;
}

int calls_after_transfer(struct calls *c, int error, const struct calls_ending *ending)
{
	const char *meaning;

	if (!ending->lost)
		return calls_fail(c, error, ending->status, "%s", ending->text);
	calls_lose(c, error, "transfer");
	meaning = status_text(c->error.status);
	if (strstr(meaning, ending->text)) /* "" is in everything */
		return calls_fail(c, error, c->error.status, "%s", meaning);
	if (strstr(ending->text, meaning))
		return calls_fail(c, error, c->error.status, "%s", ending->text);
	return calls_fail(c, error, c->error.status, "%s: %s", meaning, ending->text);
}
