/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_tx: cuts posted requests, and answers to the peer's reads, into FPDUs and gives
 * them to the socket: one sendmsg for many, headers from the thread's scratch, payload from where
 * it lies.
 *
 * Where sending stands is a cursor that lies always between two FPDUs, and the bytes of the next
 * one that the socket has taken.  FPDUs are built from a copy of the cursor and the copies become
 * the cursor when their bytes are gone; an FPDU that is half gone keeps its frame, for its CRC must
 * not change, and gets its payload from memory again.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "fabric/soft/crc32c.h"
#include "fabric/soft/soft_impl.h"

#define ATOMIC_BYTES 8192u /* most of a read response that is copied word by word */
#define WORD 8u
#define NUDGE_MS 10u /* 10, 40, 160, 640 ms apart */
#define NUDGES 4u

struct batch {
	unsigned iov_count;
	unsigned fpdu_count;
	size_t bytes;
	bool more; /* there was more to send than found room */
	bool stopped_by_memory;
};

/* Payload of the FPDUs of a message: even parts, so that the last one is not a crumb. */
static uint32_t segment_bytes(uint32_t total)
{
	const uint32_t count = (total + SOFT_SEGMENT_MAX - 1) / SOFT_SEGMENT_MAX;

	if (count <= 1)
		return total;
	return ((total + count - 1) / count + 63) & ~63u;
}

unsigned soft_sge_iov(const struct soft_sge *sge, unsigned count, uint32_t skip, uint32_t bytes,
	struct iovec *out)
{
	unsigned used = 0;

	for (unsigned i = 0; i < count && bytes; i++) {
		uint32_t part;

		if (skip >= sge[i].bytes) {
			skip -= sge[i].bytes;
			continue;
		}
		part = sge[i].bytes - skip;
		if (part > bytes)
			part = bytes;
		out[used++] = (struct iovec){sge[i].addr + skip, part};
		bytes -= part;
		skip = 0;
	}
	return used;
}

bool soft_sges_ok(const struct soft_chan *chan, const struct soft_send *send)
{
	for (unsigned i = 0; i < send->sge_count; i++) {
		const struct soft_sge *sge = &send->sge[i];

		if (sge->key != SOFT_KEY_NONE &&
			soft_pd_check(chan->pd, sge->key, (uintptr_t)sge->addr, sge->bytes,
				FABRIC_LOCAL) != SOFT_ACCESS_OK)
			return false;
	}
	return true;
}

static bool request_ready(const struct soft_chan *chan, const struct soft_cursor *at)
{
	const struct soft_tx *tx = &chan->tx;

	if (at->next == tx->limit)
		return false;
	/* the peer takes only so many reads at once; what is behind waits, in order */
	return chan->sends[at->next & chan->send_mask].opcode != FABRIC_READ ||
	       at->reads - tx->reads_done < chan->ord;
}

/* Chooses the next message, if one is under way it stays.  False: nothing may be sent now. */
static bool message_choose(const struct soft_chan *chan, struct soft_cursor *at)
{
	const struct soft_tx *tx = &chan->tx;

	if (at->kind != SOFT_TX_NONE)
		return true;
	at->offset = 0;
	if (at->response != tx->response_tail)
		at->kind = SOFT_TX_RESPONSE;
	else if (request_ready(chan, at))
		at->kind = SOFT_TX_REQUEST;
	else if (at->nudges != tx->nudges)
		at->kind = SOFT_TX_NUDGE;
	return at->kind != SOFT_TX_NONE;
}

/* Copied before it is sent: its owner may write to it meanwhile, and a CRC must fit what is sent.
 * Small ones always, with acquire loads: the owner may change single bytes, or aligned words of
 * WORD, with release stores. */
static bool response_bounces(const struct soft_chan *chan, const struct soft_response *response)
{
	return chan->crc || response->bytes <= ATOMIC_BYTES;
}

/* An aligned word, and with it each of its bytes: in memory that is shared both are ways to hand
 * something over, and a load of one says nothing of stores to the other. */
