/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/loop/loop_conn: connection events and the life of a channel in the loop fabric: how two
 * sides agree, close and break.
 */
#include "fabric/loop/loop_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/addr.h"

static const struct fabric_caps loop_caps = {
	.inline_max = LOOP_INLINE_MAX,
	.max_depth = 16384,
	.max_message_bytes = 1u << 30,
	.max_channels = 256,
	.has_imm = true,
	.has_read = true,
	.max_reads = 16,
	.read_rights = true,
	.read_in_order = true,
	.write_ordered = true,
	.write_delivered = true,
};

/* ---- events ---- */

int loop_eq_new(struct fabric *fabric, struct fabric_eq **out)
{
	struct loop_eq *eq = calloc(1, sizeof *eq);
	int err;

	if (!eq)
		return -ENOMEM;
	eq->base.fabric = fabric;
	TAILQ_INIT(&eq->events);
	eq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (eq->fd < 0) {
		err = -errno;
		free(eq);
		return err;
	}
	*out = &eq->base;
	return 0;
}

void loop_eq_free(struct fabric_eq *base)
{
	struct loop_eq *eq = (struct loop_eq *)base;

	assert(TAILQ_EMPTY(&eq->events)); /* its channels and listeners go first */
	close(eq->fd);
	free(eq);
}

int loop_eq_fd(const struct fabric_eq *base)
{
	return ((const struct loop_eq *)base)->fd;
}

static void event_put(struct loop_chan *chan, struct loop_event *event, enum fabric_event_type type,
	int error, const void *priv, size_t priv_len)
{
	struct loop_eq *eq = chan->eq;

	assert(!event->queued);
	memset(&event->ev, 0, sizeof event->ev);
	event->ev.type = type;
	event->ev.chan = &chan->base;
	event->ev.error = error;
	if (priv_len)
		memcpy(event->ev.priv, priv, priv_len);
	event->ev.priv_len = priv_len;
	if (chan->listener && type == FABRIC_EVENT_REQUEST)
		event->ev.listener = &chan->listener->base;
	if (TAILQ_EMPTY(&eq->events))
		loop_fd_raise(eq->fd);
	TAILQ_INSERT_TAIL(&eq->events, event, link);
	event->queued = true;
}

static void event_drop(struct loop_chan *chan, struct loop_event *event)
{
	struct loop_eq *eq = chan->eq;

	if (!event->queued)
		return;
	TAILQ_REMOVE(&eq->events, event, link);
	event->queued = false;
	if (TAILQ_EMPTY(&eq->events))
		loop_fd_clear(eq->fd);
}

int loop_eq_get(struct fabric_eq *base, struct fabric_event *ev)
{
	struct loop_eq *eq = (struct loop_eq *)base;
	struct loop *loop = LOOP_OF(eq);
	struct loop_event *event;

	pthread_mutex_lock(&loop->lock);
	event = TAILQ_FIRST(&eq->events);
	if (event) {
		struct loop_chan *chan = (struct loop_chan *)event->ev.chan;

		*ev = event->ev;
		ev->owner = chan->base.owner;
		event_drop(chan, event);
		if (ev->type == FABRIC_EVENT_REQUEST)
			chan->listener = NULL; /* the caller's from now on */
	}
	pthread_mutex_unlock(&loop->lock);
	return event != NULL;
}

/* ---- the life of a channel; all of these with the lock held ---- */

static struct loop_chan *chan_new(struct loop *loop, struct loop_eq *eq, enum loop_state state)
{
	struct loop_chan *chan = calloc(1, sizeof *chan);

	if (!chan)
		return NULL;
	chan->base.fabric = &loop->base;
	chan->base.caps = loop_caps;
	chan->base.caps.has_imm = !loop->faults.no_imm;
	chan->base.caps.has_read = !loop->faults.no_read;
	if (loop->faults.no_read)
		chan->base.caps.max_reads = 0;
	chan->eq = eq;
	chan->state = state;
	LIST_INSERT_HEAD(&loop->chans, chan, link);
	return chan;
}

/* Two sides that know each other no more. */
static void chan_part(struct loop_chan *chan)
{
	if (chan->peer)
		chan->peer->peer = NULL;
	chan->peer = NULL;
}

/* The set-up of a dialled or requested channel came to nothing. */
static void chan_fail(struct loop_chan *chan, enum fabric_event_type type, int error,
	const void *priv, size_t priv_len)
{
	chan->state = LOOP_ENDED;
	if (chan->is_setup)
		loop_execute_flush(chan);
	event_put(chan, &chan->outcome, type, error, priv, priv_len);
}

