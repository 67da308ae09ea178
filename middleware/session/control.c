/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/control: see control.h.
 *
 * Owns the control channel's queue pair, its buffers and the two byte streams.  Receives and sends
 * each have CONTROL_CREDITS slots of one page in one mapping; pages that a quiet session never uses
 * are never touched, which keeps a thousand idle sessions small.
 */
#include "session/control.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define COMPLETIONS (2u * CONTROL_CREDITS + 1)
#define HEAD_BYTES 4u /* credits returned, length */
#define MAPPED_BYTES (2u * CONTROL_CREDITS * CONTROL_SEND_BYTES)
#define ID_SEND 0x100u  /* request ids: a slot, and this bit for sends */
#define ID_PROBE 0x200u /* control_probe's */

/* A byte stream that is appended to at `tail` and consumed at `head`. */
struct stream {
	uint8_t *data;
	size_t head, tail, room;
};

struct control {
	struct fabric_chan *chan;
	struct fabric_pd *pd;
	struct fabric_cq *cq;
	struct fabric_mr *mr;
	uint8_t *memory;    /* receive slots, then send slots */
	uint32_t send_busy; /* bit per send slot */
	uint32_t credits;   /* SENDs that the peer has receives for */
	uint32_t owed;      /* receives posted again that the peer has not heard of */
	bool probing;       /* a probe is out */
	struct stream out, in;
	size_t consumed; /* of `in`, by the frame that control_get gave last */
	int error;       /* the session is over */
};

static int stream_append(struct stream *s, const void *data, size_t len)
{
	if (s->room - s->tail < len && s->head) {
		memmove(s->data, s->data + s->head, s->tail - s->head);
		s->tail -= s->head;
		s->head = 0;
	}
	if (s->room - s->tail < len) {
		size_t room = s->room ? s->room : 512;
		uint8_t *grown;

		while (room - s->tail < len)
			room *= 2;
		grown = realloc(s->data, room);
		if (!grown)
			return -ENOMEM;
		s->data = grown;
		s->room = room;
	}
	if (len)
		memcpy(s->data + s->tail, data, len);
	s->tail += len;
	return 0;
}

static void stream_consume(struct stream *s, size_t len)
{
	s->head += len;
	if (s->head == s->tail) {
		s->head = s->tail = 0;
		/* what a long listing needed is not kept for an idle session */
		if (s->room > 4 * CONTROL_SEND_BYTES) {
			free(s->data);
			s->data = NULL;
			s->room = 0;
		}
	}
}

static uint8_t *receive_slot(struct control *c, unsigned i)
{
	return c->memory + (size_t)i * CONTROL_SEND_BYTES;
}

static uint8_t *send_slot(struct control *c, unsigned i)
{
	return c->memory + (size_t)(CONTROL_CREDITS + i) * CONTROL_SEND_BYTES;
}

static int post_receive(struct control *c, unsigned i)
{
	return fabric_post_recv(c->chan, i, receive_slot(c, i), CONTROL_SEND_BYTES, c->mr);
}

int control_new(struct fabric_chan *chan, struct control **out)
{
	struct control *c = calloc(1, sizeof *c);
	struct fabric_chan_attr attr = {
		.send_depth = CONTROL_CREDITS + 1, /* a probe */
		.recv_depth = CONTROL_CREDITS,
		.context = fabric_chan_context(chan),
	};
	int r = -ENOMEM;

	if (!c) {
		fabric_chan_free(chan);
		return r;
	}
	c->chan = chan;
	c->memory = mmap(
		NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->memory == MAP_FAILED) {
		c->memory = NULL;
		goto err_free;
	}
	r = fabric_pd_new(chan, &c->pd);
	if (!r)
		r = fabric_cq_new(c->pd, COMPLETIONS, &c->cq);
	if (!r)
		r = fabric_mr_new(c->pd, c->memory, MAPPED_BYTES, FABRIC_LOCAL, &c->mr);
	if (r)
		goto err_free;
	attr.pd = c->pd;
	attr.cq = c->cq;
	r = fabric_chan_setup(chan, &attr);
	for (unsigned i = 0; i < CONTROL_CREDITS && !r; i++)
		r = post_receive(c, i);
	if (r)
		goto err_free;
	*out = c;
	return 0;

err_free:
	control_free(c);
	return r;
}

