/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/block.h: one block: a piece of registered memory and what is in it.
 *
 * In memory, a slot of the arena (stride = BLOCK_ALIGN + payload capacity rounded up to
 * BLOCK_ALIGN):
 *
 *     | pad ... | header 24 | sum 8 | payload ... |
 *     ^ slot                         ^ slot + BLOCK_ALIGN, 4096-aligned for O_DIRECT
 *
 * What crosses the wire is the run from the header to the end of the payload, in one WRITE; or the
 * payload alone, and header and sum in a gathered notice.  The header is the one of RFTP's Fig.
 * 7(b); `sum` is ours: XXH3-64 of the payload, xor XXH3-64 of the 24 header bytes.
 *
 * A struct block is owned by one thread at a time; the queue that hands it over is the barrier.
 */
#ifndef BLOCK_BLOCK_H
#define BLOCK_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_ALIGN 4096u
#define BLOCK_HEADER_BYTES 24u
#define BLOCK_SUM_BYTES 8u
#define BLOCK_PREFIX_BYTES (BLOCK_HEADER_BYTES + BLOCK_SUM_BYTES)
#define BLOCK_BYTES_MIN (64u << 10) /* payload capacity */
#define BLOCK_BYTES_MAX (16u << 20)

enum block_state {
	BLOCK_FREE,
	/* source: FREE > FILLING > FILLED > SENDING > FREE (the paper's free, loading, loaded,
	   waiting) */
	BLOCK_FILLING,
	BLOCK_FILLED,
	BLOCK_SENDING,
	/* sink: FREE > GRANTED > LANDED > DRAINING > FREE (the paper's free, waiting, data ready)
	 */
	BLOCK_GRANTED,
	BLOCK_LANDED,
	BLOCK_DRAINING,
};

struct block {
	uint8_t *payload;  /* BLOCK_ALIGN-aligned; the prefix lies right before it */
	uint32_t index;    /* in the pool; what credits and notices name */
	uint32_t capacity; /* payload bytes that fit */
	enum block_state state;

	/* what is, or will be, in it */
	uint32_t session;  /* the block header's session: number of the file in the transfer */
	uint32_t sequence; /* counts the blocks of that file, from 0; given when the credit is spent
			    */
	uint32_t flags;    /* the block header's flags */
	uint32_t length;   /* payload bytes, wanted before and got after an end filled it */
	uint32_t stored;   /* of these, as they cross compressed (block/squeeze); 0: as they are */
	bool squeeze;      /* source: it is to be compressed where that makes it smaller */
	uint64_t offset;   /* in the file */
	uint64_t leaf;     /* XXH3-64 of the payload */
	uint64_t seal_counter; /* sink: of a sealed block (block/seal.h), and its payload's tag */
	uint8_t seal_tag[16];
	int error;          /* 0, or -errno from the end that filled or drained it */
	void *owner;        /* the loop's file of this block; opaque here */
	struct block *next; /* in a list of its owner */
};

/* Bytes of the payload as it crosses. */
static inline uint32_t block_crossing(const struct block *b)
{
	return b->stored ? b->stored : b->length;
}

#endif
