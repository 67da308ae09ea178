/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/link: see link.h.
 *
 * Owns the control channel and the rail.
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
	/* the daemon's event loop looks channels up while a transfer's thread may close them */
	pthread_mutex_t lock;
	struct rail rail;
	struct tokens *tokens; /* daemon: by number; as many as the rail has channels */
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
	if (r) {
		free(l);
		return r;
	}
	rail_init(&l->rail, control_pd(l->control), fabric_chan_caps(chan));
	pthread_mutex_init(&l->lock, NULL);
	*out = l;
	return 0;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	link_close_channels(l);
	rail_fini(&l->rail); /* in the control channel's protection domain */
	control_free(l->control);
	fabric_eq_free(l->eq);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

struct control *link_control(const struct link *l)
{
	return l->control;
}

struct rail *link_rail(struct link *l)
{
	return &l->rail;
}

const char *link_fabric_name(const struct link *l)
{
	return fabric_chan_name(control_chan(l->control));
}

uint32_t link_max_depth(const struct link *l)
{
	return rail_max_depth(&l->rail);
}

unsigned link_suggest_channels(const struct link *l, uint64_t rtt_ns)
{
	const struct fabric_caps *caps = fabric_chan_caps(control_chan(l->control));
	uint16_t most = caps->max_channels && caps->max_channels < MESSAGE_CHANNELS_MAX
				? (uint16_t)caps->max_channels
				: MESSAGE_CHANNELS_MAX;

	return channel_count_choose(worker_cpus(), rtt_ns, !caps->write_delivered, most);
}

unsigned link_channel_count(const struct link *l)
{
	return rail_channels(&l->rail);
}

void link_close_channels(struct link *l)
{
	struct channel *channels[MESSAGE_CHANNELS_MAX];
	struct tokens *tokens;
	unsigned count;

	pthread_mutex_lock(&l->lock);
	count = rail_take(&l->rail, channels);
	tokens = l->tokens;
	l->tokens = NULL;
	pthread_mutex_unlock(&l->lock);
	free(tokens);
	rail_close(&l->rail, channels, count);
}

