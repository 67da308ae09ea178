/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_cq: completion queues.
 *
 * A completion is taken from the device by whoever looks first: the user, or the fabric's thread,
 * which leaves it in the stash for the user.  The user's fd is the device's own: a completion that
 * the thread took after the user armed has made it readable all the same.
 *
 * A request keeps its place in its channel's queue until the user has polled it, so neither the
 * stash nor the device's queue can hold more than was reserved.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "fabric/verbs/verbs_impl.h"

#define BATCH 16
#define STASH_ROOM_FIRST 64u

/* ---- making ---- */

static int bank_add(struct verbs_cq *cq, uint32_t want)
{
	const uint32_t most = (uint32_t)cq->device->limits.max_cqe;
	struct ibv_context *context = cq->device->context;
	struct verbs *verbs = VERBS_OF(cq);
	struct verbs_bank *banks = realloc(cq->banks, (cq->bank_count + 1) * sizeof *banks);
	struct verbs_bank *bank;

	if (!banks)
		return -ENOMEM;
	cq->banks = banks;
	bank = &banks[cq->bank_count];
	want += want / 16 + 16; /* a mark for each channel */
	*bank = (struct verbs_bank){.size = want < most ? want : most};
	bank->cq = ibv_create_cq(context, (int)bank->size, NULL, cq->channel,
		(int)(atomic_fetch_add(&verbs->next_vector, 1) %
			(unsigned)context->num_comp_vectors));
	if (!bank->cq)
		return -errno;
	cq->bank_count++;
	return 0;
}

static int make_fd(struct verbs_cq *cq)
{
	struct epoll_event event = {.events = EPOLLIN};
	int err = verbs_fd_nonblock(cq->channel->fd);

	if (err)
		return err;
	cq->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cq->wake < 0)
		return -errno;
	cq->fd = epoll_create1(EPOLL_CLOEXEC);
	if (cq->fd < 0) {
		err = -errno;
		goto err_wake;
	}
	if (!epoll_ctl(cq->fd, EPOLL_CTL_ADD, cq->channel->fd, &event) &&
		!epoll_ctl(cq->fd, EPOLL_CTL_ADD, cq->wake, &event))
		return 0;
	err = -errno;
	close(cq->fd);
err_wake:
	close(cq->wake);
	return err;
}

int verbs_cq_new(struct fabric_pd *base, uint32_t depth, struct fabric_cq **out)
{
	struct verbs_pd *pd = (struct verbs_pd *)base;
	struct verbs *verbs = VERBS_OF(pd);
	struct verbs_cq *cq = calloc(1, sizeof *cq);
	int err;

	if (!cq)
		return -ENOMEM;
	cq->base.fabric = base->fabric;
	cq->device = pd->device;
	cq->depth = depth;
	cq->channel = ibv_create_comp_channel(cq->device->context);
	if (!cq->channel) {
		err = -errno;
		goto err_cq;
	}
	err = make_fd(cq);
	if (err)
		goto err_channel;
	err = bank_add(cq, depth);
	if (err)
		goto err_fd;
	pthread_mutex_init(&cq->lock, NULL);
	pthread_mutex_lock(&verbs->lock);
	cq->device->users++;
	pthread_mutex_unlock(&verbs->lock);
	*out = &cq->base;
	return 0;

err_fd:
	close(cq->fd);
	close(cq->wake);
err_channel:
	ibv_destroy_comp_channel(cq->channel);
err_cq:
	free(cq->banks);
	free(cq);
	return err;
}

void verbs_cq_free(struct fabric_cq *base)
{
	struct verbs_cq *cq = (struct verbs_cq *)base;
	struct verbs *verbs = VERBS_OF(cq);

	assert(!cq->reserved); /* its channels go first */
	verbs_cq_ack(base);
	for (unsigned i = 0; i < cq->bank_count; i++) {
		struct verbs_bank *bank = &cq->banks[i];
		int err;

		if (bank->unacked)
			ibv_ack_cq_events(bank->cq, bank->unacked);
		err = ibv_destroy_cq(bank->cq);
		if (err)
			log_error("verbs: completion queue: not freed: error %d", err);
	}
	close(cq->fd);
	close(cq->wake);
	ibv_destroy_comp_channel(cq->channel);
	pthread_mutex_lock(&verbs->lock);
	verbs_device_put(verbs, cq->device);
	pthread_mutex_unlock(&verbs->lock);
	pthread_mutex_destroy(&cq->lock);
	free(cq->banks);
	free(cq->stash);
	free(cq);
}

static struct verbs_bank *bank_with_room(struct verbs_cq *cq, uint32_t count)
{
	for (unsigned i = 0; i < cq->bank_count; i++)
		if (cq->banks[i].size - cq->banks[i].reserved >= count)
			return &cq->banks[i];
	return NULL;
}

