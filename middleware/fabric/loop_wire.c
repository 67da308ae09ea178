/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/loop_wire: requests of the loop fabric: posting them, the one thread that carries them
 * out, and the faults on the way.  Does not know how channels came to be connected.
 *
 * Faults repeat with the seed: each choice depends on the seed, the channel's number, its side and
 * the ordinal of the request in it, never on which thread came first.  Only the count that
 * cut_after and error_after compare with is of the whole fabric.
 */
#include "fabric/loop_impl.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define PINS_MAX (FABRIC_SGE_MAX + 1)
#define HOLD_REQUESTS 8    /* a held request lets 1 to so many of other channels pass ... */
#define HOLD_NS 200000ull  /* ... but waits no longer than this for them */
#define ATOMIC_WRITE_BYTES 64u
#define ATOMIC_READ_BYTES 65536u

enum choice { CHOICE_DELAY, CHOICE_REORDER, CHOICE_HOLD };

/* A memory range of a request that was checked. */
struct span {
	uint8_t *addr;
	uint32_t bytes;
};

/* One request on its way: what to copy, and the memory that must stay meanwhile. */
struct flight {
	struct loop_chan *chan, *peer;
	struct loop_request *req;
	struct loop_recv *recv; /* that the peer had posted, or NULL */
	struct span from[FABRIC_SGE_MAX], to[FABRIC_SGE_MAX];
	unsigned from_count, to_count;
	struct loop_mr *pinned[PINS_MAX];
	unsigned pin_count;
	uint32_t bytes;
	/* when it must not be carried out */
	enum fabric_status status, recv_status;
	int error;
};

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
		if (choose(chan, req->ordinal, CHOICE_REORDER) % 1000 < loop->faults.reorder_permille) {
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
	TAILQ_FOREACH(chan, &loop->run, run_link) {
		if (may_go(chan, now_ns, wake_ns))
			return chan;
	}
	return NULL;
}

/* ---- completing ---- */

static void complete_send(struct loop_chan *chan, enum fabric_status status, uint32_t bytes)
{
	struct loop_request *req = &chan->sends[chan->send_head];
	struct loop_completion done = {
		.wc = {.id = req->id, .chan = &chan->base, .status = status, .opcode = req->opcode},
		.send_slots = chan->send_silent + 1,
	};

	if (req->opcode == FABRIC_READ)
		done.wc.bytes = bytes;
	chan->send_head = (chan->send_head + 1) % chan->send_depth;
	chan->send_count--;
	if (!(req->flags & FABRIC_SIGNALED) && status == FABRIC_OK) {
		chan->send_silent++;
		return;
	}
	chan->send_silent = 0;
	loop_cq_push(chan->cq, &done);
}

static void complete_recv(struct loop_chan *chan, enum fabric_status status,
	const struct loop_request *req, uint32_t bytes)
{
	struct loop_completion done = {
		.wc = {.id = chan->recvs[chan->recv_head].id, .chan = &chan->base, .status = status,
			.opcode = FABRIC_RECV},
		.recv_slots = 1,
	};

	if (status == FABRIC_OK) {
		done.wc.bytes = bytes;
		if (req->opcode == FABRIC_WRITE_IMM) {
			done.wc.opcode = FABRIC_RECV_IMM;
			done.wc.imm = req->imm;
		}
	}
	chan->recv_head = (chan->recv_head + 1) % chan->recv_depth;
	chan->recv_count--;
	loop_cq_push(chan->cq, &done);
}

void loop_wire_flush(struct loop_chan *chan)
{
	while (chan->send_count)
		complete_send(chan, FABRIC_FLUSHED, 0);
	while (chan->recv_count)
		complete_recv(chan, FABRIC_FLUSHED, NULL, 0);
}

/* ---- checking ---- */

/* Refuses the request; the first reason stands. */
static void refuse(struct flight *f, enum fabric_status status, enum fabric_status recv_status,
	int error)
{
	if (f->status != FABRIC_OK)
		return;
	f->status = status;
	f->recv_status = recv_status;
	f->error = error;
}

static void pin(struct flight *f, struct loop_mr *mr)
{
	assert(f->pin_count < PINS_MAX);
	mr->pins++;
	f->pinned[f->pin_count++] = mr;
}

