/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_place: judges what a segment's header asks for - key, bounds, rights, numbers, a
 * posted receive, an outstanding read - and says where its payload goes.
 *
 * Its answers hold only as long as the pd's lock is held: who moves bytes asks again.
 */
#include <stdlib.h>

#include "base/log.h"
#include "fabric/soft/soft_impl.h"

static bool place_fail(struct soft_chan *chan, struct ddp_error error)
{
	soft_chan_terminate(chan, error, FABRIC_FLUSHED);
	return false;
}

struct soft_send *soft_read_oldest(struct soft_chan *chan)
{
	for (uint32_t i = chan->tx.head; i != chan->tx.at.next; i++) {
		struct soft_send *send = &chan->sends[i & chan->send_mask];

		if (send->opcode == FABRIC_READ && !send->done)
			return send;
	}
	return NULL;
}

static const struct ddp_error *write_check(const struct soft_chan *chan)
{
	static const struct ddp_error key = DDP_INVALID_STAG, bounds = DDP_BASE_BOUNDS,
				      rights = RDMAP_ACCESS_RIGHTS, wrap = DDP_TO_WRAP;
	const struct soft_rx *rx = &chan->rx;

	if (!rx->left)
		return NULL;
	if (rx->offset + rx->left < rx->offset)
		return &wrap;
	switch (soft_pd_check(
		chan->pd, rx->header.stag, rx->offset, rx->left, FABRIC_REMOTE_WRITE)) {
	case SOFT_ACCESS_KEY:
		return &key;
	case SOFT_ACCESS_BOUNDS:
		return &bounds;
	case SOFT_ACCESS_RIGHTS:
		return &rights;
	case SOFT_ACCESS_OK:
		break;
	}
	return NULL;
}

static bool write_begin(struct soft_chan *chan)
{
	const struct ddp_error *error;

	chan->rx.offset = chan->rx.header.offset;
	pthread_rwlock_rdlock(&chan->pd->lock);
	error = write_check(chan);
	pthread_rwlock_unlock(&chan->pd->lock);
	return error ? place_fail(chan, *error) : true;
}

static bool response_begin(struct soft_chan *chan)
{
	const struct soft_rx *rx = &chan->rx;
	const struct soft_send *send = soft_read_oldest(chan);

	if (!send)
		return place_fail(chan, RDMAP_OPCODE);
	if (rx->header.stag != soft_read_stag(send))
		return place_fail(chan, DDP_INVALID_STAG);
	if (rx->header.offset != soft_read_offset(send) + rx->response_got ||
		rx->left > send->bytes - rx->response_got ||
		rx->header.last != (rx->left == send->bytes - rx->response_got))
		return place_fail(chan, DDP_BASE_BOUNDS);
	return true;
}

/* Whether a receive is posted that the SEND under way may use. */
static bool recv_have(struct soft_chan *chan)
{
	struct soft_rx *rx = &chan->rx;

	if (rx->recv_head == rx->recv_limit) {
		pthread_mutex_lock(&chan->lock);
		rx->recv_limit = chan->recv_tail;
		pthread_mutex_unlock(&chan->lock);
	}
	return rx->recv_head != rx->recv_limit;
}

static bool send_begin(struct soft_chan *chan)
{
	struct soft_rx *rx = &chan->rx;
	uint32_t room;

	if (rx->header.msn != rx->send_msn)
		return place_fail(chan, DDP_MSN_RANGE);
	if (rx->header.mo != rx->send_got)
		return place_fail(chan, DDP_INVALID_MO);
	if (!recv_have(chan)) {
		log_debug("soft: a SEND found no receive posted");
		return place_fail(chan, DDP_NO_BUFFER);
	}
	room = chan->recvs[rx->recv_head & chan->recv_mask].bytes - rx->send_got;
	if (rx->left > room) {
		soft_chan_complete_recv(chan, FABRIC_LOCAL_LENGTH, 0);
		return place_fail(chan, DDP_TOO_LONG);
	}
	return true;
}

