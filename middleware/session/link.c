/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/link: see link.h.
 *
 * Owns the control channel and the rails.
 */
#include "session/link.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/worker.h"
#include "proto/status.h"
#include "session/channel_count.h"
#include "session/greeting.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* What the two sides of a data channel show. */
struct tokens {
	uint8_t greeting[MESSAGE_TOKEN_BYTES], welcome[MESSAGE_TOKEN_BYTES];
};

struct link {
	struct fabric_eq *eq; /* client: its own; daemon: NULL */
	struct control *control;
	struct sockaddr_storage peer, src; /* client: where data channels go to and come from */
	bool has_src;
	int lost; /* client: -errno of the control channel's event */
	struct demux *demux;
	/* channels are looked up for events while a transfer's thread may close them */
	pthread_mutex_t lock;
	/* client: whoever has it takes the events in; it is had for long while channels are opened
	 */
	pthread_mutex_t events_lock;
	struct rail *rails[MESSAGE_TRANSFERS_MAX]; /* by transfer; NULL: it never had channels */
	/* daemon: by transfer and number; as many as its rail has channels */
	struct tokens *tokens[MESSAGE_TRANSFERS_MAX];
};

static int link_new(struct fabric_chan *chan, const struct tls_context *tls, const char *host,
	struct link **out)
{
	struct link *l = calloc(1, sizeof *l);
	int r;

	if (!l) {
		fabric_chan_free(chan);
		return -ENOMEM;
	}
	r = control_new(chan, tls, host, &l->control);
	if (!r)
		r = demux_new(l->control, &l->demux);
	if (r) {
		control_free(l->control);
		free(l);
		return r;
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->events_lock, NULL);
	*out = l;
	return 0;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
		link_close_channels(l, i);
		if (l->rails[i])
			rail_fini(l->rails[i]); /* in the control channel's protection domain */
		free(l->rails[i]);
	}
	demux_free(l->demux);
	control_free(l->control);
	fabric_eq_free(l->eq);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->events_lock);
	free(l);
}

struct control *link_control(const struct link *l)
{
	return l->control;
}

struct demux *link_demux(const struct link *l)
{
	return l->demux;
}

struct rail *link_rail(const struct link *l, unsigned transfer)
{
	return l->rails[transfer];
}

/* The rail of a transfer whose channels are about to be opened. */
static int make_rail(struct link *l, unsigned transfer)
{
	struct rail *rail;

	if (l->rails[transfer])
		return 0;
	rail = malloc(sizeof *rail);
	if (!rail)
		return -ENOMEM;
	rail_init(rail, control_pd(l->control), fabric_chan_caps(control_chan(l->control)));
	pthread_mutex_lock(&l->lock);
	l->rails[transfer] = rail;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

const char *link_fabric_name(const struct link *l)
{
	return fabric_chan_name(control_chan(l->control));
}

uint32_t link_max_depth(const struct link *l)
{
	return rail_max_depth(fabric_chan_caps(control_chan(l->control)));
}

unsigned link_suggest_channels(const struct link *l, uint64_t rtt_ns)
{
	const struct fabric_caps *caps = fabric_chan_caps(control_chan(l->control));
	uint16_t most = caps->max_channels && caps->max_channels < MESSAGE_CHANNELS_MAX
				? (uint16_t)caps->max_channels
				: MESSAGE_CHANNELS_MAX;

	return channel_count_choose(worker_cpus(), rtt_ns, !caps->write_delivered, most);
}

unsigned link_channel_count(const struct link *l, unsigned transfer)
{
	return l->rails[transfer] ? rail_channels(l->rails[transfer]) : 0;
}

void link_close_channels(struct link *l, unsigned transfer)
{
	struct channel *channels[MESSAGE_CHANNELS_MAX];
	struct rail *rail = l->rails[transfer];
	struct tokens *tokens;
	unsigned count;

	if (!rail)
		return;
	pthread_mutex_lock(&l->lock);
	count = rail_take(rail, channels);
	tokens = l->tokens[transfer];
	l->tokens[transfer] = NULL;
	pthread_mutex_unlock(&l->lock);
	free(tokens);
	rail_close(rail, channels, count);
}

bool link_channel_event(struct link *l, const struct fabric_event *ev, unsigned *transfer)
{
	struct channel *channel = NULL;

	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX && !channel; i++) {
		channel = l->rails[i] ? rail_find(l->rails[i], ev->chan) : NULL;
		*transfer = i;
	}
	if (channel && ev->type != FABRIC_EVENT_CONNECTED)
		channel->dead = true;
	pthread_mutex_unlock(&l->lock);
	return channel;
}

