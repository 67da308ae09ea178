/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/loop/loop_wire: requests of the loop fabric on their way: posting them, the one thread
 * that takes them in turn, and the faults it meets.
 *
 * Faults repeat with the seed: each choice depends on the seed, the channel's number, its side and
 * the ordinal of the request in it, never on which thread came first.  Only the count that
 * cut_after and error_after compare with is of the whole fabric.
 */
#include "fabric/loop/loop_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define HOLD_REQUESTS 8   /* a held request lets 1 to so many of other channels pass ... */
#define HOLD_NS 200000ull /* ... but waits no longer than this for them */

enum choice { CHOICE_DELAY, CHOICE_REORDER, CHOICE_HOLD };

/* ---- choices ---- */

static uint64_t choose(const struct loop_chan *chan, uint64_t ordinal, enum choice what)
{
	uint64_t z = LOOP_OF(chan)->faults.seed;
	const uint64_t words[] = {chan->number * 2ull + chan->acceptor, ordinal, what};

	/* Each word is stirred in with the finalizer of MurmurHash3. */
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		z = (z ^ words[i]) + 0x9e3779b97f4a7c15ull;
		z = (z ^ (z >> 33)) * 0xff51afd7ed558ccdull;
		z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53ull;
		z ^= z >> 33;
	}
	return z;
}

/* ---- the run queue ---- */

static void wire_wake(struct loop_chan *chan)
{
	struct loop *loop = LOOP_OF(chan);

	if (chan->stalled)
		return;
	if (!chan->runnable) {
		TAILQ_INSERT_TAIL(&loop->run, chan, run_link);
		chan->runnable = true;
	}
	if (loop->wire_waits) {
		loop->wire_waits = false;
		pthread_cond_signal(&loop->work);
	}
}

void loop_wire_idle(struct loop_chan *chan)
{
	if (chan->runnable)
		TAILQ_REMOVE(&LOOP_OF(chan)->run, chan, run_link);
	chan->runnable = false;
}

/* Whether the channel's first request may go now; if not, *wake_ns says when at the latest. */
static bool may_go(struct loop_chan *chan, uint64_t now_ns, uint64_t *wake_ns)
{
	struct loop *loop = LOOP_OF(chan);
	struct loop_request *req = &chan->sends[chan->send_head];
	uint64_t until = req->due_ns;

	if (until <= now_ns && loop->faults.reorder_permille && !req->decided) {
		req->decided = true;
		if (choose(chan, req->ordinal, CHOICE_REORDER) % 1000 <
			loop->faults.reorder_permille) {
			req->hold_count = loop->executed + 1 +
					  choose(chan, req->ordinal, CHOICE_HOLD) % HOLD_REQUESTS;
			req->hold_ns = now_ns + HOLD_NS;
			log_debug("loop: channel %u%s holds request %" PRIu64, chan->number,
				chan->acceptor ? "a" : "d", req->ordinal);
		}
	}
	if (loop->executed < req->hold_count && until < req->hold_ns)
		until = req->hold_ns;
	if (until <= now_ns)
		return true;
	if (until < *wake_ns)
		*wake_ns = until;
	return false;
}

/* The channel whose turn it is, or NULL: then *wake_ns is when to look again. */
static struct loop_chan *pick(struct loop *loop, uint64_t *wake_ns)
{
	struct loop_chan *chan;
	uint64_t now_ns;

	*wake_ns = UINT64_MAX;
	if (!loop->faults.delay_us && !loop->faults.reorder_permille)
		return TAILQ_FIRST(&loop->run);
	now_ns = clock_now_ns();
	TAILQ_FOREACH(chan, &loop->run, run_link)
	{
		if (may_go(chan, now_ns, wake_ns))
			return chan;
	}
	return NULL;
}

/* ---- the wire ---- */

static void cut(struct loop *loop)
{
	struct loop_chan *chan;

	log_debug("loop: request %" PRIu64 " cuts every channel", loop->executed);
	LIST_FOREACH(chan, &loop->chans, link)
	loop_chan_end(chan, -ECONNRESET);
}

static void wait_for_work(struct loop *loop, uint64_t wake_ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(wake_ns / NS_PER_S),
		.tv_nsec = (long)(wake_ns % NS_PER_S),
	};

	loop->wire_waits = true;
	if (wake_ns == UINT64_MAX)
		pthread_cond_wait(&loop->work, &loop->lock);
	else
		pthread_cond_timedwait(&loop->work, &loop->lock, &until);
	loop->wire_waits = false;
}

static bool stalls(struct loop_chan *chan)
{
	struct loop *loop = LOOP_OF(chan);
	enum fabric_opcode opcode = chan->sends[chan->send_head].opcode;

	if (opcode == FABRIC_WRITE || opcode == FABRIC_WRITE_IMM)
		chan->stalled = ++loop->writes == loop->faults.stall_after;
	return chan->stalled;
}

