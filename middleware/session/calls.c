/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls.c: owns the fabric, the link and what HELLO agreed on.  It knows the messages that
 * every session has (HELLO, LOGIN, BYE, PING, CHANNELS); the requests for names and files are in
 * session/calls_names.
 */
#include "session/calls.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "proto/transfer.h"
#include "session/connect.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_REPLY_MS 60000 /* the daemon has so long to answer, unless told otherwise */
#define CALLS_BYE_MS 500
#define CALLS_LEAVE_MS 10000 /* the daemon answers ABORT within this, or the session is lost */
#define CALLS_AHEAD_NS (10 * NS_PER_MS) /* from here on the number of channels depends on it */
#define CALLS_AHEAD_MAX 4u              /* requests that leave before the first reply */

struct calls {
	struct fabric *fabric;
	struct link *link;
	int cancel_fd, connect_timeout_ms;
	int reply_timeout_ms; /* connect_timeout_ms until the session is open */
	/* when all that is asked must be over: HELLO, LOGIN and what is sent with them, but for
	 * what a user takes; 0: each reply has its time */
	uint64_t all_by_ns;
	bool lost;
	uint32_t number;
	struct calls_info info;
	struct calls_error error;
	/* sent before the server had answered anything, and not asked for yet, in their order */
	struct calls_ahead {
		uint16_t type, transfer;
		size_t len;
		uint8_t *data;
	} ahead[CALLS_AHEAD_MAX];
	unsigned ahead_count;
	bool may_ahead;             /* the opening asks for them now */
	unsigned ahead_channels;    /* that CHANNELS among them asks for */
	struct message_admit admit; /* that the daemon knows; its class is in: */
	char class[MESSAGE_CLASS_MAX + 1];
	calls_queued_function *queued;
	void *queued_ctx;
	uint64_t answer_by_ns; /* to calls_begin_early */
};