/* Room for what a peer may ask to read; made when one first does. */
static bool responses_have(struct soft_chan *chan)
{
	struct soft_tx *tx = &chan->tx;

	if (!tx->responses)
		tx->responses = calloc(SOFT_READS_MAX, sizeof(tx->responses[0]));
	if (!tx->bounce)
		tx->bounce = malloc(SOFT_BOUNCE_BYTES);
	return tx->responses && tx->bounce;
}

static bool read_begin(struct soft_chan *chan)
{
	const struct soft_rx *rx = &chan->rx;
	const struct ddp_read *read = &rx->read;
	enum soft_access access;

	if (rx->header.msn != rx->read_msn)
		return place_fail(chan, DDP_MSN_RANGE);
	if (rx->header.mo || !rx->header.last)
		return place_fail(chan, DDP_INVALID_MO);
	if (chan->tx.response_tail - chan->tx.at.response >= chan->ird || !responses_have(chan))
		return place_fail(chan, RDMAP_CATASTROPHIC_STREAM);
	if (!read->bytes)
		return true;
	if (read->source_offset + read->bytes < read->source_offset ||
		read->sink_offset + read->bytes < read->sink_offset)
		return place_fail(chan, RDMAP_TO_WRAP);
	pthread_rwlock_rdlock(&chan->pd->lock);
	access = soft_pd_check(
		chan->pd, read->source_stag, read->source_offset, read->bytes, FABRIC_REMOTE_READ);
	pthread_rwlock_unlock(&chan->pd->lock);
	switch (access) {
	case SOFT_ACCESS_KEY:
		return place_fail(chan, RDMAP_INVALID_STAG);
	case SOFT_ACCESS_BOUNDS:
		return place_fail(chan, RDMAP_BASE_BOUNDS);
	case SOFT_ACCESS_RIGHTS:
		return place_fail(chan, RDMAP_ACCESS_RIGHTS);
	case SOFT_ACCESS_OK:
		break;
	}
	return true;
}

bool soft_place_begin(struct soft_chan *chan)
{
	switch (chan->rx.header.opcode) {
	case DDP_WRITE:
		return write_begin(chan);
	case DDP_READ_RESPONSE:
		return response_begin(chan);
	case DDP_SEND:
	case DDP_SEND_EVENT:
		return send_begin(chan);
	case DDP_READ_REQUEST:
		return read_begin(chan);
	case DDP_TERMINATE:
		return true;
	default:
		return place_fail(chan, RDMAP_CANNOT_INVALIDATE);
	}
}

unsigned soft_place_iov(struct soft_chan *chan, struct iovec *iov)
{
	const struct soft_rx *rx = &chan->rx;

	if (rx->header.opcode == DDP_WRITE) {
		if (write_check(chan))
			return 0;
		*iov = (struct iovec){(void *)(uintptr_t)rx->offset, rx->left};
		return 1;
	}
	if (rx->header.opcode == DDP_READ_RESPONSE) {
		const struct soft_send *send = soft_read_oldest(chan);

		if (!send || !soft_sges_ok(chan, send))
			return 0;
		return soft_sge_iov(send->sge, send->sge_count, rx->response_got, rx->left, iov);
	} else {
		const struct soft_recv *recv = &chan->recvs[rx->recv_head & chan->recv_mask];
		uint8_t *to = recv->addr + rx->send_got;

		if (soft_pd_check(chan->pd, recv->key, (uintptr_t)to, rx->left, FABRIC_LOCAL) !=
			SOFT_ACCESS_OK)
			return 0;
		*iov = (struct iovec){to, rx->left};
		return 1;
	}
}

void soft_place_refused(struct soft_chan *chan)
{
	if (chan->rx.header.opcode == DDP_WRITE) {
		soft_chan_terminate(chan, DDP_INVALID_STAG, FABRIC_FLUSHED);
		return;
	}
	log_debug("soft: a posted buffer is not registered");
	if (chan->rx.header.opcode == DDP_READ_RESPONSE) {
		soft_chan_terminate(chan, DDP_LOCAL_CATASTROPHIC, FABRIC_LOCAL_PROTECTION);
		return;
	}
	soft_chan_complete_recv(chan, FABRIC_LOCAL_PROTECTION, 0);
	soft_chan_terminate(chan, DDP_LOCAL_CATASTROPHIC, FABRIC_FLUSHED);
}
