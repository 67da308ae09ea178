/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_qp: queue pairs: what they can do, making them, posting.
 *
 * The account of the send queue: every request has a slot from its post until the user has polled
 * it or one behind it.  The device reports only some (signalled by the user, or by us so that a
 * user who signals none can go on), and each report retires all before it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "fabric/verbs/verbs_impl.h"

#define DEPTH_MAX 8192u
#define CHANNELS_HINT 64u
#define SIW_CHANNELS_HINT 16u
/* it copies these behind their header, and has room for them inline */
#define SIW_SHORT_BYTES 32u
#define INLINE_TRY_MAX 512u
#define SPIN_NS 20000u /* about what an interrupt and waking a thread take */
#define BATCH 16u      /* requests handed to the device at once */

_Static_assert(FABRIC_SGE_MAX <= BATCH, "the parts of one request fit a batch");

/* Providers do not agree on the sign of their errors. */
static int error_of(int err)
{
	return err > 0 ? -err : err;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void verbs_qp_caps(struct verbs_chan *chan)
{
	const struct ibv_device_attr *limits = &chan->device->limits;
	const bool iwarp = chan->device->iwarp;
	struct ibv_port_attr port;
	uint32_t message = 1u << 30;

	if (!ibv_query_port(chan->device->context, chan->id->port_num, &port) && port.max_msg_sz)
		message = least(port.max_msg_sz, 1u << 31);
	chan->read_pieces = iwarp ? 1 : FABRIC_SGE_MAX;
	if (iwarp && limits->max_sge_rd > 1)
		chan->read_pieces = least((uint32_t)limits->max_sge_rd, FABRIC_SGE_MAX);
	chan->base.caps = (struct fabric_caps){
		.max_depth = least((uint32_t)limits->max_qp_wr - 1, DEPTH_MAX),
		.max_message_bytes = message,
		.max_channels = chan->device->siw ? SIW_CHANNELS_HINT : CHANNELS_HINT,
		.has_imm = !iwarp, /* RFC 5040 has none; newer iWARP adapters might */
		.has_read = true,
		.read_rights = !chan->device->siw,
		.read_in_order = !chan->device->siw,
		.spin_ns = SPIN_NS,
		.write_ordered = true,
		.write_delivered = !iwarp,
		.is_device = true,
	};
}

/* ---- making ---- */

/* Devices refuse what they cannot do; ask for less until one does. */
static int make_qp(struct verbs_chan *chan, struct ibv_qp_init_attr *init, uint32_t inline_bytes)
{
	const struct ibv_qp_init_attr wanted = *init;

	for (;;) {
		*init = wanted;
		init->cap.max_inline_data = inline_bytes;
		errno = 0; /* libraries forget to say why */
		if (!rdma_create_qp(chan->id, chan->pd->pd, init))
			return 0;
		if (!inline_bytes || (errno != EINVAL && errno != ENOMEM))
			return errno ? -errno : -ENOMEM;
		inline_bytes = inline_bytes > INLINE_TRY_MAX ? INLINE_TRY_MAX : inline_bytes / 2;
	}
}

/* The peer of a request may be gone already, and the connection manager then makes no queue pair
 * for it.  Its user learns that from accept, not here: it is nothing that it did. */
static bool peer_gone(const struct verbs_chan *chan, const struct ibv_qp_init_attr *wanted)
{
	struct ibv_qp_init_attr init = *wanted;
	struct ibv_qp *qp = chan->passive ? ibv_create_qp(chan->pd->pd, &init) : NULL;

	if (qp)
		ibv_destroy_qp(qp);
	return qp != NULL; /* it was not the device that refused */
}

void verbs_qp_flush(struct verbs_chan *chan)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (chan->id->qp)
		ibv_modify_qp(
			chan->id->qp, &attr, IBV_QP_STATE); /* fails when it is there already */
}

static int ring_init(struct verbs_ring *ring, struct verbs_chan *chan, uint32_t depth, bool receive)
{
	ring->slots = calloc(depth + 1, sizeof *ring->slots);
	if (!ring->slots)
		return -ENOMEM;
	ring->depth = depth;
	for (uint32_t i = 0; i <= depth; i++) {
		ring->slots[i].chan = chan;
		ring->slots[i].receive = receive;
		ring->slots[i].opcode = FABRIC_RECV;
	}
	return 0;
}