static void chan_finish_end(struct loop_chan *chan)
{
	chan->ending = false;
	loop_execute_flush(chan);
	event_put(chan, &chan->disconnected, FABRIC_EVENT_DISCONNECTED, chan->end_error, NULL, 0);
}

void loop_chan_end(struct loop_chan *chan, int error)
{
	if (chan->state != LOOP_CONNECTED && chan->state != LOOP_CLOSING)
		return;
	chan->state = LOOP_ENDED;
	chan->end_error = error;
	loop_wire_idle(chan);
	if (chan->pins)
		chan->ending = true;
	else
		chan_finish_end(chan);
}

void loop_chan_end_both(struct loop_chan *chan, int error, int peer_error)
{
	loop_chan_end(chan, error);
	if (chan->peer)
		loop_chan_end(chan->peer, peer_error);
}

void loop_chan_unpin(struct loop_chan *chan)
{
	if (!--chan->pins && chan->ending)
		chan_finish_end(chan);
}

void loop_chan_close_if_drained(struct loop_chan *chan)
{
	const struct loop_chan *peer = chan->peer;
	bool closing = chan->state == LOOP_CLOSING,
	     peer_closing = peer && peer->state == LOOP_CLOSING;

	if (!closing && !peer_closing)
		return;
	if ((closing && chan->send_count) || (peer_closing && peer->send_count))
		return;
	loop_chan_end_both(chan, 0, 0);
}

void loop_chan_destroy(struct loop_chan *chan)
{
	struct loop *loop = LOOP_OF(chan);

	loop_chan_end_both(chan, -ECONNRESET, -ECONNRESET);
	while (chan->pins)
		pthread_cond_wait(&loop->unpinned, &loop->lock);
	if (chan->peer && chan->peer->state == LOOP_CONNECTING)
		chan_fail(chan->peer, FABRIC_EVENT_FAILED, -ECONNREFUSED, NULL, 0);
	chan_part(chan);
	event_drop(chan, &chan->request);
	event_drop(chan, &chan->outcome);
	event_drop(chan, &chan->disconnected);
	if (chan->cq) {
		loop_cq_forget(chan->cq, chan);
		chan->cq->reserved -= chan->send_depth + chan->recv_depth;
	}
	LIST_REMOVE(chan, link);
	free(chan->sends);
	free(chan->inline_bytes);
	free(chan->recvs);
	free(chan);
}

/* ---- the calls ---- */

int loop_dial(struct fabric_eq *base, const struct sockaddr *dst, const struct sockaddr *src,
	int timeout_ms, struct fabric_chan **out)
{
	struct loop_eq *eq = (struct loop_eq *)base;
	struct loop *loop = LOOP_OF(eq);
	struct loop_chan *chan;

	(void)timeout_ms; /* there is nothing to resolve */
	pthread_mutex_lock(&loop->lock);
	chan = chan_new(loop, eq, LOOP_NEW);
	if (chan) {
		chan->number = loop->next_chan++;
		loop_addr_copy(&chan->base.peer, dst);
		loop_addr_copy(&chan->self, src ? src : dst);
		if (!src || !addr_port(src))
			loop_addr_next_port(loop, &chan->self);
		*out = &chan->base;
	}
	pthread_mutex_unlock(&loop->lock);
	return chan ? 0 : -ENOMEM;
}

int loop_chan_setup(struct fabric_chan *base, const struct fabric_chan_attr *attr)
{
	struct loop_chan *chan = (struct loop_chan *)base;
	struct loop *loop = LOOP_OF(chan);
	struct loop_cq *cq = (struct loop_cq *)attr->cq;
	uint64_t room = (uint64_t)attr->send_depth + attr->recv_depth;
	uint32_t inline_max =
		attr->inline_bytes < LOOP_INLINE_MAX ? attr->inline_bytes : LOOP_INLINE_MAX;
	struct loop_request *sends = malloc(attr->send_depth * sizeof *sends);
	struct loop_recv *recvs = malloc(attr->recv_depth * sizeof *recvs);
	uint8_t *inline_bytes = malloc((size_t)attr->send_depth * inline_max + 1);
	int err = 0;

	pthread_mutex_lock(&loop->lock);
	if (!sends || !recvs || !inline_bytes)
		err = -ENOMEM;
	else if (chan->is_setup || room > cq->depth - cq->reserved)
		err = -EINVAL;
	if (err)
		goto out;
	cq->reserved += (uint32_t)room;
	chan->cq = cq;
	chan->pd = ((struct loop_pd *)attr->pd)->id;
	chan->sends = sends;
	chan->send_depth = attr->send_depth;
	chan->recvs = recvs;
	chan->recv_depth = attr->recv_depth;
	chan->inline_bytes = inline_bytes;
	chan->base.caps.inline_max = inline_max;
	chan->base.context = attr->context;
	chan->is_setup = true;
	sends = NULL;
	recvs = NULL;
	inline_bytes = NULL;
out:
	pthread_mutex_unlock(&loop->lock);
	free(sends);
	free(recvs);
	free(inline_bytes);
	return err;
}

