/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/reply_ring: see reply_ring.h.
 */
#include "session/reply_ring.h"

#include "block/digest.h"
#include "proto/wire.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define SUMMED_BYTES 16u /* of the head, in front of the checksum */
#define SIZE_MIN 512u    /* F, while nothing comes */

static uint32_t piece_bytes(uint32_t len)
{
	return (REPLY_HEAD_BYTES + len + REPLY_ALIGN - 1) & ~(REPLY_ALIGN - 1);
}

static uint64_t checksum(const uint8_t *head, const uint8_t *data, uint32_t len)
{
	return digest_leaf(head, SUMMED_BYTES) ^ digest_leaf(data, len);
}

/* ---- who writes ---- */

void reply_writer_init(struct reply_writer *w, void *base, uint32_t bytes)
{
	assert(!(bytes & (bytes - 1)) && bytes >= REPLY_ALIGN);
	*w = (struct reply_writer){.base = base, .bytes = bytes};
}

int32_t reply_writer_room(const struct reply_writer *w)
{
	uint32_t free = w->bytes - (w->written - w->read);
	uint32_t left = w->bytes - (w->written & (w->bytes - 1)); /* to the end */

	if (left > free)
		left = free;
	if (left < REPLY_ALIGN)
		return -1;
	left -= REPLY_HEAD_BYTES;
	return (int32_t)(left < REPLY_PIECE_MAX ? left : REPLY_PIECE_MAX);
}

/*
 * An adapter may read the ring at any time, also here: whole words then, so that what it finds is
 * old or new.  Unseen by ThreadSanitizer, to which the fabrics that play the adapter are threads
 * that read what nobody has handed to them; that it is whole is for the checksum to find.
 */
__attribute__((noinline, no_sanitize("thread"))) static void store(
	uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	uint64_t word;

	for (; bytes >= sizeof word; bytes -= sizeof word) {
		memcpy(&word, from, sizeof word);
		__atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELAXED);
		to += sizeof word;
		from += sizeof word;
	}
	for (; bytes; bytes--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELAXED);
}

__attribute__((noinline, no_sanitize("thread"))) static void publish(uint8_t *to, uint64_t number)
{
	__atomic_store_n((uint64_t *)(void *)to, htobe64(number), __ATOMIC_RELEASE);
}

void reply_writer_put(struct reply_writer *w, const void *data, uint32_t len, uint16_t credits)
{
	uint8_t *to = w->base + (w->written & (w->bytes - 1));
	uint8_t head[REPLY_HEAD_BYTES];
	struct wire wire;

	assert((int32_t)len <= reply_writer_room(w));
	wire_init_put(&wire, head, sizeof head);
	wire_put_u64(&wire, ++w->number);
	wire_put_u32(&wire, len);
	wire_put_u16(&wire, credits);
	wire_put_u16(&wire, 0);
	wire_put_u64(&wire, checksum(head, data, len));
	store(to + REPLY_HEAD_BYTES, data, len);
	store(to + sizeof w->number, head + sizeof w->number, sizeof head - sizeof w->number);
	publish(to, w->number);
	w->written += piece_bytes(len);
}

int reply_writer_confirm(struct reply_writer *w, uint32_t read)
{
	if (read % REPLY_ALIGN || read - w->read > w->written - w->read)
		return -EBADMSG;
	w->read = read;
	return 0;
}

/* ---- who reads ---- */

void reply_reader_init(struct reply_reader *r, uint8_t *land, uint32_t bytes)
{
	assert(!(bytes & (bytes - 1)) && bytes >= REPLY_ALIGN);
	*r = (struct reply_reader){.land = land, .bytes = bytes, .number = 1, .size = SIZE_MIN};
}

void reply_reader_expect(struct reply_reader *r, unsigned kind)
{
	r->kind = kind % REPLY_KINDS;
	r->brought = 0;
	r->size = r->need[r->kind] > SIZE_MIN ? r->need[r->kind] : SIZE_MIN;
}

uint32_t reply_reader_want(struct reply_reader *r, uint32_t *offset)
{
	uint32_t left, bytes = r->whole ? r->whole : r->size;

	*offset = r->read & (r->bytes - 1);
	left = r->bytes - *offset;
	r->wanted = bytes < left ? bytes : left;
	r->at = 0;
	return r->wanted;
}

/* What is there cannot be: it was read while it was written, or the peer lies. */
static int is_torn(struct reply_reader *r)
{
	r->whole = 0;
	return ++r->torn > REPLY_TORN_MAX ? -EBADMSG : -EAGAIN;
}

static void came(struct reply_reader *r, uint32_t bytes)
{
	uint32_t most = r->brought + bytes;

	r->read += bytes;
	r->at += bytes;
	r->number++;
	r->whole = r->torn = 0;
	r->brought = most < REPLY_READ_MAX ? most : REPLY_READ_MAX;
	r->need[r->kind] = r->brought;
	r->size = SIZE_MIN; /* what else comes is not this answer */
}

int reply_reader_next(struct reply_reader *r, struct reply_piece *piece)
{
	const uint8_t *head = r->land + r->at;
	uint32_t left = r->bytes - (r->read & (r->bytes - 1));
	uint16_t reserved;
	uint64_t sum;
	struct wire w;

	if (r->at + REPLY_HEAD_BYTES > r->wanted)
		return 0;
	wire_init_get(&w, head, REPLY_HEAD_BYTES);
	if (wire_get_u64(&w) != r->number) {
		if (!r->at && r->size > SIZE_MIN) /* what is not there need not be read whole */
			r->size = r->size / 2 > SIZE_MIN ? r->size / 2 : SIZE_MIN;
		return 0;
	}
	piece->len = wire_get_u32(&w);
	piece->credits = wire_get_u16(&w);
	reserved = wire_get_u16(&w);
	sum = wire_get_u64(&w);
	if (reserved || piece->len > REPLY_PIECE_MAX || piece->len > left - REPLY_HEAD_BYTES)
		return is_torn(r);
	if (r->wanted - r->at < REPLY_HEAD_BYTES + piece->len) {
		r->whole = piece_bytes(piece->len);
		return -EAGAIN;
	}
	piece->data = head + REPLY_HEAD_BYTES;
	if (sum != checksum(head, piece->data, piece->len))
		return is_torn(r);
	came(r, piece_bytes(piece->len));
	return 1;
}
