/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/buffer: see buffer.h.
 */
#include "session/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_FIRST 512u
#define BUFFER_KEPT 16384u /* what a long listing needed is not kept for an idle session */

uint8_t *buffer_reserve(struct buffer *b, size_t len)
{
	if (b->room - b->tail < len && b->head) {
		memmove(b->data, b->data + b->head, b->tail - b->head);
		b->tail -= b->head;
		b->head = 0;
	}
	if (b->room - b->tail < len || !b->data) {
		size_t room = b->room ? b->room : BUFFER_FIRST;
		uint8_t *grown;

		while (room - b->tail < len)
			room *= 2;
		grown = realloc(b->data, room);
		if (!grown)
			return NULL;
		b->data = grown;
		b->room = room;
	}
	return b->data + b->tail;
}

int buffer_append(struct buffer *b, const void *data, size_t len)
{
	uint8_t *to;

	if (!len)
		return 0;
	to = buffer_reserve(b, len);
	if (!to)
		return -ENOMEM;
	memcpy(to, data, len);
	b->tail += len;
	return 0;
}

void buffer_consume(struct buffer *b, size_t len)
{
	assert(len <= buffer_bytes(b));
	b->head += len;
	if (b->head == b->tail) {
		b->head = b->tail = 0;
		if (b->room > BUFFER_KEPT)
			buffer_fini(b);
	}
}

void buffer_fini(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){0};
}
