/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_reply_ring: the input is a ring from which replies are read, and then what a client says of
 * how far it has read.
 *
 * First byte, bit 0: checksums are made right, so that what they protect is reached.
 */
#include "block/digest.h"
#include "proto/wire.h"
#include "session/reply_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define RING 4096u

static uint8_t ring[RING] __attribute__((aligned(64)));

/* As the daemon would have it, where there is a head that is possible. */
static void make_right(uint32_t offset)
{
	uint8_t *head = ring + offset;
	struct wire w;
	uint32_t len;

	wire_init_get(&w, head + 8, 4);
	len = wire_get_u32(&w);
	if (len > RING - offset - REPLY_HEAD_BYTES)
		return;
	wire_init_put(&w, head + 16, 8);
	wire_put_u64(&w, digest_leaf(head, 16) ^ digest_leaf(head + REPLY_HEAD_BYTES, len));
}

static void read_all(bool right)
{
	struct reply_reader reader;
	unsigned torn = 0;

	/* of its own, so that whoever reads beyond is seen */
	reply_reader_init(&reader, malloc(REPLY_READ_MAX), RING);
	must(reader.land);
	for (unsigned i = 0; i < 200 && torn <= REPLY_TORN_MAX; i++) {
		uint32_t offset, before = reader.read, bytes = reply_reader_want(&reader, &offset);
		uint8_t *land = reader.land;
		struct reply_piece piece;
		int got;

		must(bytes >= REPLY_ALIGN && bytes <= REPLY_READ_MAX && offset + bytes <= RING);
		if (right)
			make_right(offset);
		reader.land = malloc(bytes); /* no more than that was read */
		must(reader.land);
		memcpy(reader.land, ring + offset, bytes);
		while ((got = reply_reader_next(&reader, &piece)) == 1)
			must(piece.data >= reader.land &&
				piece.data + piece.len <= reader.land + bytes);
		free(reader.land);
		reader.land = land;
		must(!got || got == -EAGAIN || got == -EBADMSG);
		must(reader.read - before <= RING && reader.read % REPLY_ALIGN == 0);
		reply_reader_expect(&reader, i);
		if (got == -EBADMSG)
			break;
		torn = reader.torn;
	}
	free(reader.land);
}

static void confirm(const uint8_t *data, size_t size)
{
	struct reply_writer writer;
	struct wire w;

	memset(ring, 0, sizeof ring);
	reply_writer_init(&writer, ring, RING);
	wire_init_get(&w, data, size);
	while (wire_left(&w) >= 8) {
		uint32_t len = wire_get_u32(&w) % RING, position = wire_get_u32(&w);
		int32_t room = reply_writer_room(&writer);

		if (room >= 0 && len <= (uint32_t)room)
			reply_writer_put(&writer, data, len < size ? len : (uint32_t)size, 0);
		(void)reply_writer_confirm(&writer, position);
		must(writer.written - writer.read <= RING);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	memset(ring, 0, sizeof ring);
	memcpy(ring, data + 1, size - 1 < RING ? size - 1 : RING);
	read_all(data[0] & 1);
	confirm(data + 1, size - 1);
	return 0;
}