int verbs_chan_setup(struct fabric_chan *base, const struct fabric_chan_attr *attr)
{
	struct verbs_chan *chan = (struct verbs_chan *)base;
	struct verbs *verbs = VERBS_OF(chan);
	struct verbs_pd *pd = (struct verbs_pd *)attr->pd;
	struct verbs_cq *cq = (struct verbs_cq *)attr->cq;
	struct ibv_qp_init_attr init = {
		.qp_context = chan,
		.cap =
			{
				.max_send_wr = attr->send_depth + 1, /* verbs_qp_mark */
				.max_recv_wr = attr->recv_depth,
				.max_send_sge = FABRIC_SGE_MAX,
				.max_recv_sge = 1,
			},
		.qp_type = IBV_QPT_RC,
	};
	uint32_t inline_bytes = attr->inline_bytes;
	struct ibv_cq *bank;
	int err;

	if (chan->cq)
		return -EINVAL;
	if (pd->device != chan->device || cq->device != chan->device) {
		log_warning(
			"verbs: %s, opened anew: a channel on it cannot use what was made before",
			ibv_get_device_name(chan->device->context->device));
		return -EINVAL;
	}
	err = verbs_cq_reserve(cq, attr->send_depth + attr->recv_depth, &bank);
	if (err)
		return err;
	err = ring_init(&chan->sends, chan, attr->send_depth, false);
	if (!err)
		err = ring_init(&chan->recvs, chan, attr->recv_depth, true);
	if (err)
		goto err_rings;
	chan->pd = pd;
	init.send_cq = init.recv_cq = bank;
	if (chan->device->siw && inline_bytes < SIW_SHORT_BYTES)
		inline_bytes = SIW_SHORT_BYTES;
	err = make_qp(chan, &init, inline_bytes);
	if (err == -EINVAL && peer_gone(chan, &init)) {
		chan->doomed = true;
		err = 0;
	}
	if (err) {
		log_warning("verbs: %s: no queue pair of %u sends and %u receives: error %d",
			ibv_get_device_name(chan->device->context->device), attr->send_depth,
			attr->recv_depth, -err);
		goto err_rings;
	}
	chan->base.caps.inline_max = init.cap.max_inline_data;
	chan->base.context = attr->context;
	/* iWARP completes a request when TCP has it, and siw lets TCP keep the user's pages, to
	 * send them again, for requests that it need not report.  "The buffer is ours again" needs
	 * the report. */
	chan->silent_max = chan->device->iwarp ? 0 : (attr->send_depth - 1) / 2;
	pthread_mutex_lock(&verbs->lock);
	chan->bank = bank;
	chan->cq = cq;
	pthread_mutex_unlock(&verbs->lock);
	return 0;

err_rings:
	free(chan->sends.slots);
	free(chan->recvs.slots);
	chan->sends = chan->recvs = (struct verbs_ring){0};
	verbs_cq_release(cq, bank, attr->send_depth + attr->recv_depth);
	return err;
}

/* ---- posting ---- */

static struct verbs_slot *next_slot(struct verbs_ring *ring)
{
	uint64_t index = atomic_load(&ring->posted);
	struct verbs_slot *slot = &ring->slots[index % (ring->depth + 1)];

	slot->index = index;
	atomic_store(&ring->posted, index + 1);
	return slot;
}

static void unpost(struct verbs_ring *ring, unsigned count)
{
	atomic_fetch_sub(&ring->posted, count);
}

static uint32_t ring_room(const struct verbs_ring *ring)
{
	return ring->depth - (uint32_t)(atomic_load(&ring->posted) - atomic_load(&ring->retired));
}

/* Pieces without bytes are left out: to some devices a length of 0 means 2^31. */
static int make_sges(const struct verbs_chan *chan, const struct fabric_wr *wr, struct ibv_sge *out)
{
	const bool inlined = wr->flags & FABRIC_INLINE;
	int count = 0;

	for (unsigned i = 0; i < wr->sge_count; i++) {
		const struct fabric_sge *sge = &wr->sge[i];
		struct verbs_mr *mr = (struct verbs_mr *)sge->mr;
		int err = 0;

		if (!sge->bytes)
			continue;
		out[count] = (struct ibv_sge){.addr = (uintptr_t)sge->addr, .length = sge->bytes};
		if (!inlined && !verbs_mr_covers(mr, chan->pd, sge->addr, sge->bytes))
			return -EINVAL; /* the device would say the same, and break the channel */
		if (!inlined && wr->opcode == FABRIC_READ)
			err = verbs_mr_sink_key(mr, &out[count].lkey);
		else if (!inlined)
			out[count].lkey = mr->mr->lkey;
		if (err)
			return err;
		count++;
	}
	if (!count && chan->device->siw)
		out[count++] = (struct ibv_sge){0};
	return count;
}

