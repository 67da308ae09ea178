/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/buffer: a queue of bytes in one piece of memory, which grows as it is filled.
 *
 * Appended to at the end, consumed at the front.  It has no limit of its own: who appends what a
 * peer sends checks how much there is first.  One thread.
 */
#ifndef SESSION_BUFFER_H
#define SESSION_BUFFER_H

#include <stddef.h>
#include <stdint.h>

/* All zeros is an empty one. */
struct buffer {
	uint8_t *data;
	size_t head, tail, room;
};

static inline size_t buffer_bytes(const struct buffer *b)
{
	return b->tail - b->head;
}

/* The first byte; NULL when it never held any. */
static inline uint8_t *buffer_front(const struct buffer *b)
{
	return b->data ? b->data + b->head : NULL;
}

/* Room for `len` bytes behind the last one, which are counted by buffer_added.  NULL: no memory. */
uint8_t *buffer_reserve(struct buffer *b, size_t len);
static inline void buffer_added(struct buffer *b, size_t len)
{
	b->tail += len;
}

/* 0 or -ENOMEM, and nothing was appended. */
int buffer_append(struct buffer *b, const void *data, size_t len);
/* Takes `len` bytes away from the front. */
void buffer_consume(struct buffer *b, size_t len);
void buffer_fini(struct buffer *b);

#endif
