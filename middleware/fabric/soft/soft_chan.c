/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_chan: the life of a channel of the soft fabric: its rings, posting, its turns on
 * the progress thread, freeing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/addr.h"
#include "fabric/soft/soft_impl.h"

#define MAX_CHANNELS_HINT 64u

/* ---- the user's side ---- */

int soft_chan_new(struct soft *soft, struct soft_chan **out)
{
	struct soft_chan *chan = calloc(1, sizeof(*chan));

	if (!chan)
		return -ENOMEM;
	chan->base.fabric = &soft->base;
	chan->base.caps = (struct fabric_caps){
		.inline_max = SOFT_INLINE_MAX,
		.max_depth = SOFT_DEPTH_MAX,
		.max_message_bytes = SOFT_MESSAGE_MAX,
		.max_channels = MAX_CHANNELS_HINT,
		.has_imm = false,
		.has_read = !soft->config.revision1,
		.read_rights = true,
		.read_in_order = true,
		.write_ordered = true,
	};
	chan->soft = soft;
	chan->thread = &soft->threads[atomic_fetch_add(&soft->turn, 1) % soft->thread_count];
	chan->source.ready = soft_chan_ready;
	chan->fd = -1;
	chan->events[0].chan = chan;
	chan->events[1].chan = chan;
	pthread_mutex_init(&chan->lock, NULL);
	*out = chan;
	return 0;
}

static uint32_t ring_size(uint32_t depth)
{
	uint32_t size = 1;

	while (size < depth)
		size *= 2;
	return size;
}

int soft_chan_setup(struct fabric_chan *fabric_chan, const struct fabric_chan_attr *attr)
{
	struct soft_chan *chan = soft_chan_of(fabric_chan);
	struct soft_cq *cq = (struct soft_cq *)attr->cq;
	const uint32_t sends = ring_size(attr->send_depth), recvs = ring_size(attr->recv_depth);
	uint32_t inline_bytes = attr->inline_bytes;
	int err = -ENOMEM;

	if (chan->cq || chan->started)
		return -EINVAL;
	if (inline_bytes > SOFT_INLINE_MAX)
		inline_bytes = SOFT_INLINE_MAX;
	chan->sends = calloc(sends, sizeof(chan->sends[0]));
	chan->recvs = calloc(recvs, sizeof(chan->recvs[0]));
	chan->inlined = inline_bytes ? malloc((size_t)sends * inline_bytes) : NULL;
	if (!chan->sends || !chan->recvs || (inline_bytes && !chan->inlined))
		goto err_rings;
	err = soft_cq_reserve(cq, attr->send_depth + attr->recv_depth);
	if (err)
		goto err_rings;
	chan->send_depth = attr->send_depth;
	chan->recv_depth = attr->recv_depth;
	chan->send_mask = sends - 1;
	chan->recv_mask = recvs - 1;
	chan->base.caps.inline_max = inline_bytes;
	chan->base.context = attr->context;
	chan->cq = cq;
	chan->pd = (struct soft_pd *)attr->pd;
	atomic_fetch_add(&chan->pd->refs, 1);
	return 0;

err_rings:
	free(chan->inlined);
	free(chan->recvs);
	free(chan->sends);
	chan->inlined = NULL;
	chan->recvs = NULL;
	chan->sends = NULL;
	return err;
}

static int chan_start(struct soft_chan *chan, unsigned command, const void *priv, size_t priv_len)
{
	int err = 0;

	pthread_mutex_lock(&chan->lock);
	if (!chan->cq || chan->started) {
		err = -EINVAL;
	} else {
		chan->started = true;
		chan->commands |= command;
		if (priv_len)
			memcpy(chan->priv, priv, priv_len);
		chan->priv_len = (uint8_t)priv_len;
	}
	pthread_mutex_unlock(&chan->lock);
	if (!err)
		soft_chan_kick(chan);
	return err;
}

int soft_chan_connect(struct fabric_chan *chan, const void *priv, size_t priv_len)
{
	return chan_start(soft_chan_of(chan), SOFT_COMMAND_CONNECT, priv, priv_len);
}

int soft_chan_accept(struct fabric_chan *chan, const void *priv, size_t priv_len)
{
	return chan_start(soft_chan_of(chan), SOFT_COMMAND_ACCEPT, priv, priv_len);
}

void soft_chan_disconnect(struct fabric_chan *fabric_chan)
{
	struct soft_chan *chan = soft_chan_of(fabric_chan);

	pthread_mutex_lock(&chan->lock);
	chan->closing = true;
	chan->commands |= SOFT_COMMAND_DISCONNECT;
	pthread_mutex_unlock(&chan->lock);
	soft_chan_kick(chan);
}

