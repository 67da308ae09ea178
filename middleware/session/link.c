/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/link: see link.h.
 *
 * Owns the control channel, the lanes and their completion queue.  Knows greetings and tokens; no
 * session messages.
 */
#include "session/link.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/worker.h"
#include "engine/lane.h"
#include "proto/status.h"
#include "session/memory.h"
#include "session/channel_count.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct link {
	struct fabric_eq *eq; /* client: its own; daemon: NULL */
	struct control *control;
	struct sockaddr_storage peer, src; /* client: where data channels go to and come from */
	bool has_src;
	int lost;             /* client: -errno of the control channel's event */
	struct fabric_cq *cq; /* of all lanes */
	struct memory memory;
	/* the daemon's event loop looks lanes up while a transfer's thread may close them */
	pthread_mutex_t lock;
	struct lane *lanes[MESSAGE_CHANNELS_MAX]; /* by number; NULL until accepted */
	unsigned lane_count;                      /* numbers 0..lane_count-1 are wanted or open */
	uint8_t token[MESSAGE_TOKEN_BYTES];       /* daemon */
};

static int link_new(struct fabric_chan *chan, struct link **out)
{
	struct link *l = calloc(1, sizeof *l);
	int r;

	if (!l) {
		fabric_chan_free(chan);
		return -ENOMEM;
	}
	r = control_new(chan, &l->control);
	if (r) {
		free(l);
		return r;
	}
	pthread_mutex_init(&l->lock, NULL);
	*out = l;
	return 0;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	link_close_channels(l);
	memory_free(&l->memory); /* registered in the control channel's protection domain */
	control_free(l->control);
	fabric_eq_free(l->eq);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

struct control *link_control(const struct link *l)
{
	return l->control;
}

struct memory *link_memory(struct link *l)
{
	return &l->memory;
}

const char *link_fabric_name(const struct link *l)
{
	return fabric_chan_name(control_chan(l->control));
}

uint32_t link_max_depth(const struct link *l)
{
	uint32_t most = fabric_chan_caps(control_chan(l->control))->max_depth / 2;

	return most <= LINK_DEPTH ? most - 1 : LINK_DEPTH;
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
	unsigned n = 0;

	/* Accepted is enough: the peer may have heard CONNECTED, and ask for a transfer, before our
	 * event loop has.  Who sends waits for the greeting first (link_wait_greeted). */
	while (n < l->lane_count && l->lanes[n] && !l->lanes[n]->dead)
		n++;
	return n;
}

struct lane *const *link_lanes(const struct link *l)
{
	return l->lanes;
}

struct fabric_cq *link_cq(const struct link *l)
{
	return l->cq;
}

void link_close_channels(struct link *l)
{
	struct lane *lanes[MESSAGE_CHANNELS_MAX];
	unsigned count;

	/* freeing takes its time, and the event loop takes the lock for every event: not under it
	 */
	pthread_mutex_lock(&l->lock);
	count = l->lane_count;
	memcpy(lanes, l->lanes, count * sizeof *lanes);
	memset(l->lanes, 0, sizeof l->lanes);
	l->lane_count = 0;
	pthread_mutex_unlock(&l->lock);
	for (unsigned i = 0; i < count; i++)
		lane_free(lanes[i]);
	fabric_cq_free(l->cq);
	l->cq = NULL;
}

static int make_cq(struct link *l, unsigned lanes)
{
	return fabric_cq_new(
		control_pd(l->control), lanes * lane_completions(link_max_depth(l)), &l->cq);
}

static struct lane *find_lane(const struct link *l, const struct fabric_chan *chan)
{
	for (unsigned i = 0; i < l->lane_count; i++)
		if (l->lanes[i] && l->lanes[i]->chan == chan)
			return l->lanes[i];
	return NULL;
}

bool link_channel_event(struct link *l, const struct fabric_event *ev)
{
	struct lane *lane;

	pthread_mutex_lock(&l->lock);
	lane = find_lane(l, ev->chan);
	if (lane && ev->type != FABRIC_EVENT_CONNECTED)
		lane->dead = true;
	pthread_mutex_unlock(&l->lock);
	return lane;
}

int link_wait_greeted(struct link *l, unsigned count, int timeout_ms, int cancel_fd)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	unsigned i = 0;

	while (i < count) {
		struct pollfd fds[2] = {{fabric_cq_fd(l->cq), POLLIN, 0}, {cancel_fd, POLLIN, 0}};
		struct fabric_wc wc;
		uint32_t sent;
		int r;

		if (l->lanes[i]->greeted) {
			i++;
			continue;
		}
		r = fabric_cq_arm(l->cq);
		if (!r)
			r = fabric_cq_poll(l->cq, &wc, 1);
		if (r < 0)
			return r;
		if (r) {
			r = lane_completion(&wc, &sent);
			if (r < 0)
				return r;
			continue;
		}
		r = poll(fds, 2, clock_until_ms(deadline));
		if (fds[1].revents)
			return -ECANCELED;
		if (!r)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

/* ---- client ---- */

/* Waits for the answer on `chan`: 0 and the welcome, or -errno. */
static int wait_answer(struct fabric_eq *eq, const struct fabric_chan *chan, uint64_t deadline,
	struct message_welcome *welcome)
{
	struct fabric_event ev;
	int r;

	for (;;) {
		r = fabric_eq_wait(eq, &ev, clock_until_ms(deadline));
		if (r <= 0)
			return r ? r : -ETIMEDOUT;
		if (ev.chan != chan)
			continue;
		switch (ev.type) {
		case FABRIC_EVENT_CONNECTED:
			if (message_get_welcome(welcome, ev.priv, ev.priv_len) || welcome->status ||
				welcome->version > MESSAGE_VERSION)
				return -EPROTO;
			return 0;
		case FABRIC_EVENT_REJECTED:
			if (message_get_welcome(welcome, ev.priv, ev.priv_len) || !welcome->status)
				return -EPROTO;
			return -EACCES;
		case FABRIC_EVENT_DISCONNECTED:
			return ev.error ? ev.error : -ECONNRESET;
		default:
			return ev.error ? ev.error : -ECONNREFUSED;
		}
	}
}

static int show_greeting(struct fabric_chan *chan, const struct message_greeting *greeting)
{
	uint8_t bytes[FABRIC_PRIVATE_MAX];
	ssize_t len = message_put_greeting(greeting, bytes, sizeof bytes);

	assert(len > 0);
	return fabric_chan_connect(chan, bytes, (size_t)len);
}

static size_t address_bytes(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int link_connect(struct fabric *fabric, const struct sockaddr *dst, const struct sockaddr *src,
	int timeout_ms, struct link **out, uint16_t *status)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct message_greeting greeting = {
		.version = MESSAGE_VERSION,
		.kind = MESSAGE_CHANNEL_CONTROL,
		.credits = CONTROL_CREDITS,
	};
	struct message_welcome welcome = {0};
	struct fabric_eq *eq;
	struct fabric_chan *chan;
	struct link *l;
	int r;

	*status = 0;
	r = fabric_eq_new(fabric, &eq);
	if (r)
		return r;
	r = fabric_dial(eq, dst, src, timeout_ms, &chan);
	if (!r)
		r = link_new(chan, &l);
	if (r) {
		fabric_eq_free(eq);
		return r;
	}
	l->eq = eq;
	memcpy(&l->peer, dst, address_bytes(dst));
	if (src) {
		memcpy(&l->src, src, address_bytes(src));
		l->has_src = true;
	}
	r = show_greeting(chan, &greeting);
	if (!r)
		r = wait_answer(eq, chan, deadline, &welcome);
	if (!r && welcome.credits < MESSAGE_CREDITS_MIN)
		r = -EPROTO;
	if (r) {
		*status = r == -EACCES ? welcome.status : STATUS_OK;
		link_free(l);
		return r;
	}
	control_start(l->control, welcome.credits);
	*out = l;
	return 0;
}

static int dial_channel(
	struct link *l, unsigned number, struct message_greeting *greeting, uint64_t deadline)
{
	struct fabric_chan *chan;
	int r = fabric_dial(l->eq, (struct sockaddr *)&l->peer,
		l->has_src ? (struct sockaddr *)&l->src : NULL, clock_until_ms(deadline), &chan);

	if (r)
		return r;
	r = lane_new(
		chan, control_pd(l->control), l->cq, number, link_max_depth(l), &l->lanes[number]);
	if (r)
		return r;
	l->lane_count = number + 1;
	return show_greeting(chan, greeting);
}

int link_open_channels(struct link *l, uint32_t session, const struct message_channels_reply *reply,
	int timeout_ms)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct message_greeting greeting = {
		.version = MESSAGE_VERSION,
		.kind = MESSAGE_CHANNEL_DATA,
		.session = session,
	};
	struct message_welcome welcome;
	int r;

	link_close_channels(l);
	if (reply->first != 0 || reply->count > MESSAGE_CHANNELS_MAX)
		return -EPROTO;
	memcpy(greeting.token, reply->token, sizeof greeting.token);
	r = make_cq(l, reply->count);
	for (unsigned i = 0; i < reply->count && !r; i++) {
		greeting.index = (uint16_t)i;
		r = dial_channel(l, i, &greeting, deadline);
	}
	/* all dialled first, so that they are set up side by side; answers are taken one at a time,
	 * and those of other channels meanwhile must not be lost: each wait looks at all lanes */
	for (unsigned waiting = reply->count; waiting && !r;) {
		struct fabric_event ev;

		r = fabric_eq_wait(l->eq, &ev, clock_until_ms(deadline));
		if (r <= 0) {
			r = r ? r : -ETIMEDOUT;
			break;
		}
		r = 0;
		if (!find_lane(l, ev.chan)) {
			if (ev.chan == control_chan(l->control))
				r = -ECONNRESET;
			continue;
		}
		if (ev.type == FABRIC_EVENT_CONNECTED) {
			struct lane *lane = fabric_chan_context(ev.chan);

			link_channel_event(l, &ev);
			r = lane_greet(lane);
			waiting--;
		} else if (ev.type == FABRIC_EVENT_REJECTED) {
			r = -ECONNREFUSED; /* by the peer's fabric: its daemon says why */
			if (!message_get_welcome(&welcome, ev.priv, ev.priv_len)) {
				r = -EACCES;
				log_error("data channel refused: %s", status_text(welcome.status));
			}
		} else {
			r = ev.error ? ev.error : -ECONNRESET;
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

static int answer_welcome(struct fabric_chan *chan, uint16_t credits)
{
	struct message_welcome welcome = {.version = MESSAGE_VERSION, .credits = credits};
	uint8_t bytes[FABRIC_PRIVATE_MAX];
	ssize_t len = message_put_welcome(&welcome, bytes, sizeof bytes);

	assert(len > 0);
	return fabric_chan_accept(chan, bytes, (size_t)len);
}

int link_accept(
	struct fabric_chan *chan, const struct message_greeting *greeting, struct link **out)
{
	struct link *l;
	int r;

	r = link_new(chan, &l);
	if (r)
		return r;
	control_start(l->control, greeting->credits);
	r = answer_welcome(chan, CONTROL_CREDITS);
	if (r) {
		link_free(l);
		return r;
	}
	*out = l;
	return 0;
}

int link_expect_channels(struct link *l, unsigned count, struct message_channels_reply *reply)
{
	int r;

	assert(count && count <= MESSAGE_CHANNELS_MAX);
	link_close_channels(l);
	if (getrandom(l->token, sizeof l->token, 0) != sizeof l->token)
		return -EIO;
	r = make_cq(l, count);
	if (r)
		return r;
	pthread_mutex_lock(&l->lock);
	l->lane_count = count;
	pthread_mutex_unlock(&l->lock);
	reply->count = (uint16_t)count;
	reply->first = 0;
	memcpy(reply->token, l->token, sizeof reply->token);
	return 0;
}

/* Compares in a time that does not depend on where they differ. */
static bool token_equal(const uint8_t *a, const uint8_t *b)
{
	uint8_t differ = 0;

	for (unsigned i = 0; i < MESSAGE_TOKEN_BYTES; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

static void refuse(struct fabric_chan *chan, uint16_t status)
{
	struct message_welcome welcome = {.version = MESSAGE_VERSION, .status = status};
	uint8_t bytes[FABRIC_PRIVATE_MAX];
	ssize_t len = message_put_welcome(&welcome, bytes, sizeof bytes);

	assert(len > 0);
	fabric_chan_reject(chan, bytes, (size_t)len);
}

static int accept_lane(struct link *l, struct fabric_chan *chan, unsigned i)
{
	int r = lane_new(chan, control_pd(l->control), l->cq, i, link_max_depth(l), &l->lanes[i]);

	if (r)
		return r;
	r = lane_expect_greeting(l->lanes[i]);
	if (!r)
		r = answer_welcome(chan, 0);
	if (r) {
		lane_free(l->lanes[i]);
		l->lanes[i] = NULL;
	}
	return r;
}

int link_accept_channel(
	struct link *l, struct fabric_chan *chan, const struct message_greeting *greeting)
{
	unsigned i = greeting->index;
	bool refused;
	int r = -EACCES;

	pthread_mutex_lock(&l->lock);
	refused = i >= l->lane_count || l->lanes[i] || !token_equal(greeting->token, l->token);
	if (refused)
		log_warning("data channel %u refused: %s", i,
			i < l->lane_count && !l->lanes[i] ? "wrong token" : "not expected");
	else
		r = accept_lane(l, chan, i); /* which has freed it when it fails, for any reason */
	pthread_mutex_unlock(&l->lock);
	if (refused)
		refuse(chan, STATUS_REFUSED);
	return r;
}