static enum ibv_wr_opcode opcode_of(enum fabric_opcode opcode)
{
	switch (opcode) {
	case FABRIC_WRITE:
		return IBV_WR_RDMA_WRITE;
	case FABRIC_WRITE_IMM:
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	case FABRIC_READ:
		return IBV_WR_RDMA_READ;
	default:
		return IBV_WR_SEND;
	}
}

/* Requests on their way to the device. */
struct batch {
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH][FABRIC_SGE_MAX];
	unsigned count;
	bool begun; /* the device has some of the list */
};

static int batch_flush(struct verbs_chan *chan, struct batch *b)
{
	struct ibv_send_wr *bad = NULL;
	int err;

	if (!b->count)
		return 0;
	for (unsigned i = 0; i < b->count; i++)
		b->wr[i].next = i + 1 < b->count ? &b->wr[i + 1] : NULL;
	err = ibv_post_send(chan->id->qp, b->wr, &bad);
	if (err && !bad) {
		/* siw: they are in its queue, but it could not be told, for the connection is
		 * breaking */
		verbs_chan_suspect(chan);
		err = 0;
	}
	if (err) {
		/* Cannot be for want of room, which was counted.  What the device did not take of
		 * the list never completes: the channel cannot go on. */
		unsigned refused = b->count - (unsigned)(bad - b->wr);

		unpost(&chan->sends, refused);
		if (b->begun || refused < b->count)
			verbs_chan_end(chan, -EIO);
		log_debug("verbs: queue pair %u: posting: error %d", chan->id->qp->qp_num, err);
	}
	b->begun = true;
	b->count = 0;
	return error_of(err);
}

/*
 * Whether the bytes are copied at the post.  What is short siw copies itself, when it sends it:
 * from the posting process if a post is under way, but it believes that also in its sending thread,
 * when that takes over while a post returns.  The copy then fails, and the connection.
 */
static bool goes_inline(const struct verbs_chan *chan, const struct fabric_wr *wr,
	const struct ibv_sge *sge, int count)
{
	if (!count || !sge->length || wr->opcode == FABRIC_READ)
		return false;
	return wr->flags & FABRIC_INLINE ||
	       (chan->device->siw && count == 1 && sge->length <= SIW_SHORT_BYTES);
}

/* One request for the device: `wr`, or a part of it that fills `count` pieces of memory. */
static void batch_add(struct verbs_chan *chan, struct batch *b, const struct fabric_wr *wr,
	struct ibv_sge *sge, int count, bool partial)
{
	struct ibv_send_wr *out = &b->wr[b->count++];
	struct verbs_slot *slot = next_slot(&chan->sends);
	bool wanted = !partial && (wr->flags & FABRIC_SIGNALED);

	slot->id = wr->id;
	slot->opcode = (uint8_t)wr->opcode;
	slot->wanted = wanted;
	slot->partial = partial;
	*out = (struct ibv_send_wr){
		.wr_id = (uintptr_t)slot,
		.sg_list = sge,
		.num_sge = count,
		.opcode = opcode_of(wr->opcode),
	};
	if (wanted || chan->silent_run >= chan->silent_max) {
		out->send_flags = IBV_SEND_SIGNALED;
		chan->silent_run = 0;
	} else {
		chan->silent_run++;
	}
	if (goes_inline(chan, wr, sge, count))
		out->send_flags |= IBV_SEND_INLINE;
	if (chan->device->siw && wr->opcode == FABRIC_READ)
		chan->last_read = slot->index + 1;
	else if (chan->last_read > atomic_load(&chan->sends.done))
		out->send_flags |= IBV_SEND_FENCE; /* or they complete out of order */
	if (wr->opcode == FABRIC_WRITE_IMM)
		out->imm_data = htonl(wr->imm);
	if (wr->opcode != FABRIC_SEND) {
		out->wr.rdma.remote_addr = wr->remote_addr;
		out->wr.rdma.rkey = wr->remote_key;
	}
}

/* Places in the send queue that `wr` takes, or -errno. */
static int places(const struct verbs_chan *chan, const struct fabric_wr *wr)
{
	struct ibv_sge sge[FABRIC_SGE_MAX];
	int count = make_sges(chan, wr, sge);
	int pieces = (int)chan->read_pieces;

	if (count < 0)
		return count;
	return wr->opcode == FABRIC_READ && count > pieces ? (count + pieces - 1) / pieces : 1;
}

