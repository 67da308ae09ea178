/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/control: see control.h.
 *
 * Owns the pipe, its TLS and the bytes of frames between them.
 */
#include "session/control.h"

#include "base/clock.h"
#include "base/log.h"
#include "session/pipe_ring.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

struct control {
	struct pipe *pipe;
	struct tls *tls;     /* NULL: in the clear */
	struct buffer held;  /* frames queued before the handshake was complete */
	struct buffer plain; /* decrypted, and not read yet */
	bool corked;
	size_t consumed; /* of the input, by the frame that control_get gave last */
	bool mute;       /* nothing leaves any more; what had come before may wait to be read */
	int error;       /* the session is over */
};

int control_new(struct fabric_chan *chan, const struct tls_context *context, const char *host,
	struct control **out)
{
	struct control *c = calloc(1, sizeof *c);
	int err;

	if (!c) {
		fabric_chan_free(chan);
		return -ENOMEM;
	}
	err = pipe_new(chan, &c->pipe);
	if (!err && context)
		err = tls_new(context, host, &c->tls);
	if (err) {
		control_free(c);
		return err;
	}
	*out = c;
	return 0;
}

void control_start(struct control *c, uint16_t peer_credits)
{
	pipe_start(c->pipe, peer_credits);
}

void control_free(struct control *c)
{
	if (!c)
		return;
	pipe_free(c->pipe);
	tls_free(c->tls);
	buffer_fini(&c->held);
	buffer_fini(&c->plain);
	free(c);
}

struct fabric_chan *control_chan(const struct control *c)
{
	return pipe_chan(c->pipe);
}

struct fabric_pd *control_pd(const struct control *c)
{
	return pipe_pd(c->pipe);
}

struct pipe *control_pipe(const struct control *c)
{
	return c->pipe;
}

/* Whether the handshake is complete: what frames carry is protected, and TLS can be asked. */
static bool control_is_secured(const struct control *c)
{
	return c->tls && tls_is_complete(c->tls);
}

const struct tls *control_tls(const struct control *c)
{
	return c->tls;
}

/* The bytes of frames that came. */
static struct buffer *input(struct control *c)
{
	return c->tls ? &c->plain : pipe_input(c->pipe);
}

/* Appends to what the pipe sends.  0 or -errno, and then nothing of it leaves. */
static int append(struct control *c, const void *head, const void *data, size_t len)
{
	struct buffer *to = c->tls ? &c->held : pipe_output(c->pipe);
	int err = buffer_append(to, head, MESSAGE_HEADER_BYTES);

	if (err)
		return err;
	err = buffer_append(to, data, len);
	if (err) /* half a frame must not leave */
		to->tail -= MESSAGE_HEADER_BYTES;
	return err;
}

/* Encrypts what was held back. */
static int protect(struct control *c)
{
	int err;

	if (!control_is_secured(c) || !buffer_bytes(&c->held))
		return 0;
	err = tls_write(
		c->tls, buffer_front(&c->held), buffer_bytes(&c->held), pipe_output(c->pipe));
	buffer_consume(&c->held, buffer_bytes(&c->held));
	return err;
}

/* Takes on what came through TLS: the handshake, then records. */
static int unprotect(struct control *c)
{
	struct buffer *in = pipe_input(c->pipe), *out = pipe_output(c->pipe);

	if (!tls_is_complete(c->tls)) {
		int err = tls_handshake(c->tls, in, out);

		if (err <= 0)
			return err;
		err = protect(c);
		if (err)
			return err;
	}
	if (c->corked) {
		int err = protect(c);

		if (err)
			return err;
	}
	/* a peer that sends on while its frames are not read gets no memory for it */
	if (buffer_bytes(&c->plain) >= CONTROL_INPUT_MAX) {
		log_error(
			"control channel: more than %u bytes before an answer", CONTROL_INPUT_MAX);
		return -EBADMSG;
	}
	return tls_read(c->tls, in, &c->plain, CONTROL_INPUT_MAX, out);
}

/* Takes in all completions.  Called while no whole frame waits, or not much of them, which bounds
 * the input. */
static void progress(struct control *c)
{
	int err, broken;

	if (c->error)
		return;
	do {
		broken = pipe_progress(c->pipe);
		err = c->tls ? unprotect(c) : 0; /* also what came before the channel broke */
		/* what TLS has to say, such as why; who learns by it that the channel has ended
		 * takes in what had come */
	} while (c->tls && pipe_push(c->pipe) && !err && !broken);
	if (err && !(err == -ENOTCONN && broken))
		broken = err;
	c->error = broken;
}

/* What is queued leaves as far as credits allow.  0 or -ENOTCONN, from then on. */
static int leave(struct control *c)
{
	if (protect(c))
		c->error = -ENOTCONN;
	else if (pipe_push(c->pipe))
		c->mute = true;
	return c->error || c->mute ? -ENOTCONN : 0;
}