int verbs_cq_reserve(struct verbs_cq *cq, uint32_t count, struct ibv_cq **out)
{
	struct verbs_bank *bank;
	int err = -EINVAL;

	pthread_mutex_lock(&cq->lock);
	if (count > cq->depth - cq->reserved)
		goto out;
	bank = bank_with_room(cq, count + 1);
	if (!bank) {
		err = bank_add(cq, cq->depth - cq->reserved);
		if (err)
			goto out;
		bank = bank_with_room(cq, count + 1);
	}
	if (bank) {
		cq->reserved += count;
		bank->reserved += count + 1;
		*out = bank->cq;
	}
	err = bank ? 0 : -EINVAL; /* more than the device has in one queue */
out:
	pthread_mutex_unlock(&cq->lock);
	return err;
}

void verbs_cq_release(struct verbs_cq *cq, struct ibv_cq *bank, uint32_t count)
{
	pthread_mutex_lock(&cq->lock);
	cq->reserved -= count;
	for (unsigned i = 0; i < cq->bank_count; i++)
		if (cq->banks[i].cq == bank)
			cq->banks[i].reserved -= count + 1;
	pthread_mutex_unlock(&cq->lock);
}

/* ---- from the device ---- */

static struct verbs_ring *ring_of(struct verbs_chan *chan, bool receive)
{
	return receive ? &chan->recvs : &chan->sends;
}

