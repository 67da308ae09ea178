/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/channel: see channel.h.
 */
#include "engine/channel.h"

#include "proto/status.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POLL_BATCH 32
#define CHANNEL_OTHERS 2u /* requests beside those of blocks: two READs, or a flush */

static uint32_t send_depth(uint32_t depth)
{
	return 2 * depth + CHANNEL_OTHERS;
}

/* Receives: of notices, of early ones, and of the greeting. */
static uint32_t recv_depth(uint32_t depth)
{
	return depth + TRANSFER_EARLY_MAX + 1;
}

uint32_t channel_completions(uint32_t depth)
{
	return send_depth(depth) + recv_depth(depth);
}

/* Sets of receives that the slots are in. */
static uint32_t receives_count(uint32_t depth)
{
	return (recv_depth(depth) - 1) / CHANNEL_RECEIVES + 1;
}

static uint32_t posted_receives(const struct channel *l)
{
	return recv_depth(l->depth) - l->idle_count;
}

static uint8_t *slot_bytes(const struct channel *l, uint32_t slot)
{
	return l->receives[slot / CHANNEL_RECEIVES].bytes +
	       (size_t)(slot % CHANNEL_RECEIVES) * CHANNEL_RECEIVE_BYTES;
}

static int make_receives(struct channel *l, uint32_t slot)
{
	struct channel_receives *made = &l->receives[slot / CHANNEL_RECEIVES];
	const size_t bytes = (size_t)CHANNEL_RECEIVES * CHANNEL_RECEIVE_BYTES;
	int err;

	if (made->bytes)
		return 0;
	made->bytes = calloc(1, bytes);
	if (!made->bytes)
		return -ENOMEM;
	err = fabric_mr_new(l->pd, made->bytes, bytes, FABRIC_LOCAL, &made->mr);
	if (err) {
		free(made->bytes);
		made->bytes = NULL;
	}
	return err;
}

int channel_new(struct fabric_chan *chan, struct fabric_pd *pd, struct fabric_cq *cq,
	unsigned number, uint32_t depth, struct channel **out)
{
	struct channel *l = calloc(1, sizeof *l);
	struct fabric_chan_attr attr = {
		.pd = pd,
		.cq = cq,
		.send_depth = send_depth(depth),
		.recv_depth = recv_depth(depth),
		.inline_bytes = CHANNEL_NOTICE_BYTES,
		.context = l,
	};
	int err = -ENOMEM;

	if (!l) {
		fabric_chan_free(chan);
		return err;
	}
	l->pd = pd;
	l->chan = chan;
	l->number = number;
	l->depth = depth;
	l->receives = calloc(receives_count(depth), sizeof *l->receives);
	l->idle = malloc(recv_depth(depth) * sizeof *l->idle);
	if (!l->receives || !l->idle || send_queue_init(&l->queue, send_depth(depth)))
		goto err_free;
	l->idle_count = recv_depth(depth);
	for (uint32_t i = 0; i < l->idle_count; i++)
		l->idle[i] = l->idle_count - 1 - i;
	err = make_receives(l, 0);
	if (!err)
		err = fabric_chan_setup(chan, &attr);
	if (err)
		goto err_free;
	*out = l;
	return 0;

err_free:
	channel_free(l);
	return err;
}

void channel_free(struct channel *l)
{
	if (!l)
		return;
	fabric_chan_free(l->chan);
	for (uint32_t i = 0; l->receives && i < receives_count(l->depth); i++) {
		fabric_mr_free(l->receives[i].mr);
		free(l->receives[i].bytes);
	}
	free(l->receives);
	free(l->idle);
	send_queue_fini(&l->queue);
	free(l);
}

void channel_reset_counts(struct channel *l)
{
	l->counts = (struct channel_counts){
		.send_queue = l->queue.out,
		.receive_queue = posted_receives(l),
	};
}

/* ---- the send queue ---- */

static void count_request(struct channel *l, const struct fabric_wr *wr)
{
	struct channel_counts *n = &l->counts;

	switch (wr->opcode) {
	case FABRIC_READ:
		n->reads++;
		break;
	case FABRIC_SEND:
		n->sends++;
		break;
	default:
		n->writes++;
		break;
	}
	n->signalled += (wr->flags & FABRIC_SIGNALED) != 0;
}

int channel_post(struct channel *l, const struct fabric_wr *list, uint32_t blocks)
{
	int err = fabric_post_send(l->chan, list);

	for (; !err && list; list = list->next) {
		struct send_count n = {.requests = 1, .blocks = list->next ? 0 : blocks};

		count_request(l, list);
		send_queue_post(&l->queue, n, list->flags & FABRIC_SIGNALED);
		if (l->queue.out > l->counts.send_queue)
			l->counts.send_queue = l->queue.out;
	}
	return err;
}

/* Keeps the notice of an early block, which may have come before its transfer: 0; 1: it is none;
 * -EBADMSG. */