static int calls_fail(struct calls *c, int error, uint16_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Status 0: that of the errno. */
static int calls_fail(struct calls *c, int error, uint16_t status, const char *format, ...)
{
	va_list ap;

	c->error.status = status ? status : status_from_errno(error);
	va_start(ap, format);
	vsnprintf(c->error.text, sizeof c->error.text, format, ap);
	va_end(ap);
	return error;
}

/* The connection is of no use any more. */
static int calls_lose(struct calls *c, int error, const char *doing)
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

/* ---- requests ---- */

void calls_on_queued(struct calls *c, calls_queued_function *queued, void *ctx)
{
	c->queued = queued;
	c->queued_ctx = ctx;
}

static bool calls_begins_transfer(uint16_t type)
{
	return type == MESSAGE_STORE || type == MESSAGE_RETRIEVE || type == MESSAGE_FEED ||
	       type == MESSAGE_SEND_COPY;
}

/* The transfer of a request waits in line: 0, or -EPROTO. */
static int calls_take_queued(struct calls *c, uint16_t type, const uint8_t *data, size_t len)
{
	struct message_queued queued;

	if (!calls_begins_transfer(type) || message_get_queued(&queued, data, len))
		return calls_bad_reply(c, type);
	if (c->queued)
		c->queued(c->queued_ctx, &queued);
	return 0;
}

static struct demux_port *calls_port(const struct calls *c)
{
	return demux_dialogue(link_demux(c->link));
}

static uint64_t calls_deadline(const struct calls *c)
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
static int calls_take_reply(struct calls *c, uint16_t type, const struct message_header *header,
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

static void calls_pop_ahead(struct calls *c)
{
	free(c->ahead[0].data);
	c->ahead_count--;
	memmove(c->ahead, c->ahead + 1, c->ahead_count * sizeof *c->ahead);
}

/* Takes the replies in that nobody asks for any more.  0, or -errno of the connection. */
static int calls_settle(struct calls *c)
{
	const uint8_t *reply;
	size_t len;

	while (c->ahead_count && !c->lost) {
		(void)calls_reply(c, c->ahead[0].type, &reply, &len);
		calls_pop_ahead(c);
	}
	return c->lost ? -ENOTCONN : 0;
}

/* Whether this is the next one, whose reply is then on its way. */
static bool calls_was_sent(
	struct calls *c, unsigned transfer, uint16_t type, const void *data, size_t len)
{
	const struct calls_ahead *a = c->ahead;
	bool same = c->ahead_count && a->type == type && a->transfer == transfer && a->len == len &&
		    (!len || !memcmp(a->data, data, len));

	if (same)
		calls_pop_ahead(c);
	return same;
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
static int calls_send_for(
	struct calls *c, unsigned transfer, uint16_t type, const void *data, ssize_t len)
{
	int err;

	if (c->lost)
		return calls_fail(c, -ENOTCONN, STATUS_DISCONNECTED, "not connected");
	if (len < 0)
		return calls_fail(c, (int)len, STATUS_NAME, "the name is too long or not allowed");
	if (calls_was_sent(c, transfer, type, data, (size_t)len))
		return 0;
	err = calls_settle(c);
	if (err) /* which has said why */
		return err;
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

static int calls_no_channels(struct calls *c, int err)
{
	c->lost = true;
	/* nobody listens any more: the daemon that let us in has gone */
	return calls_fail(c, err, err == -ECONNREFUSED ? STATUS_DISCONNECTED : 0,
		"the data channels can not be opened: %s", status_text(status_from_errno(err)));
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

/* ---- opening ---- */

static uint32_t calls_engines(void)
{
	uint32_t bits = 0;

	for (unsigned i = 0; engine_at(i); i++)
		bits |= 1u << engine_at(i)->id;
	return bits;
}

/* What HELLO says. */
static struct message_hello calls_our_hello(
	const struct calls *c, const struct calls_params *params)
{
	const struct fabric_chan *chan = control_chan(link_control(c->link));

	return (struct message_hello){
		.version = MESSAGE_VERSION,
		.max_channels = MESSAGE_CHANNELS_MAX,
		.max_block = TRANSFER_BLOCK_MAX,
		.max_depth = link_max_depth(c->link),
		.max_transfers = MESSAGE_TRANSFERS_MAX,
		.engines = calls_engines(),
		.flags = (uint32_t)fabric_chan_local_port(chan) << MESSAGE_HELLO_PORT_SHIFT |
			 (uint32_t)params->protect << MESSAGE_HELLO_PROTECT_SHIFT |
			 MESSAGE_HELLO_QUEUED,
		.agent = {(const uint8_t *)params->agent, strlen(params->agent)},
	};
}

/* A request and its reply took so long. */
static void calls_measured(struct calls *c, uint64_t took_ns)
{
	if (took_ns < c->info.rtt_ns)
		c->info.rtt_ns = took_ns;
}

static int calls_take_hello(struct calls *c, const struct message_hello *ours, uint64_t started)
{
	const struct message_hello asked = *ours;
	const struct fabric_chan *chan = control_chan(link_control(c->link));
	const uint8_t protect = (uint8_t)message_hello_protect(ours->flags);
	struct message_hello hello;
	const uint8_t *reply;
	size_t len;
	int err = calls_reply(c, MESSAGE_HELLO, &reply, &len);

	if (err)
		return err;
	calls_measured(c, clock_now_ns() - started);
	if (message_get_hello(&hello, reply, len) || hello.version > asked.version ||
		hello.max_channels > asked.max_channels || hello.max_block > asked.max_block ||
		hello.max_depth > asked.max_depth || hello.max_transfers > asked.max_transfers ||
		hello.engines & ~asked.engines ||
		message_hello_protect(hello.flags) < protect || /* never less than was asked for */
		message_hello_protect(hello.flags) > MESSAGE_PROTECT_PRIVATE)
		return calls_bad_reply(c, MESSAGE_HELLO);
	c->number = hello.session;
	c->info.max_channels = hello.max_channels;
	c->info.max_block = hello.max_block;
	c->info.max_depth = hello.max_depth;
	c->info.max_transfers = hello.max_transfers;
	c->info.engines = hello.engines;
	c->info.protect = (uint8_t)message_hello_protect(hello.flags);
	c->info.methods = (uint8_t)message_hello_methods(hello.flags);
	/* The transport knows best: a reply waits for two busy hosts, too, and who takes that for a
	 * long way asks for a large window and many channels, which a busy host can spare least of
	 * all.  Otherwise the least of a few replies is nearest, and none is asked for only for
	 * that. */
	if (hello.flags & MESSAGE_HELLO_DIRECT && fabric_chan_rtt_ns(chan))
		calls_measured(c, fabric_chan_rtt_ns(chan));
	snprintf(c->info.agent, sizeof c->info.agent, "%.*s", (int)hello.agent.len,
		(const char *)hello.agent.data);
	return 0;
}

/* ---- the login ---- */

ssize_t calls_login_key(struct wire_bytes key, struct wire_bytes signature, void *data, size_t size)
{
	return message_put_login_key(
		&(struct message_login_key){.key = key, .signature = signature}, data, size);
}

/* The next thing to show, sent: 1; 0: there is none; -errno.  What a user takes for it is not the
 * server's time. */
static int calls_show_login(
	struct calls *c, const struct calls_params *params, struct message_login *login)
{
	uint8_t data[5 + MESSAGE_NAME_MAX + MESSAGE_LOGIN_DATA_MAX];
	char why[TLS_WHY_MAX] = "";
	uint64_t began = clock_now_ns();
	int err = 1;

	*login = (struct message_login){.method = MESSAGE_LOGIN_ANONYMOUS};
	if (!params->login && c->info.methods)
		return 0; /* it was shown with HELLO */
	if (params->login)
		err = params->login(params->login_ctx, control_tls(link_control(c->link)),
			c->info.methods, login, why);
	c->all_by_ns += clock_now_ns() - began;
	if (err < 0) /* what is wrong with it is this side's own matter */
		return calls_fail(c, err == -ECANCELED || err == -ENOMEM ? err : -ENOKEY,
			status_from_errno(err), "%s", why);
	if (!err)
		return 0;
	err = calls_send(c, MESSAGE_LOGIN, data, message_put_login(login, data, sizeof data));
	explicit_bzero(data, sizeof data); /* it may be a password */
	return err ? err : 1;
}

static int calls_take_login(struct calls *c, uint8_t method)
{
	struct message_login_reply login;
	const uint8_t *reply;
	size_t len;
	int err = calls_reply(c, MESSAGE_LOGIN, &reply, &len);

	if (err)
		return err;
	if (message_get_login_reply(&login, reply, len))
		return calls_bad_reply(c, MESSAGE_LOGIN);
	c->info.method = method;
	c->info.rights = login.rights;
	c->info.exports = login.exports;
	c->info.max_inline = login.max_inline;
	c->info.read_only = !(login.rights & ~(MESSAGE_RIGHT_READ | MESSAGE_RIGHT_LIST));
	snprintf(c->info.user, sizeof c->info.user, "%.*s", (int)login.user.len,
		(const char *)login.user.data);
	snprintf(c->info.home, sizeof c->info.home, "%.*s", (int)login.home.len,
		(const char *)login.home.data);
	return 0;
}

/* Whether the server has refused what was shown, and hears more. */
static bool calls_login_refused(const struct calls *c)
{
	return !c->lost && c->error.status == STATUS_LOGIN;
}

/* None of what was sent ahead is asked for any more: who logs in once more sends it again. */
static int calls_forget_ahead(struct calls *c)
{
	int err = calls_settle(c);

	c->ahead_channels = 0;
	link_hang_up(c->link);
	return err;
}

/*
 * HELLO, the first login and the requests that are known already leave together: none needs the
 * other's answer, so that they cost one round trip.  Who is not let in is refused all of them.
 */
static int calls_hello_and_login(struct calls *c, const struct calls_params *params)
{
	const struct message_hello ours = calls_our_hello(c, params);
	struct control *control = link_control(c->link);
	uint64_t started = clock_now_ns();
	struct calls_error refused;
	struct message_login login;
	uint8_t data[512];
	int err, shown;

	control_cork(control, true);
	err = calls_send(c, MESSAGE_HELLO, data, message_put_hello(&ours, data, sizeof data));
	shown = err ? err : calls_show_login(c, params, &login);
	c->may_ahead = shown > 0;
	if (shown > 0 && params->ahead)
		params->ahead(params->ahead_ctx, c);
	c->may_ahead = false;
	control_cork(control, false);
	if (shown < 0)
		return shown;
	if (c->ahead_channels)
		link_dial_ahead(c->link, c->ahead_channels, c->connect_timeout_ms);
	err = calls_take_hello(c, &ours, started);
	while (!err) {
		if (shown) {
			err = calls_take_login(c, login.method);
			if (!err || !calls_login_refused(c))
				return err;
			refused = c->error;
			err = calls_forget_ahead(c);
			c->error = refused;
			if (err) /* it was the last that the server hears */
				return -ENOKEY;
		}
		shown = calls_show_login(c, params, &login);
		if (!shown) /* the text of the refusal stands, if there was one */
			return calls_fail(c, -ENOKEY, STATUS_LOGIN, "%s",
				c->error.status ? status_text(STATUS_LOGIN)
						: "there is nothing to log in with");
		err = shown < 0 ? shown : 0;
	}
	return err;
}

int calls_ping(struct calls *c)
{
	struct message_ping ping = {.cookie = 1}, pong;
	uint8_t data[16];
	const uint8_t *reply;
	size_t len;
	int err = calls_ask(
		c, MESSAGE_PING, data, message_put_ping(&ping, data, sizeof data), &reply, &len);

	if (err)
		return err;
	return message_get_ping(&pong, reply, len) || pong.cookie != ping.cookie
		       ? calls_bad_reply(c, MESSAGE_PING)
		       : 0;
}

/* Nothing was sent yet but what the handshake takes. */
static int calls_trust(struct calls *c, const struct calls_params *params)
{
	const struct tls *tls = control_tls(link_control(c->link));
	char why[TLS_WHY_MAX] = "";
	struct tls_key key;
	int err = tls_peer_key(tls, &key);

	if (err)
		return calls_fail(c, err, STATUS_PROTOCOL, "the server shows no key");
	tls_describe(tls, c->info.security, sizeof c->info.security);
	tls_key_fingerprint(&key, c->info.host_key);
	err = params->trust(
		params->trust_ctx, tls, fabric_chan_peer(control_chan(link_control(c->link))), why);
	if (err)
		return calls_fail(
			c, err, err == -ECANCELED ? STATUS_CANCELLED : STATUS_REFUSED, "%s", why);
	return 0;
}

int calls_open(const struct calls_params *params, struct calls **out, struct calls_error *error)
{
	struct calls *c = calloc(1, sizeof *c);
	int err;

	*error = (struct calls_error){.status = STATUS_NO_MEMORY};
	if (!c)
		return -ENOMEM;
	c->cancel_fd = params->cancel_fd;
	c->connect_timeout_ms = c->reply_timeout_ms = params->connect_timeout_ms;
	err = connect_any(params, &c->fabric, &c->link, c->info.address, &c->error);
	if (err)
		goto err_free;
	c->info.fabric = link_fabric_name(c->link);
	fabric_chan_describe(control_chan(link_control(c->link)), c->info.description,
		sizeof c->info.description);
	c->info.rtt_ns = link_secured_in_ns(c->link);
	err = calls_trust(c, params); /* which may take a person's time */
	c->all_by_ns = calls_deadline(c);
	if (!err)
		err = calls_hello_and_login(c, params);
	if (err)
		goto err_free;
	c->all_by_ns = 0;
	c->admit.deadline_ns = MESSAGE_UNKNOWN;
	c->reply_timeout_ms = params->reply_timeout_ms ? params->reply_timeout_ms : CALLS_REPLY_MS;
	*out = c;
	return 0;

err_free:
	*error = c->error;
	c->lost = true; /* no BYE to who would not have us */
	calls_close(c);
	return err;
}

/* The answer would say nothing that is of use. */
static void calls_bye(struct calls *c)
{
	if (!demux_put(calls_port(c), MESSAGE_BYE, 0, NULL, 0))
		control_drain(link_control(c->link), CALLS_BYE_MS);
}

void calls_close(struct calls *c)
{
	if (!c)
		return;
	if (c->link && !c->lost)
		calls_bye(c);
	while (c->ahead_count)
		calls_pop_ahead(c);
	link_free(c->link);
	fabric_close(c->fabric);
	free(c);
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