/* Local memory: registered in the channel's protection domain, and within bounds. */
static bool local_ok(struct flight *f, const struct loop_chan *chan, const struct loop_sge *sge)
{
	struct loop_mr *mr;
	uintptr_t offset;

	if (!sge->bytes)
		return true;
	mr = loop_mr_find(LOOP_OF(chan), sge->key);
	if (!mr || mr->pd != chan->pd)
		return false;
	offset = (uintptr_t)sge->addr - (uintptr_t)mr->addr;
	if ((uintptr_t)sge->addr < (uintptr_t)mr->addr || offset > mr->bytes ||
		sge->bytes > mr->bytes - offset)
		return false;
	pin(f, mr);
	return true;
}

static void check_local(struct flight *f, struct span *spans, unsigned *count)
{
	struct loop_request *req = f->req;

	if (req->flags & FABRIC_INLINE) {
		spans[0].addr = f->chan->inline_bytes +
			(size_t)f->chan->send_head * f->chan->base.caps.inline_max;
		spans[0].bytes = f->bytes;
		*count = 1;
		return;
	}
	for (unsigned i = 0; i < req->sge_count; i++) {
		if (!local_ok(f, f->chan, &req->sge[i])) {
			refuse(f, FABRIC_LOCAL_PROTECTION, FABRIC_OK, -EFAULT);
			return;
		}
		spans[i].addr = req->sge[i].addr;
		spans[i].bytes = req->sge[i].bytes;
	}
	*count = req->sge_count;
}

static void check_remote(struct flight *f, unsigned right, struct span *span)
{
	const struct loop_request *req = f->req;
	struct loop_mr *mr;
	uint64_t offset;

	if (!f->bytes) /* touches nothing: as in the RFCs, key and address are not looked at */
		return;
	mr = loop_mr_find(LOOP_OF(f->chan), req->remote_key);
	if (!mr || mr->pd != f->peer->pd || !(mr->access & right)) {
		refuse(f, FABRIC_REMOTE_ACCESS, FABRIC_OK, -EACCES);
		return;
	}
	offset = req->remote_addr - mr->base.base;
	if (req->remote_addr < mr->base.base || offset > mr->bytes ||
		f->bytes > mr->bytes - offset) {
		refuse(f, FABRIC_REMOTE_ACCESS, FABRIC_OK, -EACCES);
		return;
	}
	pin(f, mr);
	span->addr = mr->addr + offset;
	span->bytes = f->bytes;
}

static void check_recv(struct flight *f)
{
	if (!f->peer->recv_count) {
		refuse(f, FABRIC_RNR_EXCEEDED, FABRIC_OK, -ENOBUFS);
		return;
	}
	f->recv = &f->peer->recvs[f->peer->recv_head];
	if (f->req->opcode == FABRIC_WRITE_IMM)
		return;
	if (f->bytes > f->recv->sge.bytes) {
		refuse(f, FABRIC_REMOTE_OPERATION, FABRIC_LOCAL_LENGTH, -EMSGSIZE);
	} else if (!local_ok(f, f->peer, &f->recv->sge)) {
		refuse(f, FABRIC_REMOTE_OPERATION, FABRIC_LOCAL_PROTECTION, -EFAULT);
	} else {
		f->to[0].addr = f->recv->sge.addr;
		f->to[0].bytes = f->bytes;
		f->to_count = 1;
	}
}

static void check_request(struct flight *f)
{
	struct loop *loop = LOOP_OF(f->chan);

	for (unsigned i = 0; i < f->req->sge_count; i++)
		f->bytes += f->req->sge[i].bytes;
	if (loop->executed == loop->faults.error_after) {
		log_debug("loop: request %" PRIu64 " fails: channel %u%s, its %" PRIu64, loop->executed,
			f->chan->number, f->chan->acceptor ? "a" : "d", f->req->ordinal);
		refuse(f, FABRIC_FATAL, FABRIC_OK, -EIO);
		return;
	}
	switch (f->req->opcode) {
	case FABRIC_SEND:
		check_local(f, f->from, &f->from_count);
		check_recv(f);
		break;
	case FABRIC_WRITE:
	case FABRIC_WRITE_IMM:
		check_local(f, f->from, &f->from_count);
		check_remote(f, FABRIC_REMOTE_WRITE, &f->to[0]);
		f->to_count = 1;
		if (f->req->opcode == FABRIC_WRITE_IMM)
			check_recv(f);
		break;
	default: /* READ: post_send takes no others */
		check_local(f, f->to, &f->to_count);
		check_remote(f, FABRIC_REMOTE_READ, &f->from[0]);
		f->from_count = 1;
		break;
	}
}

/* ---- carrying out ---- */

/*
 * Small pieces move byte by byte and atomically, in order: a peer may watch the bytes of a small
 * WRITE with acquire loads, and change those that a READ fetches with release stores.
 */
