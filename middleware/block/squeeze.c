/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/squeeze: see squeeze.h.
 */
#include "block/squeeze.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define SQUEEZE_RAW (-15) /* DEFLATE with the largest window, without zlib's header and sum */
#define SQUEEZE_MEMORY 8

struct squeeze {
	unsigned level;
	z_stream packer, unpacker;
	bool packs, unpacks; /* these are set up */
	uint8_t *room;       /* as large as a block's payload can be */
	uint32_t size;
};

int squeeze_new(unsigned level, struct squeeze **out)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return -ENOMEM;
	(*out)->level = level;
	return 0;
}

void squeeze_free(struct squeeze *s)
{
	if (!s)
		return;
	if (s->packs)
		deflateEnd(&s->packer);
	if (s->unpacks)
		inflateEnd(&s->unpacker);
	free(s->room);
	free(s);
}

static bool squeeze_has_room(struct squeeze *s, uint32_t size)
{
	uint8_t *grown;

	if (size <= s->size)
		return true;
	grown = realloc(s->room, size);
	if (!grown)
		return false;
	s->room = grown;
	s->size = size;
	return true;
}

void squeeze_pack(struct squeeze *s, struct block *b)
{
	const uint32_t most = b->length - b->length / SQUEEZE_LEAST - 1;

	b->stored = 0;
	if (b->length <= SQUEEZE_LEAST || !squeeze_has_room(s, b->capacity))
		return;
	if (s->packs)
		deflateReset(&s->packer);
	else
		s->packs = deflateInit2(&s->packer, (int)s->level, Z_DEFLATED, SQUEEZE_RAW,
				   SQUEEZE_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK;
	if (!s->packs)
		return;
	s->packer.next_in = b->payload;
	s->packer.avail_in = b->length;
	s->packer.next_out = s->room;
	s->packer.avail_out = most;
	if (deflate(&s->packer, Z_FINISH) != Z_STREAM_END)
		return;
	b->stored = most - s->packer.avail_out;
	memcpy(b->payload, s->room, b->stored);
}

int squeeze_unpack(struct squeeze *s, struct block *b)
{
	int n;

	if (!squeeze_has_room(s, b->stored))
		return -ENOMEM;
	if (s->unpacks)
		inflateReset(&s->unpacker);
	else
		s->unpacks = inflateInit2(&s->unpacker, SQUEEZE_RAW) == Z_OK;
	if (!s->unpacks)
		return -ENOMEM;
	memcpy(s->room, b->payload, b->stored);
	s->unpacker.next_in = s->room;
	s->unpacker.avail_in = b->stored;
	s->unpacker.next_out = b->payload;
	s->unpacker.avail_out = b->length;
	n = inflate(&s->unpacker, Z_FINISH);
	if (n == Z_MEM_ERROR)
		return -ENOMEM;
	/* no byte more, no byte less, and nothing behind its end */
	return n == Z_STREAM_END && !s->unpacker.avail_out && !s->unpacker.avail_in ? 0 : -EILSEQ;
}