void control_start(struct control *c, uint16_t peer_credits)
{
	c->credits = peer_credits;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	fabric_chan_free(c->chan); /* first: nothing touches the buffers afterwards */
	fabric_mr_free(c->mr);
	fabric_cq_free(c->cq);
	fabric_pd_free(c->pd);
	if (c->memory)
		munmap(c->memory, MAPPED_BYTES);
	free(c->out.data);
	free(c->in.data);
	free(c);
}

struct fabric_chan *control_chan(const struct control *c)
{
	return c->chan;
}

struct fabric_pd *control_pd(const struct control *c)
{
	return c->pd;
}

/* Sends one piece of the stream, or only the credits that are owed. */
static int send_piece(struct control *c, size_t len)
{
	unsigned i = (unsigned)__builtin_ctz(~c->send_busy);
	uint8_t *slot = send_slot(c, i);
	struct fabric_sge sge = {slot, (uint32_t)(HEAD_BYTES + len), c->mr};
	struct fabric_wr wr = {
		.id = ID_SEND | i,
		.opcode = FABRIC_SEND,
		.flags = FABRIC_SIGNALED,
		.sge = &sge,
		.sge_count = 1,
	};
	struct wire w;
	int r;

	wire_init_put(&w, slot, HEAD_BYTES);
	wire_put_u16(&w, (uint16_t)c->owed);
	wire_put_u16(&w, (uint16_t)len);
	if (len)
		memcpy(slot + HEAD_BYTES, c->out.data + c->out.head, len);
	r = fabric_post_send(c->chan, &wr);
	if (r)
		return r;
	c->send_busy |= 1u << i;
	c->credits--;
	c->owed = 0;
	stream_consume(&c->out, len);
	return 0;
}

/* Sends what credits and slots allow.  The last credit is kept for returning credits, or two sides
 * that both have bytes to send could each wait for the other's credits for ever. */
static int push(struct control *c)
{
	const uint32_t all = (1u << CONTROL_CREDITS) - 1;

	while (c->send_busy != all) {
		size_t len = c->out.tail - c->out.head;
		int r;

		if (len > CONTROL_SEND_BYTES - HEAD_BYTES)
			len = CONTROL_SEND_BYTES - HEAD_BYTES;
		if (c->credits < 2)
			len = 0;
		if (!len && (c->owed < CONTROL_CREDITS / 2 || !c->credits))
			return 0;
		r = send_piece(c, len);
		if (r)
			return r;
	}
	return 0;
}

int control_put(struct control *c, uint16_t type, uint16_t response, const void *data, size_t len)
{
	struct message_header h = {type, response, (uint32_t)len};
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	int r;

	assert(len <= MESSAGE_DATA_MAX && !message_check(&h));
	if (c->error)
		return c->error;
	if (control_pending_bytes(c) + len > CONTROL_PENDING_MAX)
		return -ENOBUFS;
	message_put_header(&h, bytes);
	r = stream_append(&c->out, bytes, sizeof bytes);
	if (!r && len) {
		r = stream_append(&c->out, data, len);
		if (r) /* half a frame must not leave */
			c->out.tail -= sizeof bytes;
	}
	if (r)
		return r;
	r = push(c);
	if (r)
		c->error = -ENOTCONN;
	return c->error;
}

void control_probe(struct control *c)
{
	struct fabric_wr nothing = {
		.id = ID_PROBE, .opcode = FABRIC_WRITE, .flags = FABRIC_SIGNALED};

	if (c->error || c->probing)
		return;
	if (fabric_post_send(c->chan, &nothing))
		c->error = -ENOTCONN;
	c->probing = !c->error;
}

static int receive(struct control *c, unsigned slot, uint32_t bytes)
{
	struct wire w;
	uint32_t credits, len;
	int r;

	wire_init_get(&w, receive_slot(c, slot), bytes);
	credits = wire_get_u16(&w);
	len = wire_get_u16(&w);
	if (w.error || len != wire_left(&w) || c->credits + credits > UINT16_MAX) {
		log_error(
			"control channel: SEND of %u bytes with a bad head (length %u, credits %u)",
			bytes, len, credits);
		return -EBADMSG;
	}
	c->credits += credits;
	/* a peer that sends on while its frames are not read gets no memory for it */
	if (c->in.tail - c->in.head + len > CONTROL_INPUT_MAX) {
		log_error(
			"control channel: more than %u bytes before an answer", CONTROL_INPUT_MAX);
		return -EBADMSG;
	}
	r = stream_append(&c->in, w.at, len);
	if (r)
		return r;
	c->owed++;
	return post_receive(c, slot);
}

