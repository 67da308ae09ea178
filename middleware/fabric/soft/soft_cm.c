/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_cm: connections of the soft fabric: dialling, the MPA exchange of both sides and
 * its deadlines.  All on progress threads and non-blocking, so that peers who say nothing cost a
 * descriptor until their deadline and nothing else.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/log.h"
#include "fabric/soft/soft_impl.h"

#define KEEPALIVE_IDLE_S 15
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT 3
#define FRAME_BYTES (MPA_FRAME_FIXED_BYTES + MPA_ENHANCED_BYTES + FABRIC_PRIVATE_MAX)
#define STREAM_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

_Static_assert(FRAME_BYTES <= SOFT_STAGE_BYTES, "frames are gathered in the stage");

void soft_socket_tune(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
		{IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, SOFT_USER_TIMEOUT_MS},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			    sizeof(options[i].value)) < 0)
			log_debug("soft: socket option %d: error %d", options[i].name, errno);
}

static uint64_t handshake_deadline(const struct soft *soft)
{
	return clock_now_ns() + soft->config.handshake_ms * NS_PER_MS;
}

/* ---- dialling ---- */

int soft_dial(struct fabric_eq *eq, const struct sockaddr *dst, const struct sockaddr *src,
	int timeout_ms, struct fabric_chan **out)
{
	struct soft_chan *chan;
	int err = soft_chan_new((struct soft *)eq->fabric, &chan);

	(void)timeout_ms; /* nothing is resolved before connect */
	if (err)
		return err;
	memcpy(&chan->base.peer, dst, soft_addr_bytes(dst));
	chan->eq = (struct soft_eq *)eq;
	chan->fd = socket(dst->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (chan->fd < 0) {
		err = -errno;
		goto err_chan;
	}
	if (src && bind(chan->fd, src, soft_addr_bytes(src)) < 0) {
		err = -errno;
		goto err_fd;
	}
	*out = &chan->base;
	return 0;

err_fd:
	close(chan->fd);
err_chan:
	soft_chan_free_now(chan);
	return err;
}

/* ---- the MPA exchange: both sides ---- */

/*
 * Reads the peer's frame and not a byte more.  1: *frame is there; 0: not yet; else -errno
 * (-ECONNRESET: the peer closed).
 */
static int frame_read(struct soft_chan *chan, enum mpa_kind kind, struct mpa_frame *frame)
{
	struct soft_rx *rx = &chan->rx;
	size_t need = MPA_FRAME_FIXED_BYTES;
	ssize_t n;
	int err;

	for (;;) {
		err = mpa_frame_get(rx->stage, rx->end, kind, frame, &need);
		if (err != -EAGAIN)
			return err < 0 ? err : 1;
		if (need > FRAME_BYTES)
			return -EPROTO;
		n = recv(chan->fd, rx->stage + rx->end, need - rx->end, 0);
		if (!n)
			return -ECONNRESET;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			rx->ready = false;
			return 0;
		}
		if (n < 0)
			return -errno;
		rx->end += (uint16_t)n;
	}
}