/* ---- client ---- */

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
	r = make_rail(l, transfer);
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

/* ---- daemon ---- */

int link_accept(struct fabric_chan *chan, const struct message_greeting *greeting,
	const struct tls_context *tls, struct link **out)
{
	struct link *l;
	int r;

	assert(tls);
	r = link_new(chan, tls, NULL, &l);
	if (r)
		return r;
	control_start(l->control, greeting->credits);
	r = greeting_welcome(chan, PIPE_CREDITS, NULL);
	if (r) {
		link_free(l);
		return r;
	}
	*out = l;
	return 0;
}

/* Made here, in the session's thread: TLS is not asked when the channels come. */
static int make_tokens(struct link *l, unsigned transfer, uint32_t session, unsigned count,
	const uint8_t nonce[MESSAGE_TOKEN_BYTES])
{
	struct message_token_context context = {.session = session};
	struct tokens *tokens = calloc(count, sizeof *tokens);
	int r = tokens ? 0 : -ENOMEM;

	memcpy(context.nonce, nonce, sizeof context.nonce);
	for (unsigned i = 0; i < count && !r; i++) {
		context.index = (uint16_t)(transfer * MESSAGE_CHANNELS_MAX + i);
		context.direction = MESSAGE_TOKEN_GREETING;
		r = greeting_token(l->demux, &context, tokens[i].greeting);
		context.direction = MESSAGE_TOKEN_WELCOME;
		if (!r)
			r = greeting_token(l->demux, &context, tokens[i].welcome);
	}
	if (r) {
		free(tokens);
		return r;
	}
	pthread_mutex_lock(&l->lock);
	l->tokens[transfer] = tokens;
	l->rails[transfer]->channel_count = count;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

int link_expect_channels(struct link *l, unsigned transfer, uint32_t session, unsigned count,
	struct message_channels_reply *reply)
{
	int r;

	assert(count && count <= MESSAGE_CHANNELS_MAX && transfer < MESSAGE_TRANSFERS_MAX);
	link_close_channels(l, transfer);
	*reply = (struct message_channels_reply){
		.count = (uint16_t)count, .first = (uint16_t)(transfer * MESSAGE_CHANNELS_MAX)};
	if (getrandom(reply->nonce, sizeof reply->nonce, 0) != sizeof reply->nonce)
		return -EIO;
	r = make_rail(l, transfer);
	if (!r)
		r = rail_expect(l->rails[transfer], count);
	return r ? r : make_tokens(l, transfer, session, count, reply->nonce);
}

static int accept_channel(
	struct rail *rail, struct fabric_chan *chan, unsigned i, const struct tokens *tokens)
{
	struct channel *channel;
	int r = rail_add(rail, chan, i, &channel);

	if (r)
		return r;
	r = channel_expect_greeting(channel);
	if (!r)
		r = greeting_welcome(chan, 0, tokens->welcome);
	if (r) {
		channel_free(channel);
		rail->channels[i] = NULL;
	}
	return r;
}

unsigned link_transfer_of(const struct message_greeting *greeting)
{
	return greeting->index / MESSAGE_CHANNELS_MAX;
}

int link_accept_channel(
	struct link *l, struct fabric_chan *chan, const struct message_greeting *greeting)
{
	unsigned transfer = link_transfer_of(greeting), i = greeting->index % MESSAGE_CHANNELS_MAX;
	const char *refused = NULL;
	struct rail *rail;
	int r = -EACCES;

	pthread_mutex_lock(&l->lock);
	rail = transfer < MESSAGE_TRANSFERS_MAX ? l->rails[transfer] : NULL;
	if (!rail || i >= rail->channel_count || rail->channels[i])
		refused = "not expected";
	else if (!greeting_token_equal(greeting->token, l->tokens[transfer][i].greeting))
		refused = "wrong token";
	else /* which has freed it when it fails, for any reason */
		r = accept_channel(rail, chan, i, &l->tokens[transfer][i]);
	pthread_mutex_unlock(&l->lock);
	if (refused) {
		log_warning("data channel %u of transfer %u refused: %s", i, transfer, refused);
		greeting_refuse(chan, STATUS_REFUSED);
	}
	return r;
}
