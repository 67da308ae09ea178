/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/reply_ring: the pieces of a byte stream in a ring of memory that its reader fetches by
 * READ: the writer's half and the reader's.  Pure: what is posted, and when, is its users' business
 * (session/pipe_ring, session/reply_wait).
 *
 * A piece is a head and so many bytes of the stream, as rftp-protocol(7), "Replies by READ" has it.
 * It begins where the one before ended, rounded up to REPLY_ALIGN, and lies in one part: where the
 * ring ends, so does a piece at the latest.  Its number is written last, and tells the reader that
 * it is there; a checksum tells what was read while it was written.
 *
 * Positions are bytes of the ring since its beginning, modulo 2^32.
 */
#ifndef SESSION_REPLY_RING_H
#define SESSION_REPLY_RING_H

#include "proto/message.h"

#include <stdbool.h>
#include <stdint.h>

#define REPLY_HEAD_BYTES 24u   /* number 64, length 32, credits 16, reserved 16, checksum 64 */
#define REPLY_ALIGN 64u        /* no READ is shorter: the kernel's siw may fail those */
#define REPLY_PIECE_MAX 65536u /* bytes of the stream in one */
#define REPLY_READ_MAX 65600u  /* of one READ: a head and those, rounded up */
#define REPLY_TORN_MAX 8u      /* times in a row that what is read may be wrong */
#define REPLY_KINDS 64u

/* ---- who writes ---- */

struct reply_writer {
	uint8_t *base; /* of `bytes`, a power of two; aligned to REPLY_ALIGN, and zeros at first */
	uint32_t bytes;
	uint32_t written, read; /* positions; the second as the peer has said */
	uint64_t number;        /* of the last piece */
};

void reply_writer_init(struct reply_writer *, void *base, uint32_t bytes);
/* Bytes of the stream that the next piece can take.  -1: not even its head has room. */
int32_t reply_writer_room(const struct reply_writer *);
/* As many at most. */
void reply_writer_put(struct reply_writer *, const void *data, uint32_t len, uint16_t credits);
/* The peer says that it has read so far.  0, or -EBADMSG: that cannot be. */
int reply_writer_confirm(struct reply_writer *, uint32_t read);

/* ---- who reads ---- */

struct reply_piece {
	const uint8_t *data;
	uint32_t len;
	uint16_t credits;
};

struct reply_reader {
	uint8_t *land; /* REPLY_READ_MAX bytes, where READs put what they bring */
	uint32_t bytes, read;
	uint64_t number;        /* of the next piece */
	uint32_t wanted, at;    /* of the last READ, and how far it was looked through */
	uint32_t whole;         /* so much must be read of a piece of which a part came; or 0 */
	uint32_t size, brought; /* F: of the next READ; what came since something was asked for */
	uint32_t need[REPLY_KINDS]; /* bytes that an answer of this kind took */
	unsigned kind, torn;
};

void reply_reader_init(struct reply_reader *, uint8_t *land, uint32_t bytes);
/* Something was asked for whose answer may be as long as the last one of its kind. */
void reply_reader_expect(struct reply_reader *, unsigned kind);
/* The next READ: so many bytes of the ring from this one on, to the beginning of `land`. */
uint32_t reply_reader_want(struct reply_reader *, uint32_t *offset);
/*
 * What that READ has brought, piece by piece: 1: *piece, until the next READ; 0: no more is there;
 * -EAGAIN: something is, and the next READ brings it; -EBADMSG: it has been wrong too often.
 */
int reply_reader_next(struct reply_reader *, struct reply_piece *);

#endif