static int post_one(struct verbs_chan *chan, struct batch *b, const struct fabric_wr *wr)
{
	struct ibv_sge *sge = b->sge[b->count];
	int pieces = wr->opcode == FABRIC_READ ? (int)chan->read_pieces : FABRIC_SGE_MAX;
	struct fabric_wr part = *wr;
	int count = make_sges(chan, wr, sge);

	if (count < 0)
		return count;
	while (count > pieces) {
		batch_add(chan, b, &part, sge, pieces, true);
		for (int i = 0; i < pieces; i++)
			part.remote_addr += sge[i].length;
		sge += pieces;
		count -= pieces;
	}
	batch_add(chan, b, &part, sge, count, false);
	return 0;
}

static bool is_open(const struct verbs_chan *chan)
{
	return atomic_load(&chan->state) == VERBS_CONNECTED;
}

int verbs_post_send(struct fabric_chan *base, const struct fabric_wr *list)
{
	struct verbs_chan *chan = (struct verbs_chan *)base;
	struct batch b;
	uint32_t need = 0;
	int err = 0;

	if (!is_open(chan))
		return -ENOTCONN;
	for (const struct fabric_wr *wr = list; wr; wr = wr->next) {
		int n = places(chan, wr);

		if (n < 0)
			return n;
		need += (uint32_t)n;
	}
	if (need > ring_room(&chan->sends)) {
		/* requests that the user does not hear of may be done */
		verbs_cq_progress(chan->cq);
		if (need > ring_room(&chan->sends))
			return -ENOMEM;
	}
	b.count = 0;
	b.begun = false;
	for (const struct fabric_wr *wr = list; wr && !err; wr = wr->next) {
		if (b.count + FABRIC_SGE_MAX > BATCH)
			err = batch_flush(chan, &b);
		if (!err)
			err = post_one(chan, &b, wr);
	}
	return err ? err : batch_flush(chan, &b);
}

int verbs_qp_mark(struct verbs_chan *chan)
{
	/* An empty WRITE: acknowledged, but uses no receive and touches no memory. */
	const struct fabric_wr empty = {.opcode = FABRIC_WRITE};
	struct batch b = {.count = 0};

	chan->silent_run = chan->silent_max;
	batch_add(chan, &b, &empty, b.sge[0], make_sges(chan, &empty, b.sge[0]),
		true); /* as a part, it is nobody's to hear of */
	return batch_flush(chan, &b);
}

void verbs_qp_nudge(struct verbs_chan *chan)
{
	struct ibv_sge none = {0};
	struct ibv_send_wr wr = {.sg_list = &none, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	/* Not reported when it succeeds; the place for verbs_qp_mark is there for it.  When it
	 * fails, so does the connection, and others say that. */
	if (ibv_post_send(chan->id->qp, &wr, &bad))
		log_debug("verbs: queue pair %u: could not be nudged", chan->id->qp->qp_num);
}

int verbs_post_recv(
	struct fabric_chan *base, uint64_t id, void *addr, uint32_t bytes, struct fabric_mr *mr)
{
	struct verbs_chan *chan = (struct verbs_chan *)base;
	const struct verbs_mr *memory = (const struct verbs_mr *)mr;
	struct ibv_sge sge = {.addr = (uintptr_t)addr, .length = bytes};
	struct ibv_recv_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = bytes || chan->device->siw,
				   },
			   *bad;
	const int state = atomic_load(&chan->state);
	struct verbs_slot *slot;
	int err;

	if (!chan->cq)
		return -EINVAL;
	if (state != VERBS_NEW && state != VERBS_CONNECTING && state != VERBS_CONNECTED)
		return -ENOTCONN;
	if (bytes) {
		if (!verbs_mr_covers(memory, chan->pd, addr, bytes))
			return -EINVAL;
		sge.lkey = memory->mr->lkey;
	}
	if (!ring_room(&chan->recvs))
		return -ENOMEM;
	slot = next_slot(&chan->recvs);
	slot->id = id;
	slot->wanted = true;
	wr.wr_id = (uintptr_t)slot;
	err = chan->doomed ? 0 : ibv_post_recv(chan->id->qp, &wr, &bad);
	if (err)
		unpost(&chan->recvs, 1);
	return error_of(err);
}