static void bounce_word(uint8_t *to, const uint8_t *from)
{
	uint64_t word;

	do {
		word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
		for (uint32_t i = 0; i < WORD; i++)
			to[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
	} while (memcmp(to, &word, WORD));
}

static void bounce(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	if (bytes > ATOMIC_BYTES) {
		memcpy(to, from, bytes);
		return;
	}
	while (bytes) {
		bool whole = (uintptr_t)from % WORD == 0 && bytes >= WORD;
		uint32_t step = whole ? WORD : 1;

		if (whole)
			bounce_word(to, from);
		else
			*to = __atomic_load_n(from, __ATOMIC_ACQUIRE);
		to += step;
		from += step;
		bytes -= step;
	}
}

/* The payload of a read response.  0, or 1 iovec; -EACCES: the memory is gone. */
static int response_payload(struct soft_chan *chan, const struct soft_response *response,
	uint32_t offset, uint32_t bytes, bool keep, struct iovec *iov)
{
	uint8_t *from = (uint8_t *)(uintptr_t)(response->source + offset);

	if (!bytes)
		return 0;
	if (soft_pd_check(chan->pd, response->source_key, response->source + offset, bytes,
		    FABRIC_REMOTE_READ) != SOFT_ACCESS_OK)
		return -EACCES;
	*iov = (struct iovec){from, bytes};
	if (response_bounces(chan, response)) {
		if (!keep)
			bounce(chan->tx.bounce, from, bytes);
		iov->iov_base = chan->tx.bounce;
	}
	return 1;
}

static void read_request_put(const struct soft_send *send, uint8_t *out)
{
	const struct ddp_read read = {
		.sink_stag = soft_read_stag(send),
		.sink_offset = soft_read_offset(send),
		.bytes = send->bytes,
		.source_stag = send->remote_key,
		.source_offset = send->remote_addr,
	};

	ddp_read_put(out, &read);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Head and tail of an FPDU whose payload is in `iov`. */
static void fpdu_frame(const struct soft_chan *chan, const struct soft_send *send,
	const struct ddp_header *header, struct soft_fpdu *fpdu, uint32_t payload,
	const struct iovec *iov, unsigned count)
{
	uint8_t *p = fpdu->head + MPA_LENGTH_BYTES;
	size_t ulpdu = ddp_header_put(p, header), pad;
	uint32_t crc;

	if (header->opcode == DDP_READ_REQUEST) {
		read_request_put(send, p + ulpdu);
		ulpdu += DDP_READ_BYTES;
	}
	fpdu->head_bytes = (uint8_t)(MPA_LENGTH_BYTES + ulpdu);
	fpdu->payload_bytes = payload;
	ulpdu += payload;
	pad = mpa_pad_bytes(ulpdu);
	bytes_put16(fpdu->head, (uint16_t)ulpdu);
	fpdu->tail_bytes = (uint8_t)(pad + MPA_CRC_BYTES);
	memset(fpdu->tail, 0, sizeof(fpdu->tail));
	if (!chan->crc)
		return;
	crc = crc32c(0, fpdu->head, fpdu->head_bytes);
	for (unsigned i = 0; i < count; i++)
		crc = crc32c(crc, iov[i].iov_base, iov[i].iov_len);
	mpa_crc_put(fpdu->tail + pad, crc32c(crc, fpdu->tail, pad));
}

/* Moves the cursor behind a segment, and to the next message when it was the last of its own. */
static void cursor_pass(struct soft_cursor *at, const struct ddp_header *header, uint32_t payload)
{
	at->offset += payload;
	if (!header->last)
		return;
	if (at->kind == SOFT_TX_RESPONSE) {
		at->response++;
	} else if (at->kind == SOFT_TX_NUDGE) {
		at->nudges++;
	} else {
		at->next++;
		at->send_msn += header->opcode == DDP_SEND;
		at->read_msn += header->opcode == DDP_READ_REQUEST;
		at->reads += header->opcode == DDP_READ_REQUEST;
	}
	at->kind = SOFT_TX_NONE;
}

/*
 * Builds the FPDU at the cursor and moves the cursor behind it.  `keep`: the frame is there
 * already.  Returns how many iovecs its payload has, or -EACCES.
 */
static int fpdu_build(struct soft_chan *chan, struct soft_cursor *at, struct soft_fpdu *fpdu,
	bool keep, struct iovec *iov)
{
	struct ddp_header header = {0};
	struct soft_send *send = NULL;
	uint32_t total, payload;
	int count;

	if (at->kind == SOFT_TX_NUDGE) {
		total = payload = 0;
		header = (struct ddp_header){.tagged = true, .opcode = DDP_WRITE};
		count = 0;
	} else if (at->kind == SOFT_TX_RESPONSE) {
		const struct soft_response *response =
			&chan->tx.responses[at->response % SOFT_READS_MAX];

		total = response->bytes;
		payload = smaller(
			chan->crc ? SOFT_BOUNCE_BYTES : segment_bytes(total), total - at->offset);
		header = (struct ddp_header){.tagged = true,
			.opcode = DDP_READ_RESPONSE,
			.stag = response->sink_stag,
			.offset = response->sink_offset + at->offset};
		count = response_payload(chan, response, at->offset, payload, keep, iov);
		if (count < 0)
			return count;
	} else {
		send = &chan->sends[at->next & chan->send_mask];
		if (!soft_sges_ok(chan, send))
			return -EACCES;
		total = send->opcode == FABRIC_READ ? 0 : send->bytes;
		payload = smaller(segment_bytes(total), total - at->offset);
		if (send->opcode == FABRIC_WRITE)
			header = (struct ddp_header){.tagged = true,
				.opcode = DDP_WRITE,
				.stag = send->remote_key,
				.offset = send->remote_addr + at->offset};
		else if (send->opcode == FABRIC_READ)
			header = (struct ddp_header){.opcode = DDP_READ_REQUEST,
				.queue = DDP_QUEUE_READ,
				.msn = at->read_msn};
		else
			header = (struct ddp_header){.opcode = DDP_SEND,
				.queue = DDP_QUEUE_SEND,
				.msn = at->send_msn,
				.mo = at->offset};
		count = (int)soft_sge_iov(send->sge, send->sge_count, at->offset, payload, iov);
	}
	header.last = at->offset + payload == total;

	if (!keep)
		fpdu_frame(chan, send, &header, fpdu, payload, iov, (unsigned)count);
	cursor_pass(at, &header, payload);
	return count;
}

static void batch_add(struct soft_thread *thread, struct batch *batch, void *data, size_t bytes)
{
	if (bytes)
		thread->iov[batch->iov_count++] = (struct iovec){data, bytes};
	batch->bytes += bytes;
}

/* Cuts `skip` bytes that the socket has already off the front. */
static void batch_skip(struct soft_thread *thread, struct batch *batch, size_t skip)
{
	unsigned first = 0;

	batch->bytes -= skip;
	while (skip && skip >= thread->iov[first].iov_len)
		skip -= thread->iov[first++].iov_len;
	if (skip) {
		thread->iov[first].iov_base = (uint8_t *)thread->iov[first].iov_base + skip;
		thread->iov[first].iov_len -= skip;
	}
	if (first) {
		batch->iov_count -= first;
		memmove(thread->iov, thread->iov + first,
			batch->iov_count * sizeof(thread->iov[0]));
	}
}

/* Fills the thread's scratch with FPDUs from the cursor on.  Under the pd's lock. */
static void batch_fill(struct soft_chan *chan, struct batch *batch)
{
	struct soft_thread *thread = chan->thread;
	const size_t bytes_max = chan->crc ? SOFT_CRC_TURN_BYTES : SOFT_TURN_BYTES;
	struct soft_cursor at = chan->tx.at;
	struct iovec payload[FABRIC_SGE_MAX];

	*batch = (struct batch){0};
	while (message_choose(chan, &at)) {
		struct soft_fpdu *fpdu = &thread->fpdus[batch->fpdu_count];
		const bool keep = !batch->fpdu_count && chan->tx.part;
		const bool bounced =
			at.kind == SOFT_TX_RESPONSE &&
			response_bounces(chan, &chan->tx.responses[at.response % SOFT_READS_MAX]);
		int count;

		if (batch->bytes >= bytes_max || batch->fpdu_count == SOFT_BATCH_FPDUS ||
			batch->iov_count + FABRIC_SGE_MAX + 2 > SOFT_BATCH_IOV ||
			(bounced && batch->fpdu_count)) {
			batch->more = true;
			break;
		}
		if (keep)
			*fpdu = chan->tx.partial;
		fpdu->kind = (uint8_t)at.kind;
		count = fpdu_build(chan, &at, fpdu, keep, payload);
		if (count < 0) {
			batch->stopped_by_memory = true;
			break;
		}
		batch_add(thread, batch, fpdu->head, fpdu->head_bytes);
		for (int i = 0; i < count; i++)
			batch_add(thread, batch, payload[i].iov_base, payload[i].iov_len);
		batch_add(thread, batch, fpdu->tail, fpdu->tail_bytes);
		if (keep)
			batch_skip(thread, batch, chan->tx.part);
		thread->after[batch->fpdu_count++] = at;
		if (bounced) {
			batch->more = true;
			break;
		}
	}
}

static size_t fpdu_bytes(const struct soft_fpdu *fpdu)
{
	return (size_t)fpdu->head_bytes + fpdu->payload_bytes + fpdu->tail_bytes;
}

/* The socket has taken `sent` bytes of the batch: moves the cursor, completes what is through. */
static void batch_commit(struct soft_chan *chan, const struct batch *batch, size_t sent)
{
	struct soft_thread *thread = chan->thread;
	struct soft_tx *tx = &chan->tx;
	unsigned i;

	sent += tx->part;
	for (i = 0; i < batch->fpdu_count && sent >= fpdu_bytes(&thread->fpdus[i]); i++) {
		sent -= fpdu_bytes(&thread->fpdus[i]);
		tx->at = thread->after[i];
	}
	tx->part = (uint32_t)sent;
	if (sent) {
		tx->partial = thread->fpdus[i];
		/* its message has begun: nothing else may be chosen before it */
		if (tx->at.kind == SOFT_TX_NONE) {
			tx->at.kind = tx->partial.kind;
			tx->at.offset = 0;
		}
	}
	soft_chan_retire(chan);
}

/* After the last request: closes our side, when the user has asked for it. */
static void tx_finish(struct soft_chan *chan)
{
	struct soft_tx *tx = &chan->tx;

	if (!tx->closing || tx->shut || tx->at.kind != SOFT_TX_NONE || tx->part)
		return;
	if (tx->head != tx->limit || tx->at.response != tx->response_tail)
		return;
	shutdown(chan->fd, SHUT_WR);
	tx->shut = true;
}

/* Memory of the message at the cursor is not registered any more. */
static void tx_refused(struct soft_chan *chan)
{
	if (chan->tx.at.kind == SOFT_TX_RESPONSE ||
		(chan->tx.at.kind == SOFT_TX_NONE &&
			chan->tx.at.response != chan->tx.response_tail)) {
		log_debug("soft: memory that the peer reads has been freed");
		/* If it is half on its way it cannot be ended well: soft_tx_rest sees to that. */
		soft_chan_terminate(chan, RDMAP_INVALID_STAG, FABRIC_FLUSHED);
		return;
	}
	log_debug("soft: a posted buffer is not registered");
	soft_chan_break(chan, -EACCES, FABRIC_LOCAL_PROTECTION);
}

/* Something was sent: if nothing has come yet, a nudge may have to follow. */
static void nudge_later(struct soft_chan *chan)
{
	if (chan->rx.heard || chan->tx.nudges == NUDGES || chan->list == &chan->thread->unheard)
		return;
	chan->deadline_ns = clock_now_ns() + (NUDGE_MS << 2 * chan->tx.nudges) * NS_PER_MS;
	soft_chan_move(chan, &chan->thread->unheard);
}

void soft_tx_nudge(struct soft_chan *chan)
{
	soft_chan_move(chan, &chan->thread->others);
	if (chan->rx.heard || chan->tx.closing)
		return;
	chan->tx.nudges++;
	soft_thread_run_soon(chan->thread, chan);
}

bool soft_tx_turn(struct soft_chan *chan)
{
	struct soft_tx *tx = &chan->tx;
	struct msghdr message = {.msg_iov = chan->thread->iov};
	struct batch batch;
	ssize_t n = 0;

	if (!tx->ready || tx->error || tx->shut)
		return false;
	if (!tx->allowed) {
		tx_finish(chan);
		return false;
	}
	pthread_rwlock_rdlock(&chan->pd->lock);
	batch_fill(chan, &batch);
	if (batch.iov_count) {
		message.msg_iovlen = batch.iov_count;
		n = sendmsg(chan->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	pthread_rwlock_unlock(&chan->pd->lock);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		tx->ready = errno == EINTR;
		return tx->ready;
	}
	if (n < 0) {
		/* The peer's last words may still wait to be read: let that side end the channel.
		 */
		tx->error = -errno;
		chan->rx.ready = chan->rx.hangup = true;
		return true;
	}
	batch_commit(chan, &batch, (size_t)n);
	if (n)
		nudge_later(chan);
	if ((size_t)n < batch.bytes) {
		tx->ready = false;
		return false;
	}
	if (batch.stopped_by_memory) {
		tx_refused(chan);
		return false;
	}
	tx_finish(chan);
	return batch.more;
}

bool soft_tx_rest(struct soft_chan *chan, uint8_t *out, uint32_t *bytes)
{
	struct soft_thread *thread = chan->thread;
	struct soft_cursor at = chan->tx.at;
	struct batch batch = {0};
	struct iovec payload[FABRIC_SGE_MAX];
	int count;

	*bytes = 0;
	if (!chan->tx.part)
		return true;
	pthread_rwlock_rdlock(&chan->pd->lock);
	thread->fpdus[0] = chan->tx.partial;
	count = fpdu_build(chan, &at, &thread->fpdus[0], true, payload);
	if (count >= 0) {
		batch_add(thread, &batch, thread->fpdus[0].head, thread->fpdus[0].head_bytes);
		for (int i = 0; i < count; i++)
			batch_add(thread, &batch, payload[i].iov_base, payload[i].iov_len);
		batch_add(thread, &batch, thread->fpdus[0].tail, thread->fpdus[0].tail_bytes);
		batch_skip(thread, &batch, chan->tx.part);
	}
	for (unsigned i = 0; i < batch.iov_count; i++) {
		memcpy(out + *bytes, thread->iov[i].iov_base, thread->iov[i].iov_len);
		*bytes += (uint32_t)thread->iov[i].iov_len;
	}
	pthread_rwlock_unlock(&chan->pd->lock);
	return count >= 0;
}
