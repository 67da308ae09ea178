/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/pipe: see pipe.h.
 *
 * Owns the control channel's queue pair, its buffers and the two byte streams.  Receives and sends
 * each have PIPE_CREDITS slots of one page in one mapping; pages that a quiet session never uses
 * are never touched, which keeps a thousand idle sessions small.
 */
#include "session/pipe_impl.h"

#include "base/log.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define COMPLETIONS (2u * PIPE_CREDITS + 2)
#define HEAD_BYTES 4u /* credits returned, length */
#define WORD_BYTES 4u /* behind it, where it has a word of the ring */
#define HAS_WORD 0x8000u
#define WORD_ASKS 0x4000u
#define LENGTH_MASK 0x3fffu
#define MAPPED_BYTES (2u * PIPE_CREDITS * PIPE_SEND_BYTES)
#define ID_SEND 0x100u  /* request ids: a slot, and this bit for sends */
#define ID_PROBE 0x200u /* pipe_probe's */

static uint8_t *receive_slot(struct pipe *p, unsigned i)
{
	return p->memory + (size_t)i * PIPE_SEND_BYTES;
}

static uint8_t *send_slot(struct pipe *p, unsigned i)
{
	return p->memory + (size_t)(PIPE_CREDITS + i) * PIPE_SEND_BYTES;
}

static int post_receive(struct pipe *p, unsigned i)
{
	return fabric_post_recv(p->chan, i, receive_slot(p, i), PIPE_SEND_BYTES, p->mr);
}

int pipe_new(struct fabric_chan *chan, struct pipe **out)
{
	struct pipe *p = calloc(1, sizeof *p);
	struct fabric_chan_attr attr = {
		.send_depth = PIPE_CREDITS + 2, /* a probe, and a READ */
		.recv_depth = PIPE_CREDITS,
		.context = fabric_chan_context(chan),
	};
	int err = -ENOMEM;

	if (!p) {
		fabric_chan_free(chan);
		return err;
	}
	p->chan = chan;
	p->memory = mmap(
		NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->memory == MAP_FAILED) {
		p->memory = NULL;
		goto err_free;
	}
	err = fabric_pd_new(chan, &p->pd);
	if (!err)
		err = fabric_cq_new(p->pd, COMPLETIONS, &p->cq);
	if (!err)
		err = fabric_mr_new(p->pd, p->memory, MAPPED_BYTES, FABRIC_LOCAL, &p->mr);
	if (err)
		goto err_free;
	attr.pd = p->pd;
	attr.cq = p->cq;
	err = fabric_chan_setup(chan, &attr);
	for (unsigned i = 0; i < PIPE_CREDITS && !err; i++)
		err = post_receive(p, i);
	if (err)
		goto err_free;
	*out = p;
	return 0;

err_free:
	pipe_free(p);
	return err;
}

void pipe_start(struct pipe *p, uint16_t peer_credits)
{
	p->credits = peer_credits;
}

void pipe_free(struct pipe *p)
{
	if (!p)
		return;
	fabric_chan_free(p->chan); /* first: nothing touches the buffers afterwards */
	pipe_ring_free(p);
	fabric_mr_free(p->mr);
	fabric_cq_free(p->cq);
	fabric_pd_free(p->pd);
	if (p->memory)
		munmap(p->memory, MAPPED_BYTES);
	buffer_fini(&p->out);
	buffer_fini(&p->in);
	free(p);
}

struct fabric_chan *pipe_chan(const struct pipe *p)
{
	return p->chan;
}

struct fabric_pd *pipe_pd(const struct pipe *p)
{
	return p->pd;
}

int pipe_fd(const struct pipe *p)
{
	int fd = p->ring ? pipe_ring_fd(p) : -1;

	return fd < 0 ? fabric_cq_fd(p->cq) : fd;
}

int pipe_arm(struct pipe *p)
{
	int err = fabric_cq_arm(p->cq);

	return err || !p->ring ? err : pipe_ring_arm(p);
}

struct buffer *pipe_output(struct pipe *p)
{
	return &p->out;
}

struct buffer *pipe_input(struct pipe *p)
{
	return &p->in;
}

bool pipe_is_sending(const struct pipe *p)
{
	return p->send_busy;
}

/* Sends one piece of the stream, or only the credits that are owed. */
static int send_piece(struct pipe *p, size_t len)
{
	unsigned i = (unsigned)__builtin_ctzll(~p->send_busy);
	uint8_t *slot = send_slot(p, i);
	struct pipe_word word = p->ring ? pipe_ring_say(p, len) : (struct pipe_word){0};
	uint32_t head = HEAD_BYTES + (word.has ? WORD_BYTES : 0);
	struct fabric_sge sge = {slot, head + (uint32_t)len, p->mr};
	struct fabric_wr wr = {
		.id = ID_SEND | i,
		.opcode = FABRIC_SEND,
		.flags = FABRIC_SIGNALED,
		.sge = &sge,
		.sge_count = 1,
	};
	struct wire w;
	int err;

	wire_init_put(&w, slot, head);
	wire_put_u16(&w, (uint16_t)p->owed);
	wire_put_u16(&w, (uint16_t)(len | (word.has ? HAS_WORD : 0) | (word.asks ? WORD_ASKS : 0)));
	if (word.has)
		wire_put_u32(&w, word.position);
	if (len)
		memcpy(slot + head, buffer_front(&p->out), len);
	err = fabric_post_send(p->chan, &wr);
	if (err)
		return err;
	p->send_busy |= UINT64_C(1) << i;
	p->credits--;
	p->owed = 0;
	buffer_consume(&p->out, len);
	return 0;
}

