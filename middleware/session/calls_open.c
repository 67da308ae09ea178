/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_open: how a session of a client begins, with HELLO, the login and what is sent
 * ahead with them, and how it ends; see calls.h.
 */
#include "proto/message_login.h"
#include "session/calls_impl.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "session/connect.h"
#include "session/pipe_ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_REPLY_MS 60000 /* the daemon has so long to answer, unless told otherwise */
#define CALLS_BYE_MS 500

static uint32_t calls_engines(void)
{
	uint32_t bits = 0;

	for (unsigned i = 0; engine_at(i); i++)
		bits |= 1u << engine_at(i)->id;
	return bits;
}

static bool calls_can_ring(const struct calls *c)
{
	return pipe_ring_is_possible(control_pipe(link_control(c->link)));
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
	if (params->ring && calls_can_ring(c))
		calls_ahead(c, 0, MESSAGE_RING, NULL, 0);
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

/* ---- replies by READ ---- */

int calls_ring(struct calls *c)
{
	struct message_ring_reply ring;
	const uint8_t *reply;
	size_t len;
	int err;

	if (c->ring_asked || !calls_can_ring(c))
		return 0;
	c->ring_asked = true;
	err = calls_ask(c, MESSAGE_RING, NULL, 0, &reply, &len);
	if (err)
		return c->lost ? err : 0; /* it is told as before */
	if (message_get_ring_reply(&ring, reply, len))
		return calls_bad_reply(c, MESSAGE_RING);
	err = pipe_ring_follow(control_pipe(link_control(c->link)), &ring);
	if (err)
		return calls_lose(c, err, message_name(MESSAGE_RING));
	c->info.ring = true;
	return 0;
}

bool calls_count_replies(const struct calls *c, struct pipe_ring_counts *out)
{
	return pipe_ring_count(control_pipe(link_control(c->link)), out);
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
	if (!err && params->ring)
		err = calls_ring(c);
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
