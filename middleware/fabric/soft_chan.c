/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft_chan: the life of a channel of the soft fabric: its rings, posting, its turns on the
 * progress thread, breaking, lingering, freeing.
 *
 * Does not know how connections are made (soft_cm) or bytes moved (soft_tx, soft_rx).
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/log.h"
#include "fabric/crc32c.h"
#include "fabric/soft_impl.h"

#define MAX_CHANNELS_HINT 64u
#define LINGER_READS 32 /* of discarded input in one turn */

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
	int rc = -ENOMEM;

	if (chan->cq || chan->started)
		return -EINVAL;
	if (inline_bytes > SOFT_INLINE_MAX)
		inline_bytes = SOFT_INLINE_MAX;
	chan->sends = calloc(sends, sizeof(chan->sends[0]));
	chan->recvs = calloc(recvs, sizeof(chan->recvs[0]));
	chan->inlined = inline_bytes ? malloc((size_t)sends * inline_bytes) : NULL;
	if (!chan->sends || !chan->recvs || (inline_bytes && !chan->inlined))
		goto err_rings;
	rc = soft_cq_reserve(cq, attr->send_depth + attr->recv_depth);
	if (rc)
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
	return rc;
}

static int chan_start(struct soft_chan *chan, unsigned command, const void *priv, size_t priv_len)
{
	int rc = 0;

	pthread_mutex_lock(&chan->lock);
	if (!chan->cq || chan->started) {
		rc = -EINVAL;
	} else {
		chan->started = true;
		chan->commands |= command;
		if (priv_len)
			memcpy(chan->priv, priv, priv_len);
		chan->priv_len = (uint8_t)priv_len;
	}
	pthread_mutex_unlock(&chan->lock);
	if (!rc)
		soft_chan_kick(chan);
	return rc;
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
		uint8_t *to = chan->inlined +
			(size_t)(at & chan->send_mask) * chan->base.caps.inline_max;

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
		send->sge[send->sge_count++] = (struct soft_sge){
			wr->sge[i].addr, wr->sge[i].bytes, wr->sge[i].mr->key};
		send->bytes += wr->sge[i].bytes;
	}
}

int soft_chan_post_send(struct fabric_chan *fabric_chan, const struct fabric_wr *list)
{
	struct soft_chan *chan = soft_chan_of(fabric_chan);
	uint32_t count = 0;
	int rc = 0;

	for (const struct fabric_wr *wr = list; wr; wr = wr->next)
		count++;
	pthread_mutex_lock(&chan->lock);
	if (!chan->open || chan->closing) {
		rc = -ENOTCONN;
	} else if (count > chan->send_depth -
			atomic_load_explicit(&chan->send_used, memory_order_acquire)) {
		rc = -ENOMEM;
	} else {
		for (const struct fabric_wr *wr = list; wr; wr = wr->next)
			send_fill(chan, chan->send_tail++, wr);
		atomic_fetch_add_explicit(&chan->send_used, count, memory_order_relaxed);
	}
	pthread_mutex_unlock(&chan->lock);
	if (!rc)
		soft_chan_kick(chan);
	return rc;
}

int soft_chan_post_recv(struct fabric_chan *fabric_chan, uint64_t id, void *addr, uint32_t bytes,
	struct fabric_mr *mr)
{
	struct soft_chan *chan = soft_chan_of(fabric_chan);
	int rc = 0;