/* Bytes of the stream that the next SEND carries. */
static size_t next_bytes(const struct pipe *p)
{
	size_t len = p->ring ? pipe_ring_sendable(p) : buffer_bytes(&p->out);
	size_t most = PIPE_SEND_BYTES - HEAD_BYTES - (p->ring ? WORD_BYTES : 0);

	/* The last credit is kept for returning credits, or two sides that both have bytes to send
	 * could each wait for the other's credits for ever. */
	if (p->credits < 2)
		return 0;
	return len < most ? len : most;
}

int pipe_push(struct pipe *p)
{
	const uint64_t all = (UINT64_C(1) << PIPE_CREDITS) - 1;

	while (!p->error) {
		size_t len;
		bool due;

		if (p->ring)
			pipe_ring_fill(p);
		len = next_bytes(p);
		due = p->ring ? pipe_ring_wants_send(p) : p->owed >= PIPE_CREDITS / 2;
		if ((!len && !due) || !p->credits || p->send_busy == all)
			break;
		if (send_piece(p, len))
			p->error = -ENOTCONN;
	}
	return p->error;
}

int pipe_probe(struct pipe *p)
{
	struct fabric_wr nothing = {
		.id = ID_PROBE, .opcode = FABRIC_WRITE, .flags = FABRIC_SIGNALED};

	if (p->error || p->probing)
		return p->error;
	if (fabric_post_send(p->chan, &nothing))
		p->error = -ENOTCONN;
	p->probing = !p->error;
	return p->error;
}

static int receive(struct pipe *p, unsigned slot, uint32_t bytes)
{
	struct pipe_word word = {0};
	struct wire w;
	uint32_t credits, len;
	int err;

	wire_init_get(&w, receive_slot(p, slot), bytes);
	credits = wire_get_u16(&w);
	len = wire_get_u16(&w);
	if (p->ring) {
		word.has = len & HAS_WORD;
		word.asks = len & WORD_ASKS;
		len &= LENGTH_MASK;
		word.position = word.has ? wire_get_u32(&w) : 0;
	}
	if (w.error || len != wire_left(&w) || p->credits + credits > UINT16_MAX) {
		log_error(
			"control channel: SEND of %u bytes with a bad head (length %u, credits %u)",
			bytes, len, credits);
		return -EBADMSG;
	}
	p->credits += credits;
	err = p->ring ? pipe_ring_heard(p, &word, len) : 0;
	if (err)
		return err;
	/* a peer that sends on while its bytes are not read gets no memory for it */
	if (buffer_bytes(&p->in) + len > PIPE_INPUT_MAX) {
		log_error("control channel: more than %u bytes before an answer", PIPE_INPUT_MAX);
		return -EBADMSG;
	}
	err = buffer_append(&p->in, w.at, len);
	if (err)
		return err;
	p->owed++;
	err = post_receive(p, slot);
	if (err == -ENOTCONN) { /* it has ended, but what came before that is all there */
		p->error = err;
		err = 0;
	}
	return err;
}

/* All completions that are there.  0 or -errno: it has ended, and there are no more. */
static int take_completions(struct pipe *p)
{
	struct fabric_wc wc[COMPLETIONS];
	int n, err = 0;

	n = fabric_cq_poll(p->cq, wc, COMPLETIONS);
	for (int i = 0; i < n && !err; i++) {
		if (wc[i].status != FABRIC_OK) {
			log_debug("control channel: %s", fabric_status_name(wc[i].status));
			err = -ECONNRESET;
		} else if (wc[i].opcode == FABRIC_RECV) {
			err = receive(p, (unsigned)wc[i].id, wc[i].bytes);
		} else if (wc[i].id == ID_PROBE) {
			p->probing = false;
		} else if (wc[i].id == PIPE_ID_READ) {
			err = pipe_ring_take(p);
		} else {
			p->send_busy &= ~(UINT64_C(1) << (wc[i].id & ~(uint64_t)ID_SEND));
		}
	}
	return n < 0 ? n : err;
}

int pipe_progress(struct pipe *p)
{
	int err;

	if (p->over)
		return p->error;
	err = take_completions(p);
	if (!err && p->ring && pipe_ring_look(p))
		p->error = -ENOTCONN;
	if (!err && p->ring && pipe_ring_went_on(p))
		err = -ENOMEM;
	/* who learns of the end by posting takes in what had come by then, once more */
	if (!err && (p->error || pipe_push(p))) {
		err = take_completions(p);
		if (!err)
			err = -ECONNRESET;
	}
	if (err) {
		p->over = true;
		p->error = err == -EBADMSG || err == -ENOMEM ? err : -ECONNRESET;
	}
	return p->error;
}
