/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_tx: gives posted requests, and answers to the peer's reads, to the socket as
 * FPDUs (soft_fpdu.c): one sendmsg for many, headers from the thread's scratch, payload from where
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
#include "fabric/soft/soft_impl.h"

#define NUDGE_MS 10u /* 10, 40, 160, 640 ms apart */
#define NUDGES 4u

struct batch {
	unsigned iov_count;
	unsigned fpdu_count;
	size_t bytes;
	bool more; /* there was more to send than found room */
	bool stopped_by_memory;
};

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
			soft_fpdu_bounces(chan, &chan->tx.responses[at.response % SOFT_READS_MAX]);
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
		count = soft_fpdu_build(chan, &at, fpdu, keep, payload);
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

/* The socket has taken `sent` bytes of the batch: moves the cursor, completes what is through. */
static void batch_commit(struct soft_chan *chan, const struct batch *batch, size_t sent)
{
	struct soft_thread *thread = chan->thread;
	struct soft_tx *tx = &chan->tx;
	unsigned i;

	sent += tx->part;
	for (i = 0; i < batch->fpdu_count && sent >= soft_fpdu_bytes(&thread->fpdus[i]); i++) {
		sent -= soft_fpdu_bytes(&thread->fpdus[i]);
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
	count = soft_fpdu_build(chan, &at, &thread->fpdus[0], true, payload);
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