int loop_chan_connect(struct fabric_chan *base, const void *priv, size_t priv_len)
{
	struct loop_chan *chan = (struct loop_chan *)base, *peer;
	struct loop *loop = LOOP_OF(chan);
	struct loop_listener *listener;
	int err = 0;

	pthread_mutex_lock(&loop->lock);
	if (!chan->is_setup || chan->state != LOOP_NEW) {
		err = -EINVAL;
		goto out;
	}
	listener = loop_listener_find(loop, &chan->base.peer);
	if (!listener) {
		chan_fail(chan, FABRIC_EVENT_FAILED, -ECONNREFUSED, NULL, 0);
		goto out;
	}
	peer = chan_new(loop, listener->eq, LOOP_REQUESTED);
	if (!peer) {
		err = -ENOMEM;
		goto out;
	}
	peer->acceptor = true;
	peer->number = chan->number;
	peer->listener = listener;
	peer->base.peer = chan->self;
	peer->self = listener->addr;
	peer->peer = chan;
	chan->peer = peer;
	chan->state = LOOP_CONNECTING;
	event_put(peer, &peer->request, FABRIC_EVENT_REQUEST, 0, priv, priv_len);
out:
	pthread_mutex_unlock(&loop->lock);
	return err;
}

int loop_chan_accept(struct fabric_chan *base, const void *priv, size_t priv_len)
{
	struct loop_chan *chan = (struct loop_chan *)base;
	struct loop *loop = LOOP_OF(chan);
	int err = 0;

	pthread_mutex_lock(&loop->lock);
	if (!chan->is_setup || chan->state != LOOP_REQUESTED) {
		err = -EINVAL;
	} else if (!chan->peer) {
		chan_fail(chan, FABRIC_EVENT_FAILED, -ECONNRESET, NULL, 0);
	} else {
		chan->state = LOOP_CONNECTED;
		chan->peer->state = LOOP_CONNECTED;
		event_put(chan, &chan->outcome, FABRIC_EVENT_CONNECTED, 0, NULL, 0);
		event_put(chan->peer, &chan->peer->outcome, FABRIC_EVENT_CONNECTED, 0, priv,
			priv_len);
	}
	pthread_mutex_unlock(&loop->lock);
	return err;
}

int loop_chan_reject(struct fabric_chan *base, const void *priv, size_t priv_len)
{
	struct loop_chan *chan = (struct loop_chan *)base;
	struct loop *loop = LOOP_OF(chan);
	int err = 0;

	pthread_mutex_lock(&loop->lock);
	if (chan->state != LOOP_REQUESTED) {
		err = -EINVAL;
	} else {
		if (chan->peer)
			chan_fail(chan->peer, FABRIC_EVENT_REJECTED, 0, priv, priv_len);
		chan_part(chan);
		loop_chan_destroy(chan);
	}
	pthread_mutex_unlock(&loop->lock);
	return err;
}

void loop_chan_disconnect(struct fabric_chan *base)
{
	struct loop_chan *chan = (struct loop_chan *)base;
	struct loop *loop = LOOP_OF(chan);

	pthread_mutex_lock(&loop->lock);
	if (chan->state == LOOP_CONNECTED) {
		chan->state = LOOP_CLOSING;
		loop_chan_close_if_drained(chan);
	}
	pthread_mutex_unlock(&loop->lock);
}

void loop_chan_free(struct fabric_chan *base)
{
	struct loop *loop = LOOP_OF((struct loop_chan *)base);

	if (loop->faults.freeing)
		loop->faults.freeing(loop->faults.freeing_ctx);
	pthread_mutex_lock(&loop->lock);
	loop_chan_destroy((struct loop_chan *)base);
	pthread_mutex_unlock(&loop->lock);
}

void loop_chan_describe(const struct fabric_chan *base, char *out, size_t size)
{
	const struct loop_chan *chan = (const struct loop_chan *)base;
	char self[ADDR_TEXT_MAX], peer[ADDR_TEXT_MAX];

	addr_format((const struct sockaddr *)&chan->self, self);
	addr_format((const struct sockaddr *)&base->peer, peer);
	snprintf(out, size, "loop channel %u, %s %s %s", chan->number, self,
		chan->acceptor ? "<" : ">", peer);
}