bool link_channel_event(struct link *l, const struct fabric_event *ev)
{
	struct channel *channel;

	pthread_mutex_lock(&l->lock);
	channel = rail_find(&l->rail, ev->chan);
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

/* Opening data channels: what they show and what they must be shown. */
struct opening {
	struct message_greeting greeting;
	struct message_token_context token;
	uint64_t deadline;
};

static int dial_channel(struct link *l, struct opening *o, unsigned number)
{
	struct fabric_chan *chan;
	struct channel *channel;
	int r;

	o->greeting.index = o->token.index = (uint16_t)number;
	o->token.direction = MESSAGE_TOKEN_GREETING;
	r = greeting_token(control_tls(l->control), &o->token, o->greeting.token);
	if (r)
		return r;
	r = fabric_dial(l->eq, (struct sockaddr *)&l->peer,
		l->has_src ? (struct sockaddr *)&l->src : NULL, clock_until_ms(o->deadline), &chan);

	if (r)
		return r;
	r = rail_add(&l->rail, chan, number, &channel);
	return r ? r : greeting_show(chan, &o->greeting);
}

/* A channel's event while they are being opened: 1: it is connected, and greeted; 0: not its turn;
 * -errno. */
static int opening_event(struct link *l, struct opening *o, struct fabric_event *ev)
{
	struct channel *channel = rail_find(&l->rail, ev->chan);
	uint8_t right[MESSAGE_TOKEN_BYTES];
	struct message_welcome welcome;
	int r;

	if (!channel)
		return ev->chan == control_chan(l->control) ? -ECONNRESET : 0;
	if (ev->type == FABRIC_EVENT_REJECTED) { /* without a welcome it was the peer's fabric */
		if (message_get_welcome(&welcome, ev->priv, ev->priv_len))
			return -ECONNREFUSED;
		log_error("data channel refused: %s", status_text(welcome.status));
		return -EACCES;
	}
	if (ev->type != FABRIC_EVENT_CONNECTED)
		return ev->error ? ev->error : -ECONNRESET;
	o->token.index = (uint16_t)channel->number;
	o->token.direction = MESSAGE_TOKEN_WELCOME;
	r = greeting_token(control_tls(l->control), &o->token, right);
	if (r || message_get_welcome(&welcome, ev->priv, ev->priv_len) ||
		!greeting_token_equal(welcome.token, right)) {
		log_error("data channel %u: who accepted it does not belong to this session",
			channel->number);
		return -EPROTO;
	}
	r = channel_greet(channel);
	return r ? r : 1;
}

int link_open_channels(struct link *l, uint32_t session, const struct message_channels_reply *reply,
	int timeout_ms)
{
	struct opening o = {
		.greeting =
			{
				.version = MESSAGE_VERSION,
				.kind = MESSAGE_CHANNEL_DATA,
				.session = session,
			},
		.token = {.session = session},
		.deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS,
	};
	unsigned waiting = reply->count;
	int r;

	link_close_channels(l);
	if (reply->first != 0 || reply->count > MESSAGE_CHANNELS_MAX)
		return -EPROTO;
	memcpy(o.token.nonce, reply->nonce, sizeof o.token.nonce);
	r = rail_expect(&l->rail, reply->count);
	for (unsigned i = 0; i < reply->count && !r; i++)
		r = dial_channel(l, &o, i);
	/* all dialled first, so that they are set up side by side */
	while (waiting && !r) {
		struct fabric_event ev;

		r = fabric_eq_wait(l->eq, &ev, clock_until_ms(o.deadline));
		if (r == 0)
			r = -ETIMEDOUT;
		if (r > 0)
			r = opening_event(l, &o, &ev);
		if (r > 0) {
			waiting--;
			r = 0;
		}
	}
	if (r)
		link_close_channels(l);
	return r;
}

int link_event_fd(const struct link *l)
{
	return l->eq ? fabric_eq_fd(l->eq) : -1;
}

int link_check_events(struct link *l)
{
	struct fabric_event ev;
	int r;

	while ((r = fabric_eq_get(l->eq, &ev)) == 1) {
		if (ev.chan == control_chan(l->control))
			l->lost = ev.error ? ev.error : -ENOTCONN;
		else
			link_channel_event(l, &ev);
	}
	return l->lost ? l->lost : r;
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

/* Made here, in the session's thread: TLS is not asked when the channels come, which may be while a
 * transfer's thread uses it. */
static int make_tokens(
	struct link *l, uint32_t session, unsigned count, const uint8_t nonce[MESSAGE_TOKEN_BYTES])
{
	struct message_token_context context = {.session = session};
	const struct tls *tls = control_tls(l->control);
	struct tokens *tokens = calloc(count, sizeof *tokens);
	int r = tokens ? 0 : -ENOMEM;

	memcpy(context.nonce, nonce, sizeof context.nonce);
	for (unsigned i = 0; i < count && !r; i++) {
		context.index = (uint16_t)i;
		context.direction = MESSAGE_TOKEN_GREETING;
		r = greeting_token(tls, &context, tokens[i].greeting);
		context.direction = MESSAGE_TOKEN_WELCOME;
		if (!r)
			r = greeting_token(tls, &context, tokens[i].welcome);
	}
	if (r) {
		free(tokens);
		return r;
	}
	pthread_mutex_lock(&l->lock);
	l->tokens = tokens;
	l->rail.channel_count = count;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

int link_expect_channels(
	struct link *l, uint32_t session, unsigned count, struct message_channels_reply *reply)
{
	int r;

	assert(count && count <= MESSAGE_CHANNELS_MAX);
	link_close_channels(l);
	*reply = (struct message_channels_reply){.count = (uint16_t)count};
	if (getrandom(reply->nonce, sizeof reply->nonce, 0) != sizeof reply->nonce)
		return -EIO;
	r = rail_expect(&l->rail, count);
	return r ? r : make_tokens(l, session, count, reply->nonce);
}

static int accept_channel(struct link *l, struct fabric_chan *chan, unsigned i)
{
	struct channel *channel;
	int r = rail_add(&l->rail, chan, i, &channel);

	if (r)
		return r;
	r = channel_expect_greeting(channel);
	if (!r)
		r = greeting_welcome(chan, 0, l->tokens[i].welcome);
	if (r) {
		channel_free(channel);
		l->rail.channels[i] = NULL;
	}
	return r;
}

int link_accept_channel(
	struct link *l, struct fabric_chan *chan, const struct message_greeting *greeting)
{
	unsigned i = greeting->index;
	const char *refused = NULL;
	int r = -EACCES;

	pthread_mutex_lock(&l->lock);
	if (i >= l->rail.channel_count || l->rail.channels[i])
		refused = "not expected";
	else if (!greeting_token_equal(greeting->token, l->tokens[i].greeting))
		refused = "wrong token";
	else /* which has freed it when it fails, for any reason */
		r = accept_channel(l, chan, i);
	pthread_mutex_unlock(&l->lock);
	if (refused) {
		log_warning("data channel %u refused: %s", i, refused);
		greeting_refuse(chan, STATUS_REFUSED);
	}
	return r;
}
