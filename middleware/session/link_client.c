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
		uint64_t began = clock_now_ns();

		control_start(l->control, welcome.credits);
		l->may_reach = welcome.flags & MESSAGE_WELCOME_AHEAD;
		err = control_secure(l->control, clock_until_ms(deadline), -1);
		l->secured_in_ns = clock_now_ns() - began;
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

uint64_t link_secured_in_ns(const struct link *l)
{
	return l->secured_in_ns;
}

/* ---- data channels ---- */

#define DIALLED_KEPT_NS (3 * NS_PER_S) /* who listens does not wait for long */

static int dial(struct link *l, int timeout_ms, struct fabric_chan **chan)
{
	return fabric_dial(l->eq, (struct sockaddr *)&l->peer,
		l->has_src ? (struct sockaddr *)&l->src : NULL, timeout_ms, chan);
}

void link_dial_ahead(struct link *l, unsigned count, int timeout_ms)
{
	link_hang_up(l);
	l->dialled_ns = clock_now_ns();
	while (l->dialled_count < count && l->dialled_count < MESSAGE_CHANNELS_MAX &&
		!dial(l, timeout_ms, &l->dialled[l->dialled_count])) {
		if (l->may_reach)
			fabric_chan_reach(l->dialled[l->dialled_count]);
		l->dialled_count++;
	}
}

void link_hang_up(struct link *l)
{
	while (l->dialled_count)
		fabric_chan_free(l->dialled[--l->dialled_count]);
}

/* One that was dialled already, or a new one. */
static int take_dialled(struct link *l, uint64_t deadline, struct fabric_chan **chan)
{
	if (!l->dialled_count)
		return dial(l, clock_until_ms(deadline), chan);
	*chan = l->dialled[--l->dialled_count];
	return 0;
}

static int begin_channel(struct link *l, unsigned transfer, unsigned number, uint64_t deadline)
{
	struct opening *o = &l->openings[transfer];
	struct message_greeting greeting = {
		.version = MESSAGE_VERSION,
		.kind = MESSAGE_CHANNEL_DATA,
		.session = o->token.session,
		.index = (uint16_t)(transfer * MESSAGE_CHANNELS_MAX + number),
	};
	struct fabric_chan *chan;
	struct channel *channel;
	int err;

	o->token.index = greeting.index;
	o->token.direction = MESSAGE_TOKEN_GREETING;
	err = greeting_token(l->demux, &o->token, greeting.token);
	if (err)
		return err;
	err = take_dialled(l, deadline, &chan);
	if (err)
		return err;
	pthread_mutex_lock(&l->lock);
	err = rail_add(l->rails[transfer], chan, number, &channel);
	if (!err)
		o->waiting++;
	pthread_mutex_unlock(&l->lock);
	return err ? err : greeting_show(chan, &greeting);
}

int link_begin_channels(struct link *l, unsigned transfer, uint32_t session,
	const struct message_channels_reply *reply, int timeout_ms)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	int err;

	link_close_channels(l, transfer);
	if (reply->first != transfer * MESSAGE_CHANNELS_MAX || reply->count > MESSAGE_CHANNELS_MAX)
		return -EPROTO;
	err = link_make_rail(l, transfer);
	if (err)
		return err;
	if (l->dialled_count && clock_now_ns() - l->dialled_ns > DIALLED_KEPT_NS)
		link_hang_up(l);
	l->rails[transfer]->remote_area =
		(struct rail_area){reply->area_base, reply->area_bytes, reply->area_key};
	pthread_mutex_lock(&l->events_lock);
	l->openings[transfer].token = (struct message_token_context){.session = session};
	memcpy(l->openings[transfer].token.nonce, reply->nonce, sizeof reply->nonce);
	err = rail_expect(l->rails[transfer], reply->count);
	/* all of them, so that they are set up side by side */
	for (unsigned i = 0; i < reply->count && !err; i++)
		err = begin_channel(l, transfer, i, deadline);
	pthread_mutex_unlock(&l->events_lock);
	link_hang_up(l);
	if (err)
		link_close_channels(l, transfer);
	return err;
}

/* What happened to a channel that is being opened: 0: it is connected, and greeted; or -errno. With
 * the lock. */
static int opened(struct link *l, struct opening *o, struct channel *channel, unsigned transfer,
	const struct fabric_event *ev)
{
	uint8_t right[MESSAGE_TOKEN_BYTES];
	struct message_welcome welcome;
	int err;

	if (ev->type == FABRIC_EVENT_REJECTED) { /* without a welcome it was the peer's fabric */
		if (message_get_welcome(&welcome, ev->priv, ev->priv_len))
			return -ECONNREFUSED;
		/* the answer to a request that went ahead of it says why */
		log_debug("data channel refused: %s", status_text(welcome.status));
		err = status_to_errno(welcome.status);
		return err && err != -ECONNREFUSED ? err : -EACCES; /* somebody did listen */
	}
	if (ev->type != FABRIC_EVENT_CONNECTED)
		return ev->error ? ev->error : -ECONNRESET;
	o->token.index = (uint16_t)(transfer * MESSAGE_CHANNELS_MAX + channel->number);
	o->token.direction = MESSAGE_TOKEN_WELCOME;
	err = greeting_token(l->demux, &o->token, right);
	if (err || message_get_welcome(&welcome, ev->priv, ev->priv_len) ||
		!greeting_token_equal(welcome.token, right)) {
		log_error("data channel %u: who accepted it does not belong to this session",
			channel->number);
		return -EPROTO;
	}
	return channel_greet(channel);
}

/* Whether it was a channel that is being opened. */
static bool opening_event(struct link *l, const struct fabric_event *ev)
{
	bool is = false;

	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX && !is; i++) {
		struct opening *o = &l->openings[i];
		struct channel *channel = o->waiting ? rail_find(l->rails[i], ev->chan) : NULL;
		int err;

		is = channel && !channel->greeted && !channel->dead;
		if (!is)
			continue;
		err = opened(l, o, channel, i, ev);
		o->waiting--;
		o->error = o->error ? o->error : err;
		channel->dead = channel->dead || err;
	}
	pthread_mutex_unlock(&l->lock);
	return is;
}

static void take_event(struct link *l, const struct fabric_event *ev)
{
	unsigned transfer;

	if (ev->chan == control_chan(l->control))
		l->lost = ev->error ? ev->error : -ENOTCONN;
	else if (!opening_event(l, ev))
		link_channel_event(l, ev, &transfer);
}

/* Whether all are there, or one has failed, whose error it is. */
static bool is_opened(struct link *l, unsigned transfer, int *err)
{
	const struct opening *o = &l->openings[transfer];
	bool is;

	pthread_mutex_lock(&l->lock);
	*err = o->error;
	is = !o->waiting || o->error;
	pthread_mutex_unlock(&l->lock);
	return is;
}

int link_finish_channels(struct link *l, unsigned transfer, int timeout_ms)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	int err;

	if (is_opened(l, transfer, &err) && !err)
		return 0;
	pthread_mutex_lock(&l->events_lock);
	while (!is_opened(l, transfer, &err)) {
		struct fabric_event ev;
		int got = fabric_eq_wait(l->eq, &ev, clock_until_ms(deadline));

		if (got > 0)
			take_event(l, &ev);
		err = got < 0 ? got : !got ? -ETIMEDOUT : l->lost ? -ECONNRESET : 0;
		if (err)
			break;
	}
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