	if (!chan->cq)
		return -ENOTCONN;
	pthread_mutex_lock(&chan->lock);
	if (chan->broken) {
		rc = -ENOTCONN;
	} else if (atomic_load_explicit(&chan->recv_used, memory_order_acquire) >=
		chan->recv_depth) {
		rc = -ENOMEM;
	} else {
		chan->recvs[chan->recv_tail++ & chan->recv_mask] = (struct soft_recv){
			.id = id, .addr = addr, .bytes = bytes, .key = mr ? mr->key : SOFT_KEY_NONE};
		atomic_fetch_add_explicit(&chan->recv_used, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&chan->lock);
	return rc;
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

/* ---- completions ---- */

static void complete_send(struct soft_chan *chan, const struct soft_send *send,
	enum fabric_status status)
{
	const struct fabric_wc wc = {
		.id = send->id,
		.chan = &chan->base,
		.status = status,
		.opcode = (enum fabric_opcode)send->opcode,
		.bytes = status == FABRIC_OK && send->opcode == FABRIC_READ ? send->bytes : 0,
	};

	if (status == FABRIC_OK && !send->signalled)
		atomic_fetch_sub_explicit(&chan->send_used, 1, memory_order_release);
	else
		soft_cq_push(chan->cq, &wc, true);
}

void soft_chan_retire(struct soft_chan *chan)
{
	while (chan->tx.head != chan->tx.at.next) {
		const struct soft_send *send = &chan->sends[chan->tx.head & chan->send_mask];

		if (send->opcode == FABRIC_READ && !send->done)
			break;
		chan->tx.head++;
		complete_send(chan, send, FABRIC_OK);
	}
}

void soft_chan_complete_recv(struct soft_chan *chan, enum fabric_status status, uint32_t bytes)
{
	const struct soft_recv *recv = &chan->recvs[chan->rx.recv_head++ & chan->recv_mask];
	const struct fabric_wc wc = {
		.id = recv->id,
		.chan = &chan->base,
		.status = status,
		.opcode = FABRIC_RECV,
		.bytes = bytes,
	};

	soft_cq_push(chan->cq, &wc, false);
}

/* ---- the end of a channel ---- */

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

static void chan_close_socket(struct soft_chan *chan)
{
	if (chan->fd >= 0)
		close(chan->fd); /* leaves the epoll set by itself */
	chan->fd = -1;
	chan->phase = SOFT_PHASE_DEAD;
	chan->rx.ready = false;
	chan->tx.ready = false;
}

/* Flushes all and tells the user, once. */
static void chan_end(struct soft_chan *chan, int error, enum fabric_status first)
{
	struct soft_event *event = NULL;
	uint32_t send_tail, recv_tail;

	pthread_mutex_lock(&chan->lock);
	if (chan->broken) {
		pthread_mutex_unlock(&chan->lock);
		return;
	}
	chan->broken = true;
	send_tail = chan->send_tail;
	recv_tail = chan->recv_tail;
	if (chan->open) {
		event = &chan->events[1];
		event->type = FABRIC_EVENT_DISCONNECTED;
	} else if (chan->started) {
		event = &chan->events[0];
		event->type = FABRIC_EVENT_FAILED;
	}
	chan->open = false;
	pthread_mutex_unlock(&chan->lock);
	for (; chan->tx.head != send_tail; chan->tx.head++) {
		complete_send(chan, &chan->sends[chan->tx.head & chan->send_mask], first);
		first = FABRIC_FLUSHED;
	}
	while (chan->rx.recv_head != recv_tail)
		soft_chan_complete_recv(chan, FABRIC_FLUSHED, 0);
	if (event) {
		event->error = error;
		event->listener = NULL;
		soft_eq_push(chan->eq, event);
	}
}

/* Without a socket a channel waits for its user to free it, or is freed. */
static void chan_settle(struct soft_chan *chan)
{
	chan_close_socket(chan);
	if (chan->orphan)
		soft_chan_dispose(chan);
	else
		soft_chan_move(chan, &chan->thread->others);
}

void soft_chan_break(struct soft_chan *chan, int error, enum fabric_status first)
{
	log_debug("soft: channel ends, error %d", error);
	chan_end(chan, error, first);
	chan_settle(chan);
}

/* Terminate, behind the rest of an FPDU that is half on its way.  False: cannot be said. */
static bool last_words_prepare(struct soft_chan *chan, struct ddp_error error)
{
	const size_t max = 2 * (MPA_LENGTH_BYTES + DDP_UNTAGGED_BYTES + DDP_TERMINATE_MAX) +
		SOFT_SEGMENT_MAX;
	const struct ddp_header header = {
		.last = true, .opcode = DDP_TERMINATE, .queue = DDP_QUEUE_TERMINATE, .msn = 1};
	const struct soft_rx *rx = &chan->rx;
	struct ddp_terminate term = {.error = error};
	size_t ulpdu;
	uint32_t crc = 0, rest;
	uint8_t *p;

	if (chan->phase != SOFT_PHASE_STREAM || chan->tx.shut || chan->tx.error)
		return false;
	chan->last_words = malloc(max);
	if (!chan->last_words)
		return false;
	if (!soft_tx_rest(chan, chan->last_words, &rest)) {
		free(chan->last_words);
		chan->last_words = NULL;
		return false;
	}
	p = chan->last_words + rest;
	/* The header at fault goes along, unless it is one that could not be read. */
	if (error.layer != DDP_LAYER_LLP && error.type != 0 && rx->step != SOFT_RX_HEADER) {
		term.has_segment = true;
		term.segment_bytes = rx->ulpdu;
		term.header = rx->header;
		if (rx->header.opcode == DDP_READ_REQUEST && error.layer == DDP_LAYER_RDMAP) {
			term.has_read = true;
			term.read = rx->read;
		}
	}
	ulpdu = ddp_header_put(p + MPA_LENGTH_BYTES, &header);
	ulpdu += ddp_terminate_put(p + MPA_LENGTH_BYTES + ulpdu, &term);
	bytes_put16(p, (uint16_t)ulpdu);
	memset(p + MPA_LENGTH_BYTES + ulpdu, 0, mpa_pad_bytes(ulpdu));
	ulpdu += MPA_LENGTH_BYTES + mpa_pad_bytes(ulpdu);
	if (chan->crc)
		crc = crc32c(0, p, ulpdu);
	mpa_crc_put(p + ulpdu, crc);
	chan->last_bytes = (uint32_t)(p + ulpdu + MPA_CRC_BYTES - chan->last_words);
	chan->last_sent = 0;
	return true;
}

void soft_chan_terminate(struct soft_chan *chan, struct ddp_error error, enum fabric_status first)
{
	const bool speaks = last_words_prepare(chan, error);

	log_debug("soft: peer ended for layer %u type %u code %u: %s", error.layer, error.type,
		error.code, ddp_error_text(error));
	chan_end(chan, -EPROTO, first);
	if (!speaks) {
		chan_settle(chan);
		return;
	}
	soft_chan_linger(chan);
}

void soft_chan_linger(struct soft_chan *chan)
{
	chan->phase = SOFT_PHASE_LINGER;
	chan->deadline_ns = clock_now_ns() + SOFT_LINGER_MS * NS_PER_MS;
	soft_chan_move(chan, &chan->thread->linger);
	soft_thread_run_soon(chan->thread, chan);
}

void soft_chan_linger_end(struct soft_chan *chan)
{
	free(chan->last_words);
	chan->last_words = NULL;
	chan_settle(chan);
}

/*
 * Says the last words, then reads and forgets until the peer has closed: closing with unread input
 * would reset the connection, and a reset may overtake the words.
 */
static bool linger_turn(struct soft_chan *chan)
{
	uint8_t *waste = (uint8_t *)chan->thread->fpdus;
	ssize_t n;

	if (chan->last_sent < chan->last_bytes && chan->tx.ready) {
		n = send(chan->fd, chan->last_words + chan->last_sent,
			chan->last_bytes - chan->last_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			chan->last_sent += (uint32_t)n;
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			goto end;
		if (chan->last_sent < chan->last_bytes)
			chan->tx.ready = false;
	}
	if (chan->last_sent == chan->last_bytes && !chan->tx.shut) {
		shutdown(chan->fd, SHUT_WR);
		chan->tx.shut = true;
	}
	for (int i = 0; chan->rx.ready && i < LINGER_READS; i++) {
		n = recv(chan->fd, waste, sizeof(chan->thread->fpdus), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			chan->rx.ready = errno == EINTR;
		else if (n <= 0)
			goto end;
	}
	return chan->rx.ready;

end:
	soft_chan_linger_end(chan);
	return false;
}

void soft_chan_dispose(struct soft_chan *chan)
{
	struct soft_thread *thread = chan->thread;

	chan_close_socket(chan);
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
		return linger_turn(chan);
	}
	return false;
}