static void send_fill(struct soft_chan *chan, uint32_t at, const struct fabric_wr *wr)
{
	struct soft_send *send = &chan->sends[at & chan->send_mask];

	send->id = wr->id;
	send->remote_addr = wr->remote_addr;
	send->remote_key = wr->remote_key;
	send->opcode = (uint8_t)wr->opcode;
	send->signalled = wr->flags & FABRIC_SIGNALED;
	send->done = false;
	send->bytes = 0;
	if (wr->flags & FABRIC_INLINE) {
		uint8_t *to =
			chan->inlined + (size_t)(at & chan->send_mask) * chan->base.caps.inline_max;

		for (unsigned i = 0; i < wr->sge_count; i++) {
			if (wr->sge[i].bytes)
				memcpy(to + send->bytes, wr->sge[i].addr, wr->sge[i].bytes);
			send->bytes += wr->sge[i].bytes;
		}
		send->sge[0] = (struct soft_sge){to, send->bytes, SOFT_KEY_NONE};
		send->sge_count = 1;
		return;
	}
	send->sge_count = 0;
	for (unsigned i = 0; i < wr->sge_count; i++) {
		if (!wr->sge[i].bytes)
			continue;
		send->sge[send->sge_count++] =
			(struct soft_sge){wr->sge[i].addr, wr->sge[i].bytes, wr->sge[i].mr->key};
		send->bytes += wr->sge[i].bytes;
	}
}

int soft_chan_post_send(struct fabric_chan *fabric_chan, const struct fabric_wr *list)
{
	struct soft_chan *chan = soft_chan_of(fabric_chan);
	uint32_t count = 0;
	int err = 0;

	for (const struct fabric_wr *wr = list; wr; wr = wr->next)
		count++;
	pthread_mutex_lock(&chan->lock);
	if (!chan->open || chan->closing) {
		err = -ENOTCONN;
	} else if (count > chan->send_depth -
				   atomic_load_explicit(&chan->send_used, memory_order_acquire)) {
		err = -ENOMEM;
	} else {
		for (const struct fabric_wr *wr = list; wr; wr = wr->next)
			send_fill(chan, chan->send_tail++, wr);
		atomic_fetch_add_explicit(&chan->send_used, count, memory_order_relaxed);
	}
	pthread_mutex_unlock(&chan->lock);
	if (!err)
		soft_chan_kick(chan);
	return err;
}

int soft_chan_post_recv(struct fabric_chan *fabric_chan, uint64_t id, void *addr, uint32_t bytes,
	struct fabric_mr *mr)
{
	struct soft_chan *chan = soft_chan_of(fabric_chan);
	int err = 0;