int control_put(struct control *c, uint16_t type, uint16_t response, const void *data, size_t len)
{
	struct message_header h = {type, response, (uint32_t)len};
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	int err;

	assert(len <= MESSAGE_DATA_MAX && !message_check(&h));
	if (c->error || c->mute)
		return c->error ? c->error : -ENOTCONN;
	if (control_pending_bytes(c) + len > CONTROL_PENDING_MAX)
		return -ENOBUFS;
	pipe_ring_expect(c->pipe, type);
	message_put_header(&h, bytes);
	err = append(c, bytes, data, len);
	if (err)
		return err;
	return c->corked ? 0 : leave(c);
}

void control_cork(struct control *c, bool corked)
{
	c->corked = corked;
	if (!corked && !c->error && !c->mute)
		leave(c);
}

void control_probe(struct control *c)
{
	if (!c->error && pipe_probe(c->pipe))
		c->mute = true;
}

/* 1: a whole frame lies at the front of the input; 0: not yet; -EBADMSG. */
static int frame_ready(struct control *c, struct message_header *h)
{
	const struct buffer *in = input(c);

	if (buffer_bytes(in) < MESSAGE_HEADER_BYTES)
		return 0;
	if (message_get_header(h, buffer_front(in)) || message_check(h)) {
		log_error("control channel: bad frame: type %u, length %u, response %u", h->type,
			h->length, h->response);
		return -EBADMSG;
	}
	return buffer_bytes(in) >= MESSAGE_HEADER_BYTES + h->length;
}

/* The caller is done with the frame that control_get gave last. */
static void forget_frame(struct control *c)
{
	if (c->consumed)
		buffer_consume(input(c), c->consumed);
	c->consumed = 0;
}

int control_get(struct control *c, struct message_header *h, const uint8_t **data)
{
	int got;

	forget_frame(c);
	got = frame_ready(c, h);
	if (!got) {
		progress(c);
		got = frame_ready(c, h);
	}
	if (got < 0)
		c->error = got;
	if (got <= 0)
		return c->error;
	*data = buffer_front(input(c)) + MESSAGE_HEADER_BYTES;
	c->consumed = MESSAGE_HEADER_BYTES + h->length;
	return 1;
}

void control_push(struct control *c)
{
	progress(c);
}

void control_hear(struct control *c)
{
	if (buffer_bytes(pipe_input(c->pipe)) + buffer_bytes(&c->plain) <= CONTROL_INPUT_MAX / 2)
		progress(c);
}

size_t control_pending_bytes(const struct control *c)
{
	return buffer_bytes(&c->held) + buffer_bytes(pipe_output(c->pipe));
}

int control_arm(struct control *c)
{
	return pipe_arm(c->pipe);
}

int control_fd(const struct control *c)
{
	return pipe_fd(c->pipe);
}

/* Whether what is waited for is there; called after the queue was armed. */
typedef bool control_condition(struct control *);

/* Blocks until `met`.  0, -ETIMEDOUT, -ECANCELED, -errno of arming or poll. */
static int wait_until(struct control *c, control_condition *met, int timeout_ms, int cancel_fd)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct pollfd fds[2] = {{control_fd(c), POLLIN, 0}, {cancel_fd, POLLIN, 0}};

	for (;;) {
		int got = control_arm(c);

		if (got)
			return got;
		if (met(c))
			return 0;
		got = poll(fds, 2, timeout_ms < 0 ? -1 : clock_until_ms(deadline));
		if (fds[1].revents)
			return -ECANCELED;
		if (!got)
			return -ETIMEDOUT;
		if (got < 0 && errno != EINTR)
			return -errno;
	}
}

static bool has_frame(struct control *c)
{
	struct message_header h;

	if (!frame_ready(c, &h))
		progress(c);
	return frame_ready(c, &h) || c->error;
}

static bool has_frame_or_room(struct control *c)
{
	return has_frame(c) || !control_pending_bytes(c);
}

static bool is_sent(struct control *c)
{
	progress(c);
	return c->error || !control_pending_bytes(c);
}

static bool is_drained(struct control *c)
{
	return is_sent(c) && (c->error || !pipe_is_sending(c->pipe));
}

static bool is_through_handshake(struct control *c)
{
	progress(c);
	return c->error || control_is_secured(c);
}

int control_wait(struct control *c, int timeout_ms, int cancel_fd)
{
	const bool flushing = control_pending_bytes(c);

	forget_frame(c);
	return wait_until(c, flushing ? has_frame_or_room : has_frame, timeout_ms, cancel_fd);
}

int control_flush(struct control *c, int timeout_ms)
{
	int err = wait_until(c, is_sent, timeout_ms, -1);

	return err ? err : c->error;
}

void control_drain(struct control *c, int timeout_ms)
{
	(void)wait_until(c, is_drained, timeout_ms, -1);
}

int control_secure(struct control *c, int timeout_ms, int cancel_fd)
{
	int err = wait_until(c, is_through_handshake, timeout_ms, cancel_fd);

	return err ? err : c->error;
}