/* A frame fits any socket that has sent nothing yet; if it does not, there is no connection. */
static int frame_send(struct soft_chan *chan, const struct mpa_frame *frame)
{
	uint8_t bytes[MPA_FRAME_MAX];
	const size_t len = mpa_frame_put(bytes, frame);
	ssize_t n = send(chan->fd, bytes, len, MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -ECONNRESET;
}

static void local_note(struct soft_chan *chan)
{
	socklen_t len = sizeof(chan->local);

	pthread_mutex_lock(&chan->lock);
	if (getsockname(chan->fd, &chan->local.sa, &len) < 0)
		chan->local.sa.sa_family = AF_UNSPEC;
	pthread_mutex_unlock(&chan->lock);
}

/* The exchange is done: from here on FPDUs. */
static void chan_begin(struct soft_chan *chan, bool initiator)
{
	struct soft_event *event = &chan->events[0];

	chan->rx.pos = chan->rx.end = 0;
	chan->rx.send_msn = chan->rx.read_msn = 1;
	chan->tx.at.send_msn = chan->tx.at.read_msn = 1;
	chan->tx.allowed = initiator;
	chan->rx.heard = !initiator;
	chan->rx.need = MPA_LENGTH_BYTES + DDP_TAGGED_BYTES;
	chan->phase = SOFT_PHASE_STREAM;
	soft_chan_move(chan, &chan->thread->others);
	pthread_mutex_lock(&chan->lock);
	chan->base.caps.has_read = chan->ord > 0;
	chan->base.rtt_ns = soft_rtt_ns(chan->fd);
	chan->base.local_port = addr_port(&chan->local.sa);
	chan->open = true;
	pthread_mutex_unlock(&chan->lock);
	event->type = FABRIC_EVENT_CONNECTED;
	event->error = 0;
	event->listener = NULL;
	soft_eq_push(chan->eq, event);
	soft_thread_run_soon(chan->thread, chan);
}

static uint16_t depth_min(unsigned a, unsigned b)
{
	return (uint16_t)(a < b ? a : b);
}

/* ---- the connecting side ---- */

static void connect_start(struct soft_chan *chan)
{
	const struct sockaddr *dst = (const struct sockaddr *)&chan->base.peer;
	int err = 0;

	soft_socket_tune(chan->fd);
	chan->phase = SOFT_PHASE_TCP;
	chan->deadline_ns = handshake_deadline(chan->soft);
	soft_chan_move(chan, &chan->thread->connecting);
	if (connect(chan->fd, dst, soft_addr_bytes(dst)) < 0 && errno != EINPROGRESS)
		err = -errno;
	if (!err)
		err = soft_thread_watch(chan->thread, chan->fd, STREAM_EVENTS, &chan->source);
	if (err)
		soft_chan_break(chan, err, FABRIC_FLUSHED);
}

static void connect_request(struct soft_chan *chan)
{
	const struct soft_config *config = &chan->soft->config;
	const struct mpa_frame request = {
		.kind = MPA_REQUEST,
		.revision = config->revision1 ? 1 : 2,
		.enhanced = !config->revision1,
		.crc = config->crc,
		.ird = SOFT_READS_MAX,
		.ord = SOFT_READS_MAX,
		.priv = chan->priv,
		.priv_len = chan->priv_len,
	};
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(chan->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (!error && !chan->tx.ready)
		return; /* not yet connected */
	if (!error)
		error = -frame_send(chan, &request);
	if (error) {
		soft_chan_break(chan, -error, FABRIC_FLUSHED);
		return;
	}
	local_note(chan);
	chan->phase = SOFT_PHASE_READ_REPLY;
}

static void priv_note(struct soft_chan *chan, const struct mpa_frame *frame)
{
	if (frame->priv_len)
		memcpy(chan->priv, frame->priv, frame->priv_len);
	chan->priv_len = (uint8_t)frame->priv_len;
}

static void connect_rejected(struct soft_chan *chan, const struct mpa_frame *reply)
{
	struct soft_event *event = &chan->events[0];

	priv_note(chan, reply);
	/* One event only: this one, not FAILED. */
	pthread_mutex_lock(&chan->lock);
	chan->started = false;
	pthread_mutex_unlock(&chan->lock);
	soft_chan_break(chan, -ECONNREFUSED, FABRIC_FLUSHED);
	event->type = FABRIC_EVENT_REJECTED;
	event->error = -ECONNREFUSED;
	event->listener = NULL;
	soft_eq_push(chan->eq, event);
}

static void connect_reply(struct soft_chan *chan)
{
	struct mpa_frame reply;
	int err = frame_read(chan, MPA_REPLY, &reply);

	if (!err)
		return;
	if (err < 0) {
		soft_chan_break(chan, err, FABRIC_FLUSHED);
		return;
	}
	if (reply.priv_len > FABRIC_PRIVATE_MAX || reply.revision < 1 || reply.revision > 2) {
		soft_chan_break(chan, -EPROTO, FABRIC_FLUSHED);
		return;
	}
	if (reply.reject) {
		connect_rejected(chan, &reply);
		return;
	}
	if (reply.markers) {
		log_debug("soft: the peer demands markers");
		soft_chan_break(chan, -EPROTO, FABRIC_FLUSHED);
		return;
	}
	if (reply.enhanced && !chan->soft->config.revision1) {
		if (reply.ord > SOFT_READS_MAX) {
			log_debug("soft: the peer wants %u reads at once", reply.ord);
			soft_chan_break(chan, -EPROTO, FABRIC_FLUSHED);
			return;
		}
		chan->ird = reply.ord;
		chan->ord = depth_min(reply.ird, SOFT_READS_MAX);
	}
	pthread_mutex_lock(&chan->lock);
	chan->crc = reply.crc || chan->soft->config.crc;
	pthread_mutex_unlock(&chan->lock);
	priv_note(chan, &reply);
	chan_begin(chan, true);
}

/* ---- the accepting side ---- */

void soft_cm_drop_half_open(struct soft_thread *thread, const char *why)
{
	struct soft_chan *chan = TAILQ_FIRST(&thread->half_open);
	char text[ADDR_TEXT_MAX];

	addr_format((const struct sockaddr *)&chan->base.peer, text);
	log_debug("soft: %s dropped before its MPA request: %s", text, why);
	soft_chan_dispose(chan);
}

static void accept_adopt(struct soft_chan *chan)
{
	struct soft_thread *thread = chan->thread;

	chan->phase = SOFT_PHASE_READ_REQUEST;
	chan->deadline_ns = handshake_deadline(chan->soft);
	if (thread->half_open_count >= chan->soft->half_open_max)
		soft_cm_drop_half_open(thread, "too many at once");
	soft_chan_move(chan, &thread->half_open);
	if (soft_thread_watch(thread, chan->fd, STREAM_EVENTS, &chan->source) < 0)
		soft_chan_dispose(chan);
}

static void accept_drop(struct soft_chan *chan, const char *why)
{
	char text[ADDR_TEXT_MAX];

	addr_format((const struct sockaddr *)&chan->base.peer, text);
	log_debug("soft: %s dropped: %s", text, why);
	soft_chan_dispose(chan);
}

/* Why the request cannot be answered with an accept, whatever the user thinks; NULL: it can. */
static const char *request_refusal(const struct mpa_frame *request)
{
	if (request->revision < 1 || request->revision > 2)
		return "unknown MPA revision";
	if (request->markers)
		return "it demands markers";
	if (request->priv_len > FABRIC_PRIVATE_MAX)
		return "too much private data";
	return NULL;
}

static void request_note(struct soft_chan *chan, const struct mpa_frame *request)
{
	chan->revision = request->revision == 1 ? 1 : 2;
	chan->enhanced = request->enhanced;
	chan->crc = request->crc || chan->soft->config.crc;
	if (!request->enhanced)
		return;
	chan->ird = depth_min(request->ord, SOFT_READS_MAX);
	chan->ord = depth_min(request->ird, SOFT_READS_MAX);
	/* Of the messages by which an initiator shows that it is ready, a write costs least. */
	chan->peer_to_peer = request->peer_to_peer;
	chan->rtr_read = request->peer_to_peer && request->rtr_read && !request->rtr_write;
	chan->rtr_write = request->peer_to_peer && !chan->rtr_read;
}

static void accept_request(struct soft_chan *chan)
{
	struct soft_listener *listener = chan->listener;
	struct soft_event *event = &chan->events[0];
	struct mpa_frame request;
	const char *refusal;
	int err = frame_read(chan, MPA_REQUEST, &request);

	if (!err)
		return;
	if (err < 0) {
		accept_drop(
			chan, err == -EPROTO ? "no MPA request" : "closed before its MPA request");
		return;
	}
	request_note(chan, &request);
	refusal = request_refusal(&request);
	if (refusal) {
		log_debug("soft: MPA request refused: %s", refusal);
		soft_cm_reject(chan, NULL, 0);
		return;
	}
	priv_note(chan, &request);
	local_note(chan);
	/* The user may find it, and free it, as soon as it is in the queue: leave it alone then. */
	chan->phase = SOFT_PHASE_HELD;
	chan->orphan = false;
	soft_chan_move(chan, &chan->thread->others);
	event->type = FABRIC_EVENT_REQUEST;
	event->error = 0;
	event->listener = &listener->base;
	chan->listener = NULL;
	pthread_mutex_lock(&listener->lock);
	if (!listener->closed) {
		chan->eq = listener->eq;
		soft_eq_push(listener->eq, event);
		chan = NULL;
	}
	pthread_mutex_unlock(&listener->lock);
	soft_listener_put(listener);
	if (chan)
		accept_drop(chan, "nobody listens any more");
}

static struct mpa_frame reply_make(const struct soft_chan *chan, const void *priv, size_t priv_len)
{
	return (struct mpa_frame){
		.kind = MPA_REPLY,
		.revision = chan->revision,
		.crc = chan->crc,
		.enhanced = chan->enhanced,
		.ird = chan->ird,
		.ord = chan->ord,
		.peer_to_peer = chan->peer_to_peer,
		.rtr_write = chan->rtr_write,
		.rtr_read = chan->rtr_read,
		.priv = priv,
		.priv_len = priv_len,
	};
}

static void accept_reply(struct soft_chan *chan)
{
	const struct mpa_frame reply = reply_make(chan, chan->priv, chan->priv_len);
	int err = chan->phase == SOFT_PHASE_HELD ? frame_send(chan, &reply) : -ECONNRESET;

	if (err) {
		soft_chan_break(chan, err, FABRIC_FLUSHED);
		return;
	}
	chan->priv_len = 0; /* the event of this side has none */
	chan_begin(chan, false);
}

void soft_cm_reject(struct soft_chan *chan, const void *priv, size_t priv_len)
{
	struct mpa_frame reply = reply_make(chan, priv, priv_len);

	chan->orphan = true;
	/* The peer closes first, or the time is over: siw does not look at a reply with a FIN
	 * behind it. */
	chan->tx.shut = true;
	reply.reject = true;
	if ((chan->phase != SOFT_PHASE_HELD && chan->phase != SOFT_PHASE_READ_REQUEST) ||
		frame_send(chan, &reply) < 0)
		soft_chan_dispose(chan);
	else
		soft_chan_linger(chan);
}

/* ---- turns and timers ---- */

void soft_cm_commands(struct soft_chan *chan, unsigned commands)
{
	if (commands & SOFT_COMMAND_ADOPT)
		accept_adopt(chan);
	if (commands & SOFT_COMMAND_CONNECT)
		connect_start(chan);
	if (commands & SOFT_COMMAND_ACCEPT)
		accept_reply(chan);
}

void soft_cm_turn(struct soft_chan *chan)
{
	if (chan->phase == SOFT_PHASE_TCP)
		connect_request(chan);
	if (chan->phase == SOFT_PHASE_READ_REPLY)
		connect_reply(chan);
	else if (chan->phase == SOFT_PHASE_READ_REQUEST)
		accept_request(chan);
}

/* Channels on it come and go with different deadlines, but are few, and none for long. */
static void nudge_late(struct soft_thread *thread, uint64_t now, uint64_t *next)
{
	struct soft_chan *chan, *after;

	for (chan = TAILQ_FIRST(&thread->unheard); chan; chan = after) {
		after = TAILQ_NEXT(chan, list_link);
		if (chan->deadline_ns <= now) {
			soft_tx_nudge(chan);
			*next = now; /* it wants a turn */
		} else if (chan->deadline_ns < *next) {
			*next = chan->deadline_ns;
		}
	}
}

/* The first of a list, if its time is over; else when that will be. */
static struct soft_chan *list_late(struct soft_chan_list *list, uint64_t now, uint64_t *next)
{
	struct soft_chan *chan = TAILQ_FIRST(list);

	if (!chan || chan->deadline_ns <= now)
		return chan;
	if (chan->deadline_ns < *next)
		*next = chan->deadline_ns;
	return NULL;
}

int soft_cm_timers(struct soft_thread *thread)
{
	uint64_t now, next = UINT64_MAX;
	struct soft_chan *chan;

	if (TAILQ_EMPTY(&thread->half_open) && TAILQ_EMPTY(&thread->connecting) &&
		TAILQ_EMPTY(&thread->linger) && TAILQ_EMPTY(&thread->unheard) &&
		LIST_EMPTY(&thread->paused))
		return -1;
	now = clock_now_ns();
	while ((chan = list_late(&thread->half_open, now, &next)))
		accept_drop(chan, "no MPA request in time");
	while ((chan = list_late(&thread->connecting, now, &next)))
		soft_chan_break(chan, -ETIMEDOUT, FABRIC_FLUSHED);
	while ((chan = list_late(&thread->linger, now, &next)))
		soft_chan_linger_end(chan);
	nudge_late(thread, now, &next);
	soft_listeners_resume(thread, now);
	if (!LIST_EMPTY(&thread->paused) && thread->resume_ns < next)
		next = thread->resume_ns;
	return next == UINT64_MAX ? -1 : clock_until_ms(next);
}