static void copy_piece(uint8_t *to, const uint8_t *from, size_t bytes, enum fabric_opcode opcode)
{
	if (opcode == FABRIC_WRITE && bytes <= ATOMIC_WRITE_BYTES) {
		for (size_t i = 0; i < bytes; i++)
			__atomic_store_n(to + i, from[i], __ATOMIC_RELEASE);
	} else if (opcode == FABRIC_READ && bytes <= ATOMIC_READ_BYTES) {
		for (size_t i = 0; i < bytes; i++)
			to[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
	} else {
		memmove(to, from, bytes);
	}
}

static void copy(const struct flight *f)
{
	struct span from = {0}, to = {0};
	unsigned i = 0, j = 0;

	for (uint32_t left = f->bytes; left;) {
		uint32_t bytes;

		while (!from.bytes)
			from = f->from[i++];
		while (!to.bytes)
			to = f->to[j++];
		bytes = from.bytes < to.bytes ? from.bytes : to.bytes;
		copy_piece(to.addr, from.addr, bytes, f->req->opcode);
		from.addr += bytes;
		from.bytes -= bytes;
		to.addr += bytes;
		to.bytes -= bytes;
		left -= bytes;
	}
}

static void unpin_memory(struct flight *f)
{
	for (unsigned i = 0; i < f->pin_count; i++)
		f->pinned[i]->pins--;
}

static void execute(struct loop_chan *chan)
{
	struct loop *loop = LOOP_OF(chan);
	struct flight f = {.chan = chan, .peer = chan->peer, .req = &chan->sends[chan->send_head]};

	check_request(&f);
	if (f.status != FABRIC_OK) {
		unpin_memory(&f);
		if (f.recv_status != FABRIC_OK)
			complete_recv(f.peer, f.recv_status, f.req, 0);
		complete_send(chan, f.status, 0);
		loop_chan_end_both(chan, f.error,
			f.status == FABRIC_LOCAL_PROTECTION ? -ECONNRESET : f.error);
		return;
	}
	if (f.bytes) {
		chan->pins++;
		f.peer->pins++;
		pthread_mutex_unlock(&loop->lock);
		copy(&f);
		pthread_mutex_lock(&loop->lock);
	}
	unpin_memory(&f);
	if (f.recv)
		complete_recv(f.peer, FABRIC_OK, f.req, f.bytes);
	complete_send(chan, FABRIC_OK, f.bytes);
	if (f.bytes) {
		loop_chan_unpin(chan);
		loop_chan_unpin(f.peer);
		pthread_cond_broadcast(&loop->unpinned);
	}
	loop_chan_close_if_drained(chan);
}

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

void loop_wire_run(void *arg)
{
	struct loop *loop = arg;

	pthread_mutex_lock(&loop->lock);
	while (!loop->stop) {
		uint64_t wake_ns;
		struct loop_chan *chan = pick(loop, &wake_ns);

		if (!chan) {
			wait_for_work(loop, wake_ns);
			continue;
		}
		loop_wire_idle(chan);
		if (++loop->executed == loop->faults.cut_after) {
			cut(loop);
			continue;
		}
		/* Back to the end of the queue before the lock is dropped: whoever frees or ends the
		 * channel meanwhile takes it out again. */
		if (chan->send_count > 1)
			wire_wake(chan);
		execute(chan);
	}
	pthread_mutex_unlock(&loop->lock);
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
	int rc = 0;

	for (const struct fabric_wr *wr = list; wr; wr = wr->next)
		count++;
	pthread_mutex_lock(&loop->lock);
	if (chan->state != LOOP_CONNECTED) {
		rc = -ENOTCONN;
	} else if (count > chan->send_depth - chan->send_used) {
		rc = -ENOMEM;
	} else {
		for (const struct fabric_wr *wr = list; wr; wr = wr->next) {
			request_fill(chan, wr, (chan->send_head + chan->send_count) % chan->send_depth);
			chan->send_count++;
			chan->send_used++;
		}
		wire_wake(chan);
	}
	pthread_mutex_unlock(&loop->lock);
	return rc;
}

int loop_post_recv(struct fabric_chan *base, uint64_t id, void *addr, uint32_t bytes,
	struct fabric_mr *mr)
{
	struct loop_chan *chan = (struct loop_chan *)base;
	struct loop *loop = LOOP_OF(chan);
	int rc = 0;

	pthread_mutex_lock(&loop->lock);
	if (!chan->is_setup || chan->state == LOOP_ENDED) {
		rc = -ENOTCONN;
	} else if (chan->recv_used == chan->recv_depth) {
		rc = -ENOMEM;
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
	return rc;
}
