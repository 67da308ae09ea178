/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/frame_queue: see frame_queue.h.
 */
#include "session/frame_queue.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void frame_queue_init(struct frame_queue *q)
{
	*q = (struct frame_queue){.fd = -1};
}

void frame_queue_fini(struct frame_queue *q)
{
	if (q->fd >= 0)
		close(q->fd);
	frame_queue_clear(q);
}

static int append(struct buffer *to, const struct message_header *h, const uint8_t *data)
{
	uint8_t *bytes = buffer_reserve(to, MESSAGE_HEADER_BYTES + h->length);

	if (!bytes)
		return -ENOMEM;
	message_put_header(h, bytes);
	if (h->length)
		memcpy(bytes + MESSAGE_HEADER_BYTES, data, h->length);
	buffer_added(to, MESSAGE_HEADER_BYTES + h->length);
	return 0;
}

/* ---- under the lock ---- */

int frame_queue_make_fd(struct frame_queue *q)
{
	if (q->fd < 0)
		q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return q->fd < 0 ? -errno : 0;
}

void frame_queue_wake(struct frame_queue *q)
{
	const uint64_t one = 1;

	if (q->signalled || q->fd < 0)
		return;
	/* full would mean that it is readable anyway */
	q->signalled = write(q->fd, &one, sizeof one) == sizeof one || errno == EAGAIN;
}

void frame_queue_unwake(struct frame_queue *q)
{
	uint64_t count;

	if (q->signalled && read(q->fd, &count, sizeof count) < 0 && errno != EAGAIN)
		return;
	q->signalled = false;
}

size_t frame_queue_incoming_bytes(const struct frame_queue *q)
{
	return buffer_bytes(&q->incoming);
}

int frame_queue_append(struct frame_queue *q, const struct message_header *h, const uint8_t *data)
{
	return append(&q->incoming, h, data);
}

bool frame_queue_turn(struct frame_queue *q)
{
	struct buffer empty = q->reading;

	if (buffer_bytes(&q->reading))
		return true;
	q->reading = q->incoming;
	q->incoming = empty;
	return buffer_bytes(&q->reading);
}

bool frame_queue_any(const struct frame_queue *q)
{
	return buffer_bytes(&q->reading) > q->consumed || buffer_bytes(&q->incoming);
}

void frame_queue_clear(struct frame_queue *q)
{
	buffer_fini(&q->incoming);
	buffer_fini(&q->reading);
	q->consumed = 0;
}

int frame_queue_move(struct frame_queue *q, struct frame_queue *to)
{
	int err;

	frame_queue_consume(q);
	err = buffer_append(&to->incoming, buffer_front(&q->reading), buffer_bytes(&q->reading));
	if (!err)
		err = buffer_append(
			&to->incoming, buffer_front(&q->incoming), buffer_bytes(&q->incoming));
	frame_queue_clear(q);
	return err;
}

/* What lies before `at` stays. */
static int sift(struct buffer *from, size_t at, struct frame_queue *to,
	bool (*wanted)(void *ctx, const struct message_header *), void *ctx)
{
	uint8_t *front = buffer_front(from);
	size_t all = buffer_bytes(from), kept = at;
	int err = 0;

	while (at < all) {
		struct message_header h;
		size_t bytes;

		(void)message_get_header(&h, front + at); /* as it was written */
		bytes = MESSAGE_HEADER_BYTES + h.length;
		if (!err && wanted(ctx, &h)) {
			err = to ? buffer_append(&to->incoming, front + at, bytes) : 0;
		} else {
			memmove(front + kept, front + at, bytes);
			kept += bytes;
		}
		at += bytes;
	}
	from->tail -= all - kept;
	return err;
}

int frame_queue_sift(struct frame_queue *q, struct frame_queue *to,
	bool (*wanted)(void *ctx, const struct message_header *), void *ctx)
{
	int err = sift(&q->reading, q->consumed, to, wanted, ctx);

	return err ? err : sift(&q->incoming, 0, to, wanted, ctx);
}

/* ---- of the reader ---- */

bool frame_queue_give(struct frame_queue *q, struct message_header *h, const uint8_t **data)
{
	if (!buffer_bytes(&q->reading))
		return false;
	(void)message_get_header(h, buffer_front(&q->reading)); /* as it was written */
	*data = buffer_front(&q->reading) + MESSAGE_HEADER_BYTES;
	q->consumed = MESSAGE_HEADER_BYTES + h->length;
	return true;
}

void frame_queue_consume(struct frame_queue *q)
{
	if (q->consumed)
		buffer_consume(&q->reading, q->consumed);
	q->consumed = 0;
}

void frame_queue_unget(struct frame_queue *q)
{
	q->consumed = 0;
}

int frame_queue_put_first(
	struct frame_queue *q, const struct message_header *h, const uint8_t *data)
{
	assert(!buffer_bytes(&q->reading));
	return append(&q->reading, h, data);
}
