/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_cm: connections: what both sides of the MPA exchange share, and
 * its deadlines; soft_cm_connect and soft_cm_accept are the two sides.  All on progress threads and
 * non-blocking, so that peers who say nothing cost a descriptor until their deadline and nothing
 * else.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "base/addr.h"
#include "base/log.h"
#include "fabric/soft/soft_cm_impl.h"

#define KEEPALIVE_IDLE_S 15
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT 3
#define FRAME_BYTES (MPA_FRAME_FIXED_BYTES + MPA_ENHANCED_BYTES + FABRIC_PRIVATE_MAX)

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

uint64_t soft_cm_deadline(const struct soft *soft)
{
	return clock_now_ns() + soft->config.handshake_ms * NS_PER_MS;
}

int soft_cm_watch(struct soft_chan *chan)
{
	return soft_thread_watch(
		chan->thread, chan->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &chan->source);
}

/* ---- the MPA exchange ---- */

int soft_cm_read_frame(struct soft_chan *chan, enum mpa_kind kind, struct mpa_frame *frame)
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

int soft_cm_send_frame(struct soft_chan *chan, const struct mpa_frame *frame)
{
	uint8_t bytes[MPA_FRAME_MAX];
	const size_t len = mpa_frame_put(bytes, frame);
	ssize_t n = send(chan->fd, bytes, len, MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -ECONNRESET;
}

void soft_cm_note_local(struct soft_chan *chan)
{
	socklen_t len = sizeof(chan->local);

	pthread_mutex_lock(&chan->lock);
	if (getsockname(chan->fd, &chan->local.sa, &len) < 0)
		chan->local.sa.sa_family = AF_UNSPEC;
	pthread_mutex_unlock(&chan->lock);
}

void soft_cm_agree_on_reads(struct soft_chan *chan)
{
	chan->base.caps.has_read = chan->ord > 0;
	chan->base.caps.max_reads = chan->ord;
}

void soft_cm_begin(struct soft_chan *chan, bool initiator)
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

void soft_cm_note_private(struct soft_chan *chan, const struct mpa_frame *frame)
{
	if (frame->priv_len)
		memcpy(chan->priv, frame->priv, frame->priv_len);
	chan->priv_len = (uint8_t)frame->priv_len;
}

/* ---- turns and timers ---- */

void soft_cm_commands(struct soft_chan *chan, unsigned commands)
{
	if (commands & SOFT_COMMAND_ADOPT)
		soft_cm_adopt(chan);
	if (commands & SOFT_COMMAND_CONNECT)
		soft_cm_connect(chan);
	if (commands & SOFT_COMMAND_ACCEPT)
		soft_cm_accept(chan);
}

void soft_cm_turn(struct soft_chan *chan)
{
	if (chan->phase == SOFT_PHASE_TCP)
		soft_cm_send_request(chan);
	if (chan->phase == SOFT_PHASE_READ_REPLY)
		soft_cm_take_reply(chan);
	else if (chan->phase == SOFT_PHASE_READ_REQUEST)
		soft_cm_take_request(chan);
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
		soft_cm_drop(chan, "no MPA request in time");
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
