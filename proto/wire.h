/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/wire: a bounded big-endian cursor over bytes, with a sticky error.
 *
 * Put and get never touch memory outside [start, end).  The first failure sets `error` and makes
 * all later calls do nothing (gets return 0), so a codec is written straight down and checked once,
 * with wire_finish.  Pure: no I/O, no allocation.
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct wire {
	uint8_t *start, *at, *end;
	bool get;  /* set up by wire_init_get: bytes left over are an error */
	int error; /* 0, -EMSGSIZE (short of room or of bytes), -EBADMSG (a value is not allowed) */
};

/* Bytes inside somebody else's buffer; not terminated. */
struct wire_bytes {
	const uint8_t *data;
	size_t len;
};

void wire_init_put(struct wire *, void *buf, size_t size);
void wire_init_get(struct wire *, const void *buf, size_t len); /* nothing is written through it */

void wire_put_u8(struct wire *, uint8_t);
void wire_put_u16(struct wire *, uint16_t);
void wire_put_u32(struct wire *, uint32_t);
void wire_put_u64(struct wire *, uint64_t);
void wire_put_raw(struct wire *, const void *, size_t);
/* A 16-bit length, then the bytes; more than `max` is -EMSGSIZE. */
void wire_put_bytes(struct wire *, struct wire_bytes, size_t max);

uint8_t wire_get_u8(struct wire *);
uint16_t wire_get_u16(struct wire *);
uint32_t wire_get_u32(struct wire *);
uint64_t wire_get_u64(struct wire *);
void wire_get_raw(struct wire *, void *, size_t);
/* The result points into the buffer; a length over `max` is -EBADMSG. */
struct wire_bytes wire_get_bytes(struct wire *, size_t max);

/* Marks the message as bad (-EBADMSG) unless an earlier error stands. */
void wire_refuse(struct wire *);
void wire_require(struct wire *, bool ok);   /* refuses unless ok */
size_t wire_put_length(const struct wire *); /* bytes written so far */
size_t wire_left(const struct wire *);
/* The sticky error; a get with bytes left over is -EBADMSG: trailing bytes are an error. */
int wire_finish(const struct wire *);
/* What a codec's put returns: bytes written, or the sticky error. */
ssize_t wire_put_end(const struct wire *);

#endif