static enum fabric_opcode opcode_of(const struct verbs_slot *slot, const struct ibv_wc *raw)
{
	if (slot->receive && raw->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return FABRIC_RECV_IMM;
	return slot->opcode;
}

/* What became of a request of which parts went before. */
static enum ibv_wc_status join_parts(
	struct verbs_chan *chan, const struct verbs_slot *slot, enum ibv_wc_status status)
{
	if (chan->part_status != IBV_WC_SUCCESS)
		status = chan->part_status;
	chan->part_status = slot->partial ? status : IBV_WC_SUCCESS;
	return status;
}

/* False: it is nobody's, or was flushed already. */
static bool take(const struct ibv_wc *raw, struct verbs_done *out)
{
	const struct verbs_slot *slot = (const struct verbs_slot *)(uintptr_t)raw->wr_id;
	enum ibv_wc_status status = raw->status;
	struct verbs_chan *chan;

	if (!slot) /* a nudge that failed */
		return false;
	chan = slot->chan;
	if (slot->index < atomic_load(&ring_of(chan, slot->receive)->done))
		return false;
	if (status != IBV_WC_SUCCESS)
		verbs_chan_failed(chan, raw);
	if (!slot->receive)
		status = join_parts(chan, slot, status);
	*out = (struct verbs_done){
		.wc =
			{
				.id = slot->id,
				.chan = &chan->base,
				.status = verbs_name_status(status, slot->receive),
				.opcode = opcode_of(slot, raw),
			},
		.index = slot->index,
		.receive = slot->receive,
		.silent = slot->partial || (!slot->wanted && status == IBV_WC_SUCCESS),
	};
	if (slot->receive && status == IBV_WC_SUCCESS) {
		if (chan->passive && atomic_load(&chan->state) == VERBS_CONNECTING)
			verbs_cm_heard(chan);
		out->wc.bytes = raw->byte_len;
		if (raw->wc_flags & IBV_WC_WITH_IMM)
			out->wc.imm = ntohl(raw->imm_data);
	}
	/* requests of a ring complete in order: those below it that nobody reports are done, too */
	atomic_store(&ring_of(chan, slot->receive)->done, slot->index + 1);
	return true;
}

/* The places of this request, and of those before it, may be used again. */
static void retire(const struct verbs_done *done)
{
	struct verbs_chan *chan = (struct verbs_chan *)done->wc.chan;

	atomic_store(&ring_of(chan, done->receive)->retired, done->index + 1);
}

/* ---- the stash ---- */

static struct verbs_done *stash_at(struct verbs_cq *cq, uint32_t i)
{
	return &cq->stash[(cq->stash_head + i) % cq->stash_room];
}

static bool stash_grow(struct verbs_cq *cq)
{
	uint32_t room = cq->stash_room ? 2 * cq->stash_room : STASH_ROOM_FIRST;
	struct verbs_done *stash = malloc(room * sizeof *stash);

	if (!stash)
		return false;
	for (uint32_t i = 0; i < cq->stash_count; i++)
		stash[i] = *stash_at(cq, i);
	free(cq->stash);
	cq->stash = stash;
	cq->stash_room = room;
	cq->stash_head = 0;
	return true;
}

static void stash_push(struct verbs_cq *cq, const struct verbs_done *done)
{
	struct verbs_chan *chan = (struct verbs_chan *)done->wc.chan;

	if (done->silent && !chan->stashed) {
		retire(done);
		return;
	}
	*stash_at(cq, cq->stash_count++) = *done;
	chan->stashed++;
}

static bool stash_pop(struct verbs_cq *cq, struct verbs_done *out)
{
	if (!cq->stash_count)
		return false;
	*out = *stash_at(cq, 0);
	cq->stash_head = (cq->stash_head + 1) % cq->stash_room;
	cq->stash_count--;
	((struct verbs_chan *)out->wc.chan)->stashed--;
	return true;
}

/* Without memory for the stash they stay where they are. */
static void progress(struct verbs_cq *cq)
{
	for (unsigned i = 0; i < cq->bank_count; i++) {
		struct ibv_wc raw[BATCH];
		int n;

		do {
			while (cq->stash_room - cq->stash_count < BATCH)
				if (!stash_grow(cq))
					return;
			n = ibv_poll_cq(cq->banks[i].cq, BATCH, raw);
			for (int j = 0; j < n; j++) {
				struct verbs_done done;

				if (take(&raw[j], &done))
					stash_push(cq, &done);
			}
		} while (n == BATCH);
	}
}

void verbs_cq_progress(struct verbs_cq *cq)
{
	pthread_mutex_lock(&cq->lock);
	progress(cq);
	pthread_mutex_unlock(&cq->lock);
}

void verbs_cq_progress_if_idle(struct verbs_cq *cq)
{
	pthread_mutex_lock(&cq->lock);
	if (!cq->polled) {
		progress(cq);
		/* in case that the device told nobody */
		if (cq->stash_count)
			verbs_cq_raise(cq);
	}
	cq->polled = false;
	pthread_mutex_unlock(&cq->lock);
}

static void flush_ring(struct verbs_cq *cq, const struct verbs_chan *chan, struct verbs_ring *ring)
{
	uint64_t i = atomic_load(&ring->done);

	for (; i < atomic_load(&ring->posted); i++) {
		const struct verbs_slot *slot = &ring->slots[i % (ring->depth + 1)];
		const struct ibv_wc raw = {.wr_id = (uintptr_t)slot, .status = IBV_WC_WR_FLUSH_ERR};
		struct verbs_done done;

		if (cq->stash_count == cq->stash_room && !stash_grow(cq)) {
			log_error("verbs: queue pair %u: no memory to flush it",
				chan->id->qp->qp_num);
			return;
		}
		take(&raw, &done);
		stash_push(cq, &done);
	}
}

void verbs_cq_flush(struct verbs_cq *cq, struct verbs_chan *chan)
{
	pthread_mutex_lock(&cq->lock);
	progress(cq);
	flush_ring(cq, chan, &chan->sends);
	flush_ring(cq, chan, &chan->recvs);
	verbs_cq_raise(cq);
	pthread_mutex_unlock(&cq->lock);
}

void verbs_cq_forget(struct verbs_cq *cq, struct verbs_chan *chan)
{
	struct verbs *verbs = VERBS_OF(cq);
	uint32_t kept = 0;

	/* Whoever polls may just be telling the device that this channel failed; and librdmacm uses
	 * the queue pair in taking some events, which the thread does with verbs.lock held. */
	pthread_mutex_lock(&verbs->lock);
	pthread_mutex_lock(&cq->lock);
	/* The device touches no buffer after this.  What it completed is still in its queue, or is
	 * not: drivers differ. */
	if (chan->id->qp)
		rdma_destroy_qp(chan->id);
	pthread_mutex_unlock(&verbs->lock);
	progress(cq);
	for (uint32_t i = 0; i < cq->stash_count; i++) {
		struct verbs_done *from = stash_at(cq, i);

		if (from->wc.chan != &chan->base)
			*stash_at(cq, kept++) = *from;
	}
	cq->stash_count = kept;
	pthread_mutex_unlock(&cq->lock);
}

/* ---- for the user ---- */

/* One completion that the user shall see?  Its place is free again in any case. */
static bool give(const struct verbs_done *done, struct fabric_wc *wc)
{
	retire(done);
	if (!done->silent)
		*wc = done->wc;
	return !done->silent;
}

static int poll_bank(struct ibv_cq *bank, struct fabric_wc *wc, int max)
{
	struct ibv_wc raw[BATCH];
	int count = 0;

	while (count < max) {
		int want = max - count < BATCH ? max - count : BATCH;
		int n = ibv_poll_cq(bank, want, raw);

		if (n < 0)
			return count ? count : -EIO;
		for (int i = 0; i < n; i++) {
			struct verbs_done done;

			if (take(&raw[i], &done))
				count += give(&done, wc + count);
		}
		if (n < want)
			break;
	}
	return count;
}

int verbs_cq_poll(struct fabric_cq *base, struct fabric_wc *wc, int max)
{
	struct verbs_cq *cq = (struct verbs_cq *)base;
	struct verbs_done done;
	int count = 0, got = 0;

	pthread_mutex_lock(&cq->lock);
	cq->polled = true;
	while (count < max && stash_pop(cq, &done))
		count += give(&done, wc + count);
	for (unsigned i = 0; i < cq->bank_count && count < max && got >= 0; i++) {
		struct verbs_bank *bank = &cq->banks[cq->next_bank++ % cq->bank_count];

		got = poll_bank(bank->cq, wc + count, max - count);
		if (got > 0)
			count += got;
	}
	pthread_mutex_unlock(&cq->lock);
	return count ? count : got;
}
