/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/credit: the two ledgers of the credit engine (RFTP, section IV).  Pure.
 *
 * Source: the sink's block indices that it may write to, first granted first spent.
 * Sink: how many blocks to grant now: up to two for each landed block, so that the window doubles
 * each round trip at first; what it owes a source that asked.
 */
#ifndef BLOCK_CREDIT_H
#define BLOCK_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

/* ---- source ---- */
struct credit_book;

/* For a sink of `blocks` blocks.  0 or -ENOMEM. */
int credit_book_new(uint32_t blocks, struct credit_book **out);
void credit_book_free(struct credit_book *);
/*
 * Takes in granted indices from the peer, all or none: -ERANGE (an index not below `blocks`),
 * -EEXIST (an index that is granted already, also twice in this list).
 */
int credit_book_add(struct credit_book *, const uint32_t *indices, uint32_t count);
uint32_t credit_book_available(const struct credit_book *);
/* Spends the oldest credit; the index may be granted again from now on.  -EAGAIN when there is
 * none. */
int credit_book_spend(struct credit_book *, uint32_t *index);

/* ---- sink ---- */
struct credit_meter {
	uint32_t blocks;  /* in the pool */
	uint32_t granted; /* named to the source, not landed yet */
	uint32_t debt;    /* grants earned and not given for want of free blocks */
	bool asked;       /* the source is starving and waits for a grant */
};

/* All blocks are free, none is granted; the first credit_meter_grant names up to `initial`. */
void credit_meter_init(struct credit_meter *, uint32_t blocks, uint32_t initial);
/* A granted block landed: earns two grants. */
void credit_meter_landed(struct credit_meter *);
/* The source asked: earns at least one. */
void credit_meter_asked(struct credit_meter *);
/*
 * How many of `free_blocks` to grant now; the caller grants exactly that many.  Once the window is
 * open and while the source has at least half of it to write to, grants are held back until they
 * are worth a message, a quarter of the blocks; never from a source that asked.
 */
uint32_t credit_meter_grant(struct credit_meter *, uint32_t free_blocks);

#endif
