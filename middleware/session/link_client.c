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
	int r;

	assert(target->tls);
	*status = 0;
	r = fabric_eq_new(fabric, &eq);
	if (r)
		return r;
	r = fabric_dial(eq, target->dst, target->src, timeout_ms, &chan);
	if (!r)
		r = link_new(chan, target->tls, target->host, &l);
	if (r) {
		fabric_eq_free(eq);
		return r;
	}
	l->eq = eq;
	memcpy(&l->peer, target->dst, address_bytes(target->dst));
	if (target->src) {
		memcpy(&l->src, target->src, address_bytes(target->src));
		l->has_src = true;
	}
	r = greeting_show(chan, &greeting);
	if (!r)
		r = greeting_wait_answer(eq, chan, deadline, &welcome);
	if (!r && welcome.credits < MESSAGE_CREDITS_MIN)
		r = -EPROTO;
	if (!r) {
		control_start(l->control, welcome.credits);
		r = control_secure(l->control, clock_until_ms(deadline), -1);
		if (r == -ECONNRESET || r == -ENOTCONN) /* it has said already that it is one */
			r = -ECONNABORTED;
	} else if (r == -EACCES) {
		*status = welcome.status;
	}
	if (r) {
		link_free(l);
		return r;
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
	int r;

	o->greeting.index = o->token.index = (uint16_t)(o->first + number);
	o->token.direction = MESSAGE_TOKEN_GREETING;
	r = greeting_token(l->demux, &o->token, o->greeting.token);
	if (r)
		return r;
	r = fabric_dial(l->eq, (struct sockaddr *)&l->peer,
		l->has_src ? (struct sockaddr *)&l->src : NULL, clock_until_ms(o->deadline), &chan);

	if (r)
		return r;
	pthread_mutex_lock(&l->lock);
	r = rail_add(o->rail, chan, number, &channel);
	pthread_mutex_unlock(&l->lock);
	return r ? r : greeting_show(chan, &o->greeting);
}

/* A channel's event while they are being opened: 1: it is connected, and greeted; 0: it is another
 * transfer's; -errno. */
static int opening_event(struct link *l, struct opening *o, struct fabric_event *ev)
{
	struct channel *channel = rail_find(o->rail, ev->chan);
	uint8_t right[MESSAGE_TOKEN_BYTES];
	struct message_welcome welcome;
	int r;

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
	r = greeting_token(l->demux, &o->token, right);
	if (r || message_get_welcome(&welcome, ev->priv, ev->priv_len) ||
		!greeting_token_equal(welcome.token, right)) {
		log_error("data channel %u: who accepted it does not belong to this session",
			channel->number);
		return -EPROTO;
	}
	r = channel_greet(channel);
	return r ? r : 1;
}

static int open_channels(struct link *l, struct opening *o, unsigned count)
{
	unsigned waiting = count;
	int r = rail_expect(o->rail, count);

	for (unsigned i = 0; i < count && !r; i++)
		r = dial_channel(l, o, i);
	/* all dialled first, so that they are set up side by side */
	while (waiting && !r) {
		struct fabric_event ev;

		r = fabric_eq_wait(l->eq, &ev, clock_until_ms(o->deadline));
		if (r == 0)
			r = -ETIMEDOUT;
		if (r > 0)
			r = opening_event(l, o, &ev);
		if (r > 0) {
			waiting--;
			r = 0;
		}
	}
	return r;
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
	int r;

	link_close_channels(l, transfer);
	if (reply->first != o.first || reply->count > MESSAGE_CHANNELS_MAX)
		return -EPROTO;
	memcpy(o.token.nonce, reply->nonce, sizeof o.token.nonce);
	r = link_make_rail(l, transfer);
	if (r)
		return r;
	o.rail = l->rails[transfer];
	pthread_mutex_lock(&l->events_lock);
	r = open_channels(l, &o, reply->count);
	pthread_mutex_unlock(&l->events_lock);
	if (r)
		link_close_channels(l, transfer);
	return r;
}

int link_event_fd(const struct link *l)
{
	return l->eq ? fabric_eq_fd(l->eq) : -1;
}

int link_check_events(struct link *l)
{
	struct fabric_event ev;
	int r = 0;

	/* who opens channels takes in what there is for others, too */
	if (pthread_mutex_trylock(&l->events_lock))
		return 0;
	while ((r = fabric_eq_get(l->eq, &ev)) == 1)
		take_event(l, &ev);
	if (l->lost)
		r = l->lost;
	pthread_mutex_unlock(&l->events_lock);
	return r;
}