/* Takes in all completions.  Called only while no whole frame waits, which bounds `in`. */
static void progress(struct control *c)
{
	struct fabric_wc wc[COMPLETIONS];
	int n, r = 0;

	if (c->error)
		return;
	n = fabric_cq_poll(c->cq, wc, COMPLETIONS);
	for (int i = 0; i < n && !r; i++) {
		if (wc[i].status != FABRIC_OK) {
			log_debug("control channel: %s", fabric_status_name(wc[i].status));
			r = -ECONNRESET;
		} else if (wc[i].opcode == FABRIC_RECV) {
			r = receive(c, (unsigned)wc[i].id, wc[i].bytes);
		} else if (wc[i].id == ID_PROBE) {
			c->probing = false;
		} else {
			c->send_busy &= ~(1u << (wc[i].id & ~(uint64_t)ID_SEND));
		}
	}
	if (n < 0)
		r = n;
	if (!r)
		r = push(c);
	if (r)
		c->error = r == -EBADMSG || r == -ENOMEM ? r : -ECONNRESET;
}

/* 1: a whole frame lies at in.head; 0: not yet; -EBADMSG. */
static int frame_ready(struct control *c, struct message_header *h)
{
	size_t have = c->in.tail - c->in.head;

	if (have < MESSAGE_HEADER_BYTES)
		return 0;
	if (message_get_header(h, c->in.data + c->in.head) || message_check(h)) {
		log_error("control channel: bad frame: type %u, length %u, response %u", h->type,
			h->length, h->response);
		return -EBADMSG;
	}
	return have >= MESSAGE_HEADER_BYTES + h->length;
}

int control_get(struct control *c, struct message_header *h, const uint8_t **data)
{
	int r;

	if (c->consumed) {
		stream_consume(&c->in, c->consumed);
		c->consumed = 0;
	}
	r = frame_ready(c, h);
	if (!r) {
		progress(c);
		r = frame_ready(c, h);
	}
	if (r < 0)
		c->error = r;
	if (r <= 0)
		return c->error;
	*data = c->in.data + c->in.head + MESSAGE_HEADER_BYTES;
	c->consumed = MESSAGE_HEADER_BYTES + h->length;
	return 1;
}

void control_push(struct control *c)
{
	progress(c);
}

size_t control_pending_bytes(const struct control *c)
{
	return c->out.tail - c->out.head;
}

int control_arm(struct control *c)
{
	return fabric_cq_arm(c->cq);
}

int control_fd(const struct control *c)
{
	return fabric_cq_fd(c->cq);
}

int control_wait(struct control *c, int timeout_ms, int cancel_fd)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct pollfd fds[2] = {{control_fd(c), POLLIN, 0}, {cancel_fd, POLLIN, 0}};
	const bool flushing = control_pending_bytes(c);
	struct message_header h;

	if (c->consumed) { /* the caller is done with the frame that control_get gave last */
		stream_consume(&c->in, c->consumed);
		c->consumed = 0;
	}
	for (;;) {
		int r = control_arm(c);

		if (r)
			return r;
		if (!frame_ready(c, &h))
			progress(c);
		if (frame_ready(c, &h) || c->error || (flushing && !control_pending_bytes(c)))
			return 0;
		r = poll(fds, 2, timeout_ms < 0 ? -1 : clock_until_ms(deadline));
		if (fds[1].revents)
			return -ECANCELED;
		if (!r)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

int control_flush(struct control *c, int timeout_ms)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct pollfd fd = {control_fd(c), POLLIN, 0};

	for (;;) {
		int r = control_arm(c);

		if (r)
			return r;
		progress(c);
		if (c->error || !control_pending_bytes(c))
			return c->error;
		r = poll(&fd, 1, clock_until_ms(deadline));
		if (!r)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}