static int take_early(struct channel *l, const struct fabric_wc *wc, struct verdict *verdict)
{
	uint32_t slot = CHANNEL_ID_NUMBER(wc->id);
	struct transfer_notice_msg msg;

	if (transfer_get_notice(&msg, slot_bytes(l, slot), wc->bytes) ||
		msg.index < TRANSFER_EARLY_FIRST)
		return 1;
	channel_take_notice(l, slot);
	if (l->early_count == l->early_most) {
		verdict_set(verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"an early block is not allowed on data channel %u: it can have no more",
			l->number);
		return -EBADMSG;
	}
	l->early[l->early_count++] = msg.index - TRANSFER_EARLY_FIRST;
	return channel_post_notices(l, 0);
}

bool channel_take_early(struct channel *l, uint32_t *slot)
{
	if (!l->early_count)
		return false;
	*slot = l->early[0];
	memmove(l->early, l->early + 1, --l->early_count * sizeof *l->early);
	return true;
}

int channel_completion(const struct fabric_wc *wc, uint32_t *blocks, struct verdict *verdict)
{
	struct channel *l = fabric_chan_context(wc->chan);

	*blocks = 0;
	if (wc->status != FABRIC_OK) {
		verdict_set(verdict, VERDICT_SESSION, STATUS_DISCONNECTED,
			"data channel %u broke: %s", l->number, fabric_status_name(wc->status));
		return -ECONNRESET;
	}
	if (wc->opcode != FABRIC_RECV && wc->opcode != FABRIC_RECV_IMM)
		*blocks = send_queue_complete(&l->queue);
	if (CHANNEL_ID_WHAT(wc->id) == CHANNEL_NOTICE && wc->opcode == FABRIC_RECV)
		return take_early(l, wc, verdict);
	if (CHANNEL_ID_WHAT(wc->id) != CHANNEL_GREETING)
		return 1;
	if (wc->opcode == FABRIC_RECV) {
		channel_take_notice(l, CHANNEL_ID_NUMBER(wc->id));
		l->greeted = true;
	}
	return 0;
}

int channel_check(struct channel *const *channels, unsigned count, struct verdict *verdict)
{
	for (unsigned i = 0; i < count; i++) {
		if (!channels[i]->dead)
			continue;
		verdict_set(verdict, VERDICT_SESSION, STATUS_DISCONNECTED,
			"data channel %u broke, or the peer has closed it", i);
		return -ECONNRESET;
	}
	return 0;
}

int channel_check_idle(struct fabric_cq *cq, struct channel *const *channels, unsigned count,
	struct verdict *verdict)
{
	struct fabric_wc wc[POLL_BATCH];
	int n;

	while ((n = fabric_cq_poll(cq, wc, POLL_BATCH)) > 0)
		for (int i = 0; i < n; i++) {
			uint32_t sent;
			int err = channel_completion(&wc[i], &sent, verdict);

			if (err < 0)
				return err;
		}
	return n ? n : channel_check(channels, count, verdict);
}

/* ---- receives, greetings, notices ---- */

static int post_one(struct channel *l, enum channel_request what)
{
	uint32_t slot = l->idle[l->idle_count - 1];
	int err = make_receives(l, slot);

	if (!err)
		err = fabric_post_recv(l->chan, CHANNEL_ID(what, slot), slot_bytes(l, slot),
			CHANNEL_RECEIVE_BYTES, l->receives[slot / CHANNEL_RECEIVES].mr);
	if (err)
		return err;
	l->idle_count--;
	l->counts.receives++;
	if (posted_receives(l) > l->counts.receive_queue)
		l->counts.receive_queue = posted_receives(l);
	return 0;
}

int channel_greet(struct channel *l)
{
	/* memory of the slot that is used last: registered, for fabrics without inline, and zeros
	 */
	uint32_t last = recv_depth(l->depth) < CHANNEL_RECEIVES ? recv_depth(l->depth) - 1
								: CHANNEL_RECEIVES - 1;
	struct fabric_sge sge = {slot_bytes(l, last), 4, l->receives[0].mr};
	struct fabric_wr wr = {
		.id = CHANNEL_ID(CHANNEL_GREETING, 0),
		.opcode = FABRIC_SEND,
		.flags = FABRIC_SIGNALED |
			 (fabric_chan_caps(l->chan)->inline_max >= 4 ? FABRIC_INLINE : 0),
		.sge = &sge,
		.sge_count = 1,
	};

	assert(!posted_receives(l));
	l->greeted = true;
	return channel_post(l, &wr, 0);
}

int channel_expect_greeting(struct channel *l, unsigned early)
{
	int err = post_one(l, CHANNEL_GREETING);

	assert(early <= TRANSFER_EARLY_MAX);
	l->early_most = early;
	return err ? err : channel_post_notices(l, 0);
}

int channel_post_notices(struct channel *l, uint32_t count)
{
	int err = 0;

	/* what is not idle is posted already, by this transfer or one before it; the greeting's
	 * receive is the greeting's */
	if (!l->greeted)
		count++;
	count += l->early_most;
	while (!err && l->idle_count && posted_receives(l) < count)
		err = post_one(l, CHANNEL_NOTICE);
	return err;
}

const uint8_t *channel_take_notice(struct channel *l, uint32_t slot)
{
	assert(slot < recv_depth(l->depth) && posted_receives(l));
	l->idle[l->idle_count++] = slot;
	return slot_bytes(l, slot);
}