/* The first request of this channel. */
static void carry(struct loop *loop, struct loop_chan *chan)
{
	loop_wire_idle(chan);
	if (loop->faults.stall_after && stalls(chan))
		return;
	if (++loop->executed == loop->faults.cut_after) {
		cut(loop);
		return;
	}
	/* Back to the end of the queue before the lock is dropped: whoever frees or ends the
	 * channel meanwhile takes it out again. */
	if (chan->send_count > 1)
		wire_wake(chan);
	loop_execute(chan);
}

void loop_wire_run(void *arg)
{
	struct loop *loop = arg;

	pthread_mutex_lock(&loop->lock);
	while (!loop->stop) {
		uint64_t wake_ns;
		struct loop_chan *chan = pick(loop, &wake_ns);

		if (chan)
			carry(loop, chan);
		else
			wait_for_work(loop, wake_ns);
	}
	pthread_mutex_unlock(&loop->lock);
}

/* All that can go.  Of two threads one does it, so that a channel's requests stay in order. */
static void carry_all(struct loop *loop)
{
	struct loop_chan *chan;
	uint64_t wake_ns;

	if (loop->carries)
		return;
	loop->carries = true;
	while ((chan = pick(loop, &wake_ns)))
		carry(loop, chan);
	loop->carries = false;
}

/* ---- posting ---- */

static void request_fill(struct loop_chan *chan, const struct fabric_wr *wr, uint32_t place)
{
	struct loop *loop = LOOP_OF(chan);
	struct loop_request *req = &chan->sends[place];

	memset(req, 0, sizeof *req);
	req->id = wr->id;
	req->opcode = wr->opcode;
	req->flags = wr->flags;
	req->sge_count = wr->sge_count;
	req->remote_addr = wr->remote_addr;
	req->remote_key = wr->remote_key;
	req->imm = wr->imm;
	req->ordinal = chan->send_ordinal++;
	if (loop->faults.delay_us)
		req->due_ns = clock_now_ns() + 1000ull * (choose(chan, req->ordinal, CHOICE_DELAY) %
								 (loop->faults.delay_us + 1ull));
	for (unsigned i = 0; i < wr->sge_count; i++) {
		req->sge[i].addr = wr->sge[i].addr;
		req->sge[i].bytes = wr->sge[i].bytes;
		req->sge[i].key = wr->sge[i].mr ? wr->sge[i].mr->key : 0;
	}
	if (wr->flags & FABRIC_INLINE) {
		uint8_t *to = chan->inline_bytes + (size_t)place * chan->base.caps.inline_max;

		for (unsigned i = 0; i < wr->sge_count; i++) {
			if (wr->sge[i].bytes)
				memcpy(to, wr->sge[i].addr, wr->sge[i].bytes);
			to += wr->sge[i].bytes;
		}
	}
}

int loop_post_send(struct fabric_chan *base, const struct fabric_wr *list)
{
	struct loop_chan *chan = (struct loop_chan *)base;
	struct loop *loop = LOOP_OF(chan);
	uint64_t count = 0;
	int err = 0;

	for (const struct fabric_wr *wr = list; wr; wr = wr->next)
		count++;
	pthread_mutex_lock(&loop->lock);
	if (chan->state != LOOP_CONNECTED) {
		err = -ENOTCONN;
	} else if (count > chan->send_depth - chan->send_used) {
		err = -ENOMEM;
	} else {
		for (const struct fabric_wr *wr = list; wr; wr = wr->next) {
			request_fill(
				chan, wr, (chan->send_head + chan->send_count) % chan->send_depth);
			chan->send_count++;
			chan->send_used++;
		}
		wire_wake(chan);
		if (loop->faults.at_once)
			carry_all(loop);
	}
	pthread_mutex_unlock(&loop->lock);
	return err;
}

int loop_post_recv(
	struct fabric_chan *base, uint64_t id, void *addr, uint32_t bytes, struct fabric_mr *mr)
{
	struct loop_chan *chan = (struct loop_chan *)base;
	struct loop *loop = LOOP_OF(chan);
	int err = 0;

	pthread_mutex_lock(&loop->lock);
	if (!chan->is_setup || chan->state == LOOP_ENDED) {
		err = -ENOTCONN;
	} else if (chan->recv_used == chan->recv_depth) {
		err = -ENOMEM;
	} else {
		struct loop_recv *recv =
			&chan->recvs[(chan->recv_head + chan->recv_count) % chan->recv_depth];

		recv->id = id;
		recv->sge.addr = addr;
		recv->sge.bytes = bytes;
		recv->sge.key = mr ? mr->key : 0;
		chan->recv_count++;
		chan->recv_used++;
	}
	pthread_mutex_unlock(&loop->lock);
	return err;
}
