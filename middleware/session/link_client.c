/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/link_client: the client's half of session/link: it dials.
 */
#include "session/link_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "proto/status.h"
#include "session/greeting.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static size_t address_bytes(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int link_connect(struct fabric *fabric, const struct link_target *target, int timeout_ms,
	struct link **out, uint16_t *status)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct message_greeting greeting = {
		.version = MESSAGE_VERSION,
		.kind = MESSAGE_CHANNEL_CONTROL,
		.credits = PIPE_CREDITS,
	};
	struct message_welcome welcome = {0};
	struct fabric_eq *eq;
	struct fabric_chan *chan;
	struct link *l;
	int err;

	assert(target->tls);
	*status = 0;
	err = fabric_eq_new(fabric, &eq);
	if (err)
		return err;
	err = fabric_dial(eq, target->dst, target->src, timeout_ms, &chan);
	if (!err)
		err = link_new(chan, target->tls, target->host, &l);
	if (err) {
		fabric_eq_free(eq);
		return err;
	}
	l->eq = eq;
	memcpy(&l->peer, target->dst, address_bytes(target->dst));
	if (target->src) {
		memcpy(&l->src, target->src, address_bytes(target->src));
		l->has_src = true;
	}
	err = greeting_show(chan, &greeting);
	if (!err)
		err = greeting_wait_answer(eq, chan, deadline, &welcome);
	if (!err && welcome.credits < MESSAGE_CREDITS_MIN)
		err = -EPROTO;
	if (!err) {
		control_start(l->control, welcome.credits);
		err = control_secure(l->control, clock_until_ms(deadline), -1);
		if (err == -ECONNRESET || err == -ENOTCONN) /* it has said already that it is one */
			err = -ECONNABORTED;
	} else if (err == -EACCES) {
		*status = welcome.status;
	}
	if (err) {
		link_free(l);
		return err;
	}
	*out = l;
	return 0;
}

static void take_event(struct link *l, const struct fabric_event *ev)
{
	unsigned transfer;

	if (ev->chan == control_chan(l->control))
		l->lost = ev->error ? ev->error : -ENOTCONN;
	else
		link_channel_event(l, ev, &transfer);
}

/* Opening data channels: what they show and what they must be shown. */
struct opening {
	struct rail *rail;
	unsigned first;
	struct message_greeting greeting;
	struct message_token_context token;
	uint64_t deadline;
};

static int dial_channel(struct link *l, struct opening *o, unsigned number)
{
	struct fabric_chan *chan;
	struct channel *channel;
	int err;

	o->greeting.index = o->token.index = (uint16_t)(o->first + number);
	o->token.direction = MESSAGE_TOKEN_GREETING;
	err = greeting_token(l->demux, &o->token, o->greeting.token);
	if (err)
		return err;
	err = fabric_dial(l->eq, (struct sockaddr *)&l->peer,
		l->has_src ? (struct sockaddr *)&l->src : NULL, clock_until_ms(o->deadline), &chan);

	if (err)
		return err;
	pthread_mutex_lock(&l->lock);
	err = rail_add(o->rail, chan, number, &channel);
	pthread_mutex_unlock(&l->lock);
	return err ? err : greeting_show(chan, &o->greeting);
}

/* A channel's event while they are being opened: 1: it is connected, and greeted; 0: it is another
 * transfer's; -errno. */
static int opening_event(struct link *l, struct opening *o, struct fabric_event *ev)
{
	struct channel *channel = rail_find(o->rail, ev->chan);
	uint8_t right[MESSAGE_TOKEN_BYTES];
	struct message_welcome welcome;
	int got;

	if (!channel) {
		take_event(l, ev);
		return l->lost ? -ECONNRESET : 0;
	}
	if (ev->type == FABRIC_EVENT_REJECTED) { /* without a welcome it was the peer's fabric */
		if (message_get_welcome(&welcome, ev->priv, ev->priv_len))
			return -ECONNREFUSED;
		log_error("data channel refused: %s", status_text(welcome.status));
		return -EACCES;
	}
	if (ev->type != FABRIC_EVENT_CONNECTED)
		return ev->error ? ev->error : -ECONNRESET;
	o->token.index = (uint16_t)(o->first + channel->number);
	o->token.direction = MESSAGE_TOKEN_WELCOME;
	got = greeting_token(l->demux, &o->token, right);
	if (got || message_get_welcome(&welcome, ev->priv, ev->priv_len) ||
		!greeting_token_equal(welcome.token, right)) {
		log_error("data channel %u: who accepted it does not belong to this session",
			channel->number);
		return -EPROTO;
	}
	got = channel_greet(channel);
	return got ? got : 1;
}

static int open_channels(struct link *l, struct opening *o, unsigned count)
{
	unsigned waiting = count;
	int got = rail_expect(o->rail, count);

	for (unsigned i = 0; i < count && !got; i++)
		got = dial_channel(l, o, i);
	/* all dialled first, so that they are set up side by side */
	while (waiting && !got) {
		struct fabric_event ev;

		got = fabric_eq_wait(l->eq, &ev, clock_until_ms(o->deadline));
		if (got == 0)
			got = -ETIMEDOUT;
		if (got > 0)
			got = opening_event(l, o, &ev);
		if (got > 0) {
			waiting--;
			got = 0;
		}
	}
	return got;
}

int link_open_channels(struct link *l, unsigned transfer, uint32_t session,
	const struct message_channels_reply *reply, int timeout_ms)
{
	struct opening o = {
		.first = transfer * MESSAGE_CHANNELS_MAX,
		.greeting =
			{
				.version = MESSAGE_VERSION,
				.kind = MESSAGE_CHANNEL_DATA,
				.session = session,
			},
		.token = {.session = session},
		.deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS,
	};
	int err;

	link_close_channels(l, transfer);
	if (reply->first != o.first || reply->count > MESSAGE_CHANNELS_MAX)
		return -EPROTO;
	memcpy(o.token.nonce, reply->nonce, sizeof o.token.nonce);
	err = link_make_rail(l, transfer);
	if (err)
		return err;
	o.rail = l->rails[transfer];
	o.rail->remote_area =
		(struct rail_area){reply->area_base, reply->area_bytes, reply->area_key};
	pthread_mutex_lock(&l->events_lock);
	err = open_channels(l, &o, reply->count);
	pthread_mutex_unlock(&l->events_lock);
	if (err)
		link_close_channels(l, transfer);
	return err;
}

int link_event_fd(const struct link *l)
{
	return l->eq ? fabric_eq_fd(l->eq) : -1;
}

int link_check_events(struct link *l)
{
	struct fabric_event ev;
	int got = 0;

	/* who opens channels takes in what there is for others, too */
	if (pthread_mutex_trylock(&l->events_lock))
		return 0;
	while ((got = fabric_eq_get(l->eq, &ev)) == 1)
		take_event(l, &ev);
	if (l->lost)
		got = l->lost;
	pthread_mutex_unlock(&l->events_lock);
	return got;
}
