/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/loop/loop_execute: carries one request of the loop fabric out: checks it, copies,
 * completes.
 */
#include "fabric/loop/loop_impl.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"

#define PINS_MAX (FABRIC_SGE_MAX + 1)
#define ATOMIC_WRITE_BYTES 64u
#define ATOMIC_READ_BYTES 65536u
#define NO_FLIP UINT32_MAX

_Static_assert(ATOMIC_WRITE_BYTES >= FABRIC_WATCHED_BYTES, "what is watched is placed atomically");

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
	uint32_t flip_at; /* which byte changes on its way; NO_FLIP: none */
	unsigned flip_bit;
	bool wild; /* a bit has changed, in this one or before */
	/* when it must not be carried out */
	enum fabric_status status, recv_status;
	int error;
};

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
		.wc = {.id = chan->recvs[chan->recv_head].id,
			.chan = &chan->base,
			.status = status,
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

void loop_execute_flush(struct loop_chan *chan)
{
	while (chan->send_count)
		complete_send(chan, FABRIC_FLUSHED, 0);
	while (chan->recv_count)
		complete_recv(chan, FABRIC_FLUSHED, NULL, 0);
}

/* ---- checking ---- */

/* Refuses the request; the first reason stands. */
static void refuse(
	struct flight *f, enum fabric_status status, enum fabric_status recv_status, int error)
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
		log_debug("loop: request %" PRIu64 " fails: channel %u%s, its %" PRIu64,
			loop->executed, f->chan->number, f->chan->acceptor ? "a" : "d",
			f->req->ordinal);
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
 * Unseen by ThreadSanitizer.  A notice, a credit or a status byte with a changed bit names memory
 * that its owner or the peer is at: both then touch it at once, as an adapter and a processor
 * would, and what comes of that is for the checksums to find.
 */
__attribute__((noinline, no_sanitize("thread"))) static void copy_wild(
	uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		__atomic_store_n(
			to + i, __atomic_load_n(from + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* A word whole, and each of its bytes as who changes single bytes gives them: a load of one says
 * nothing of stores to the other. */
static void copy_word(uint8_t *to, const uint8_t *from)
{
	uint64_t word;

	do {
		word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
		for (size_t i = 0; i < sizeof word; i++)
			to[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
	} while (memcmp(to, &word, sizeof word));
}

static bool is_of_words(const uint8_t *to, const uint8_t *from, size_t bytes)
{
	return !(((uintptr_t)to | (uintptr_t)from | bytes) % sizeof(uint64_t));
}

/*
 * Small pieces move byte by byte and atomically, in order: a peer may watch the bytes of a small
 * WRITE with acquire loads, and change those that a READ fetches with release stores.  A READ finds
 * a word whole, as adapters do.
 */
static void copy_piece(const struct flight *f, uint8_t *to, const uint8_t *from, size_t bytes)
{
	if (f->wild && f->req->opcode != FABRIC_READ && f->bytes > FABRIC_WATCHED_BYTES) {
		copy_wild(to, from, bytes);
	} else if (f->req->opcode == FABRIC_WRITE && bytes <= ATOMIC_WRITE_BYTES) {
		for (size_t i = 0; i < bytes; i++)
			__atomic_store_n(to + i, from[i], __ATOMIC_RELEASE);
	} else if (f->req->opcode == FABRIC_READ && bytes <= ATOMIC_READ_BYTES &&
		   is_of_words(to, from, bytes)) {
		for (size_t i = 0; i < bytes; i += sizeof(uint64_t))
			copy_word(to + i, from + i);
	} else if (f->req->opcode == FABRIC_READ && bytes <= ATOMIC_READ_BYTES) {
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
		uint32_t bytes, at = f->bytes - left;
		uint8_t flipped;

		while (!from.bytes)
			from = f->from[i++];
		while (!to.bytes)
			to = f->to[j++];
		bytes = from.bytes < to.bytes ? from.bytes : to.bytes;
		if (at < f->flip_at && f->flip_at - at < bytes)
			bytes = f->flip_at - at;
		if (at == f->flip_at) { /* alone */
			copy_piece(f, &flipped, from.addr, 1);
			flipped ^= (uint8_t)(1u << f->flip_bit);
			bytes = 1;
			copy_piece(f, to.addr, &flipped, 1);
		} else {
			copy_piece(f, to.addr, from.addr, bytes);
		}
		from.addr += bytes;
		from.bytes -= bytes;
		to.addr += bytes;
		to.bytes -= bytes;
		left -= bytes;
	}
}

/* The memory is pinned still: who watches it is there. */
static void tell_watchers(const struct flight *f)
{
	if (f->req->opcode != FABRIC_WRITE || f->bytes > ATOMIC_WRITE_BYTES)
		return;
	for (unsigned i = 0; i < f->pin_count; i++)
		if (f->pinned[i]->watch)
			loop_cq_nudge(f->pinned[i]->watch);
}

static void unpin_memory(struct flight *f)
{
	for (unsigned i = 0; i < f->pin_count; i++)
		f->pinned[i]->pins--;
}

/* Whether it is the one in which a bit changes, and which. */
static void choose_flip(struct flight *f)
{
	struct loop *loop = LOOP_OF(f->chan);
	bool has_imm = f->req->opcode == FABRIC_WRITE_IMM;
	uint64_t bits = 8 * (uint64_t)f->bytes + (has_imm ? 32 : 0), bit;

	f->wild = loop->flipped;
	if (!bits || !loop->flip_after || --loop->flip_after)
		return;
	f->wild = loop->flipped = true;
	bit = loop->flip_bit % bits;
	if (bit < 8 * (uint64_t)f->bytes) {
		f->flip_at = (uint32_t)(bit / 8);
		f->flip_bit = bit % 8;
	} else {
		f->req->imm ^= 1u << (bit - 8 * (uint64_t)f->bytes);
	}
	log_debug("loop: bit %" PRIu64 " of %" PRIu64 " changes in request %" PRIu64
		  ": channel %u%s, its %" PRIu64,
		bit, bits, loop->executed, f->chan->number, f->chan->acceptor ? "a" : "d",
		f->req->ordinal);
}

void loop_execute(struct loop_chan *chan)
{
	struct loop *loop = LOOP_OF(chan);
	struct flight f = {.chan = chan,
		.peer = chan->peer,
		.req = &chan->sends[chan->send_head],
		.flip_at = NO_FLIP};

	check_request(&f);
	if (f.status != FABRIC_OK) {
		unpin_memory(&f);
		if (f.recv_status != FABRIC_OK)
			complete_recv(f.peer, f.recv_status, f.req, 0);
		complete_send(chan, f.status, 0);
		loop_chan_end_both(
			chan, f.error, f.status == FABRIC_LOCAL_PROTECTION ? -ECONNRESET : f.error);
		return;
	}
	choose_flip(&f);
	if (f.bytes) {
		chan->pins++;
		f.peer->pins++;
		pthread_mutex_unlock(&loop->lock);
		copy(&f);
		pthread_mutex_lock(&loop->lock);
	}
	tell_watchers(&f);
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
