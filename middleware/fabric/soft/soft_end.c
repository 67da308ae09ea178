/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_end: how requests and channels of the soft fabric end: completions in order, the
 * flush of all that is posted, the Terminate and the wait until the peer has read it.
 *
 * All on the channel's progress thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "fabric/soft/crc32c.h"
#include "fabric/soft/soft_impl.h"

#define LINGER_READS 32 /* of discarded input in one turn */

/* ---- completions ---- */

static void complete_send(
	struct soft_chan *chan, const struct soft_send *send, enum fabric_status status)
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
	soft_chan_close_socket(chan);
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
	const size_t max =
		2 * (MPA_LENGTH_BYTES + DDP_UNTAGGED_BYTES + DDP_TERMINATE_MAX) + SOFT_SEGMENT_MAX;
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

bool soft_chan_linger_turn(struct soft_chan *chan)
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
