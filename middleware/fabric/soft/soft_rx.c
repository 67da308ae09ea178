/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_rx: takes FPDUs from the socket and puts their payload where soft_place says.
 *
 * Headers and trailers pass through a small stage in the channel; payload goes from the socket
 * straight to its memory, by one recvmsg of {payload's rest, trailer and next header}.  Only what
 * happens to come into the stage behind a header is copied.  What the next header will say is never
 * guessed: a wrong guess would write to memory that the message does not name.
 *
 * Every step checks the memory again under the pd's lock, for a region may be freed meanwhile.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"
#include "fabric/soft/crc32c.h"
#include "fabric/soft/soft_impl.h"

#define HEADER_TAGGED (MPA_LENGTH_BYTES + DDP_TAGGED_BYTES)
#define HEADER_UNTAGGED (MPA_LENGTH_BYTES + DDP_UNTAGGED_BYTES)
#define ATOMIC_BYTES                                                                               \
	64u /* pieces of a WRITE so small are placed byte by byte, with release stores */
_Static_assert(ATOMIC_BYTES >= FABRIC_WATCHED_BYTES, "what is watched is placed atomically");
#define CONTROL_MAX (SOFT_STAGE_BYTES - MPA_LENGTH_BYTES - MPA_TRAILER_MAX)

enum rx_result {
	RX_ENDED, /* the channel is not in PHASE_STREAM any more */
	RX_STARVED,
	RX_MOVED,
};

static enum rx_result rx_fail(struct soft_chan *chan, struct ddp_error error)
{
	soft_chan_terminate(chan, error, FABRIC_FLUSHED);
	return RX_ENDED;
}

/* `bytes` more of the payload are in place. */
static void payload_count(struct soft_rx *rx, uint32_t bytes)
{
	rx->left -= bytes;
	rx->offset += bytes;
	if (rx->header.opcode == DDP_READ_RESPONSE)
		rx->response_got += bytes;
	else if (rx->header.opcode != DDP_WRITE)
		rx->send_got += bytes;
	if (!rx->left)
		rx->step = SOFT_RX_TRAILER;
}

static void payload_crc(struct soft_chan *chan, const struct iovec *iov, size_t bytes)
{
	if (!chan->crc)
		return;
	for (; bytes; iov++) {
		const size_t part = bytes < iov->iov_len ? bytes : iov->iov_len;

		chan->rx.crc = crc32c(chan->rx.crc, iov->iov_base, part);
		bytes -= part;
	}
}

/* ---- what a whole segment does ---- */

static enum fabric_status terminate_status(struct ddp_error error)
{
	if (error.layer == DDP_LAYER_RDMAP && error.type == 1)
		return FABRIC_REMOTE_ACCESS;
	if (error.layer == DDP_LAYER_DDP && error.type == 1 &&
		!ddp_error_is(error, DDP_TAGGED_VERSION))
		return FABRIC_REMOTE_ACCESS;
	if (ddp_error_is(error, DDP_NO_BUFFER))
		return FABRIC_RNR_EXCEEDED;
	if (error.layer == DDP_LAYER_RDMAP || error.layer == DDP_LAYER_DDP)
		return FABRIC_REMOTE_OPERATION;
	return FABRIC_FLUSHED;
}

static enum rx_result terminate_end(struct soft_chan *chan)
{
	const struct ddp_error error = chan->rx.terminated;

	log_debug("soft: terminated by the peer, layer %u type %u code %u: %s", error.layer,
		error.type, error.code, ddp_error_text(error));
	soft_chan_break(chan, -EREMOTEIO, terminate_status(error));
	return RX_ENDED;
}

static void response_end(struct soft_chan *chan)
{
	struct soft_send *send;

	if (!chan->rx.header.last)
		return;
	send = soft_read_oldest(chan);
	send->done = true;
	chan->rx.response_got = 0;
	chan->tx.reads_done++;
	soft_chan_retire(chan);
}

static void send_end(struct soft_chan *chan)
{
	struct soft_rx *rx = &chan->rx;
	const uint32_t bytes = rx->send_got;

	rx->mid_send = !rx->header.last;
	if (rx->mid_send)
		return;
	rx->send_got = 0;
	rx->send_msn++;
	soft_chan_complete_recv(chan, FABRIC_OK, bytes);
}

static void read_end(struct soft_chan *chan)
{
	const struct ddp_read *read = &chan->rx.read;

	chan->rx.read_msn++;
	chan->tx.responses[chan->tx.response_tail++ % SOFT_READS_MAX] = (struct soft_response){
		.sink_offset = read->sink_offset,
		.sink_stag = read->sink_stag,
		.source = read->source_offset,
		.source_key = read->source_stag,
		.bytes = read->bytes,
	};
}

static enum rx_result segment_end(struct soft_chan *chan)
{
	struct soft_rx *rx = &chan->rx;

	rx->step = SOFT_RX_HEADER;
	rx->need = HEADER_TAGGED;
	/* MPA: who accepts may send when the first FPDU of who connects was here. */
	chan->tx.allowed = true;
	if (!rx->ulpdu)
		return RX_MOVED;
	if (rx->header.tagged)
		rx->mid_tagged = !rx->header.last;
	switch (rx->header.opcode) {
	case DDP_WRITE:
		break;
	case DDP_READ_RESPONSE:
		response_end(chan);
		break;
	case DDP_READ_REQUEST:
		read_end(chan);
		break;
	case DDP_TERMINATE:
		return terminate_end(chan);
	default:
		send_end(chan);
		break;
	}
	return RX_MOVED;
}

/* ---- headers and trailers ---- */

/* The payload of a Read Request or Terminate, which is all in the stage, is a header to us. */
static bool control_get(struct soft_rx *rx, const uint8_t *in)
{
	struct ddp_terminate term;

	if (rx->header.opcode == DDP_READ_REQUEST) {
		if (rx->left != DDP_READ_BYTES)
			return false;
		ddp_read_get(in, &rx->read);
	} else {
		if (ddp_terminate_get(in, rx->left, &term) < 0)
			return false;
		rx->terminated = term.error;
	}
	rx->left = 0;
	return true;
}

/* An initiator that was asked for it may show that it is ready by an FPDU without a ULPDU. */
static enum rx_result header_empty(struct soft_chan *chan)
{
	struct soft_rx *rx = &chan->rx;

	if (chan->tx.allowed || !chan->peer_to_peer)
		return rx_fail(chan, DDP_LOCAL_CATASTROPHIC);
	rx->ulpdu = 0;
	rx->left = 0;
	rx->crc = chan->crc ? crc32c(0, rx->stage + rx->pos, MPA_LENGTH_BYTES) : 0;
	rx->pos += MPA_LENGTH_BYTES;
	rx->step = SOFT_RX_TRAILER;
	return RX_MOVED;
}

static enum rx_result rx_header(struct soft_chan *chan)
{
	struct soft_rx *rx = &chan->rx;
	const uint8_t *in = rx->stage + rx->pos;
	size_t have = (size_t)(rx->end - rx->pos);
	struct ddp_error error;
	size_t used, ulpdu;
	int bytes;

	rx->need = HEADER_TAGGED;
	if (have < MPA_LENGTH_BYTES)
		return RX_STARVED;
	ulpdu = bytes_get16(in);
	if (!ulpdu)
		return header_empty(chan);
	have -= MPA_LENGTH_BYTES;
	bytes = ddp_header_get(
		in + MPA_LENGTH_BYTES, have < ulpdu ? have : ulpdu, &rx->header, &error);
	if (bytes < 0)
		return rx_fail(chan, error);
	if (!bytes) {
		if (have >= ulpdu)
			return rx_fail(chan, DDP_LOCAL_CATASTROPHIC);
		rx->need = HEADER_UNTAGGED;
		return RX_STARVED;
	}
	rx->ulpdu = (uint16_t)ulpdu;
	rx->left = (uint32_t)(ulpdu - (size_t)bytes);
	used = MPA_LENGTH_BYTES + (size_t)bytes;
	if (rx->header.opcode == DDP_READ_REQUEST || rx->header.opcode == DDP_TERMINATE) {
		if (ulpdu > CONTROL_MAX)
			return rx_fail(chan, DDP_TOO_LONG);
		rx->need = (uint16_t)(MPA_LENGTH_BYTES + ulpdu);
		if (have < ulpdu)
			return RX_STARVED;
		used = MPA_LENGTH_BYTES + ulpdu;
		if (!control_get(rx, in + MPA_LENGTH_BYTES + bytes))
			return rx_fail(chan, DDP_LOCAL_CATASTROPHIC);
	}
	rx->crc = chan->crc ? crc32c(0, in, used) : 0;
	rx->pos += (uint16_t)used;
	rx->step = rx->left ? SOFT_RX_PAYLOAD : SOFT_RX_TRAILER;
	return soft_place_begin(chan) ? RX_MOVED : RX_ENDED;
}

/* The owner of the memory may watch a small WRITE arrive with acquire loads, and take its bytes for
 * word that all before it on this channel has come. */
static bool placed_atomically(const struct soft_rx *rx)
{
	return rx->header.opcode == DDP_WRITE && rx->left <= ATOMIC_BYTES;
}

static void place_bytes(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		__atomic_store_n(to + i, from[i], __ATOMIC_RELEASE);
}

static enum rx_result rx_payload(struct soft_chan *chan)
{
	struct soft_rx *rx = &chan->rx;
	struct iovec iov[FABRIC_SGE_MAX];
	const uint8_t *from = rx->stage + rx->pos;
	uint32_t have = (uint32_t)(rx->end - rx->pos), moved = 0;
	struct fabric_cq *watch;
	unsigned count;

	if (!have)
		return RX_STARVED;
	if (have > rx->left)
		have = rx->left;
	pthread_rwlock_rdlock(&chan->pd->lock);
	count = soft_place_iov(chan, iov);
	for (unsigned i = 0; i < count && moved < have; i++) {
		uint32_t part = have - moved;

		if (part > iov[i].iov_len)
			part = (uint32_t)iov[i].iov_len;
		if (placed_atomically(rx))
			place_bytes(iov[i].iov_base, from + moved, part);
		else
			memcpy(iov[i].iov_base, from + moved, part);
		moved += part;
	}
	if (count && placed_atomically(rx) && (watch = soft_pd_watch(chan->pd, rx->header.stag)))
		soft_cq_nudge(
			(struct soft_cq *)watch); /* with the lock: it outlives the memory only */
	pthread_rwlock_unlock(&chan->pd->lock);
	if (!count) {
		soft_place_refused(chan);
		return RX_ENDED;
	}
	if (chan->crc)
		rx->crc = crc32c(rx->crc, from, have);
	rx->pos += (uint16_t)have;
	payload_count(rx, have);
	return RX_MOVED;
}

static enum rx_result rx_trailer(struct soft_chan *chan)
{
	struct soft_rx *rx = &chan->rx;
	const size_t pad = mpa_pad_bytes(rx->ulpdu);
	const uint8_t *in = rx->stage + rx->pos;

	rx->need = (uint16_t)(pad + MPA_CRC_BYTES);
	if (rx->end - rx->pos < rx->need)
		return RX_STARVED;
	if (chan->crc && crc32c(rx->crc, in, pad) != mpa_crc_get(in + pad)) {
		log_debug("soft: CRC mismatch in an FPDU of %u bytes", rx->ulpdu);
		return rx_fail(chan, MPA_ERROR_CRC);
	}
	rx->pos += rx->need;
	return segment_end(chan);
}

/* ---- the socket ---- */

/* How much to take into the stage: not what would better go to its memory directly. */
static size_t stage_want(const struct soft_rx *rx)
{
	const size_t have = (size_t)(rx->end - rx->pos), room = SOFT_STAGE_BYTES - have;
	const bool lean =
		rx->step == SOFT_RX_HEADER ? rx->mid_tagged || rx->mid_send : !rx->header.last;
	size_t want = rx->header.tagged ? HEADER_TAGGED : HEADER_UNTAGGED;

	if (!lean)
		return room;
	if (rx->step != SOFT_RX_HEADER)
		want += mpa_trailer_bytes(rx->ulpdu);
	if (want < rx->need)
		want = rx->need;
	return want - have < room ? want - have : room;
}

static enum rx_result rx_closed(struct soft_chan *chan, int error)
{
	const struct soft_rx *rx = &chan->rx;
	const bool mid_way =
		rx->step != SOFT_RX_HEADER || rx->pos != rx->end || rx->mid_tagged || rx->mid_send;

	if (chan->tx.error)
		error = chan->tx.error;
	else if (!error && mid_way)
		error = -ECONNRESET;
	soft_chan_break(chan, error, error == -ETIMEDOUT ? FABRIC_RETRY_EXCEEDED : FABRIC_FLUSHED);
	return RX_ENDED;
}

static enum rx_result rx_receive(struct soft_chan *chan, size_t *budget)
{
	struct soft_rx *rx = &chan->rx;
	struct iovec iov[FABRIC_SGE_MAX + 1];
	struct msghdr message = {.msg_iov = iov};
	const bool direct = rx->step == SOFT_RX_PAYLOAD && !placed_atomically(rx);
	size_t asked, placed;
	unsigned count = 0;
	ssize_t n;

	if (!rx->ready)
		return RX_STARVED;
	memmove(rx->stage, rx->stage + rx->pos, (size_t)(rx->end - rx->pos));
	rx->end -= rx->pos;
	rx->pos = 0;
	asked = stage_want(rx);
	if (direct) {
		pthread_rwlock_rdlock(&chan->pd->lock);
		count = soft_place_iov(chan, iov);
		if (!count) {
			pthread_rwlock_unlock(&chan->pd->lock);
			soft_place_refused(chan);
			return RX_ENDED;
		}
	}
	iov[count] = (struct iovec){rx->stage + rx->end, asked};
	message.msg_iovlen = count + 1;
	n = recvmsg(chan->fd, &message, MSG_DONTWAIT);
	placed = direct && n > 0 ? ((size_t)n < rx->left ? (size_t)n : rx->left) : 0;
	payload_crc(chan, iov, placed);
	if (direct)
		pthread_rwlock_unlock(&chan->pd->lock);

	if (n < 0 && errno == EINTR)
		return RX_MOVED;
	if (n < 0 && errno == EAGAIN) {
		rx->ready = false;
		return chan->tx.error ? rx_closed(chan, 0) : RX_STARVED;
	}
	if (n <= 0)
		return rx_closed(chan, n < 0 ? -errno : 0);
	rx->heard = true;
	asked += direct ? rx->left : 0;
	if (placed)
		payload_count(rx, (uint32_t)placed);
	rx->end += (uint16_t)((size_t)n - placed);
	/* Less than asked for: the socket is empty, and says so when it is not any more. */
	if ((size_t)n < asked && !rx->hangup)
		rx->ready = false;
	*budget -= (size_t)n < *budget ? (size_t)n : *budget;
	return RX_MOVED;
}

bool soft_rx_turn(struct soft_chan *chan)
{
	size_t budget = SOFT_TURN_BYTES;
	enum rx_result result;

	for (;;) {
		do {
			if (chan->rx.step == SOFT_RX_HEADER)
				result = rx_header(chan);
			else if (chan->rx.step == SOFT_RX_PAYLOAD)
				result = rx_payload(chan);
			else
				result = rx_trailer(chan);
		} while (result == RX_MOVED);
		if (result == RX_ENDED)
			return false;
		if (!budget)
			return true;
		result = rx_receive(chan, &budget);
		if (result == RX_ENDED)
			return false;
		if (result == RX_STARVED)
			return chan->rx.ready;
	}
}