	if (!chan->cq)
		return -ENOTCONN;
	pthread_mutex_lock(&chan->lock);
	if (chan->broken) {
		err = -ENOTCONN;
	} else if (atomic_load_explicit(&chan->recv_used, memory_order_acquire) >=
		   chan->recv_depth) {
		err = -ENOMEM;
	} else {
		chan->recvs[chan->recv_tail++ & chan->recv_mask] = (struct soft_recv){.id = id,
			.addr = addr,
			.bytes = bytes,
			.key = mr ? mr->key : SOFT_KEY_NONE};
		atomic_fetch_add_explicit(&chan->recv_used, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&chan->lock);
	return err;
}

void soft_chan_describe(const struct fabric_chan *fabric_chan, char *out, size_t size)
{
	struct soft_chan *chan = soft_chan_of(fabric_chan);
	char local[ADDR_TEXT_MAX] = "?", peer[ADDR_TEXT_MAX];

	addr_format((const struct sockaddr *)&chan->base.peer, peer);
	pthread_mutex_lock(&chan->lock);
	if (chan->local.sa.sa_family != AF_UNSPEC)
		addr_format(&chan->local.sa, local);
	snprintf(out, size, "tcp %s > %s, crc %s", local, peer, chan->crc ? "on" : "off");
	pthread_mutex_unlock(&chan->lock);
}

/* ---- freeing ---- */

void soft_chan_move(struct soft_chan *chan, struct soft_chan_list *list)
{
	if (chan->list)
		TAILQ_REMOVE(chan->list, chan, list_link);
	if (chan->list == &chan->thread->half_open)
		chan->thread->half_open_count--;
	if (list)
		TAILQ_INSERT_TAIL(list, chan, list_link);
	if (list == &chan->thread->half_open)
		chan->thread->half_open_count++;
	chan->list = list;
}

void soft_chan_close_socket(struct soft_chan *chan)
{
	if (chan->fd >= 0)
		close(chan->fd); /* leaves the epoll set by itself */
	chan->fd = -1;
	chan->phase = SOFT_PHASE_DEAD;
	chan->rx.ready = false;
	chan->tx.ready = false;
}

void soft_chan_dispose(struct soft_chan *chan)
{
	struct soft_thread *thread = chan->thread;

	soft_chan_close_socket(chan);
	if (chan->running)
		TAILQ_REMOVE(&thread->run, chan, run_link);
	chan->running = false;
	pthread_mutex_lock(&thread->lock);
	if (atomic_exchange(&chan->kicked, false))
		TAILQ_REMOVE(&thread->kicked, chan, kick_link);
	pthread_mutex_unlock(&thread->lock);
	soft_chan_move(chan, &thread->doomed);
	chan->list = NULL;
}

/* Gives back all that belongs to the user: after this the thread touches none of it. */
static void chan_release(struct soft_chan *chan)
{
	if (chan->eq)
		soft_eq_purge(chan->eq, chan);
	chan->eq = NULL;
	if (chan->cq)
		soft_cq_leave(chan->cq, chan, chan->send_depth + chan->recv_depth);
	chan->cq = NULL;
	soft_pd_put(chan->pd);
	chan->pd = NULL;
	free(chan->sends);
	free(chan->recvs);
	free(chan->inlined);
	chan->sends = NULL;
	chan->recvs = NULL;
	chan->inlined = NULL;
}

void soft_chan_free_now(struct soft_chan *chan)
{
	chan_release(chan);
	soft_listener_put(chan->listener);
	free(chan->tx.responses);
	free(chan->tx.bounce);
	free(chan->last_words);
	pthread_mutex_destroy(&chan->lock);
	free(chan);
}

static void chan_detach(struct soft_thread *thread, void *arg)
{
	struct soft_chan *chan = arg;

	(void)thread;
	chan_release(chan);
	chan->orphan = true;
	if (chan->phase != SOFT_PHASE_LINGER)
		soft_chan_dispose(chan);
}

void soft_chan_free(struct fabric_chan *fabric_chan)
{
	struct soft_chan *chan = soft_chan_of(fabric_chan);

	soft_thread_call(chan->thread, chan_detach, chan);
}

struct reject_args {
	struct soft_chan *chan;
	const void *priv;
	size_t priv_len;
};

static void chan_detach_rejected(struct soft_thread *thread, void *arg)
{
	struct reject_args *args = arg;

	(void)thread;
	chan_release(args->chan);
	soft_cm_reject(args->chan, args->priv, args->priv_len);
}

int soft_chan_reject(struct fabric_chan *fabric_chan, const void *priv, size_t priv_len)
{
	struct reject_args args = {soft_chan_of(fabric_chan), priv, priv_len};

	if (args.chan->started)
		return -EINVAL;
	soft_thread_call(args.chan->thread, chan_detach_rejected, &args);
	return 0;
}

/* ---- turns ---- */

void soft_chan_ready(struct soft_source *source, uint32_t events)
{
	struct soft_chan *chan =
		(struct soft_chan *)((char *)source - offsetof(struct soft_chan, source));

	if (chan->phase == SOFT_PHASE_DEAD)
		return;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		chan->rx.ready = true;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		chan->rx.hangup = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		chan->tx.ready = true;
	soft_thread_run_soon(chan->thread, chan);
}

void soft_chan_kicked(struct soft_chan *chan)
{
	unsigned commands;

	pthread_mutex_lock(&chan->lock);
	commands = chan->commands;
	chan->commands = 0;
	chan->tx.limit = chan->send_tail;
	pthread_mutex_unlock(&chan->lock);
	if (commands & SOFT_COMMAND_DISCONNECT)
		chan->tx.closing = true;
	if (commands & ~(unsigned)SOFT_COMMAND_DISCONNECT)
		soft_cm_commands(chan, commands);
	if (chan->phase != SOFT_PHASE_DEAD)
		soft_thread_run_soon(chan->thread, chan);
}

bool soft_chan_turn(struct soft_chan *chan)
{
	bool again = false;

	switch (chan->phase) {
	case SOFT_PHASE_NEW:
	case SOFT_PHASE_HELD:
	case SOFT_PHASE_DEAD:
		return false;
	case SOFT_PHASE_TCP:
	case SOFT_PHASE_READ_REPLY:
	case SOFT_PHASE_READ_REQUEST:
		soft_cm_turn(chan);
		/* What follows the peer's frame may have come with it: no further edge. */
		return chan->phase == SOFT_PHASE_STREAM;
	case SOFT_PHASE_STREAM:
		again = soft_rx_turn(chan);
		if (chan->phase == SOFT_PHASE_STREAM)
			again |= soft_tx_turn(chan);
		return again && chan->phase == SOFT_PHASE_STREAM;
	case SOFT_PHASE_LINGER:
		return soft_chan_linger_turn(chan);
	}
	return false;
}
