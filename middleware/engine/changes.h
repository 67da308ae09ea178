/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/changes: bytes of ours that a peer writes, and what each of them must be until it does:
 * finds those that are not.
 *
 * A peer can write any byte at any time, so what a byte must be is in memory of our own; a
 * difference is news, or a protocol error: the engine judges.  The bytes are in whole pages that
 * nothing else is in, and behind them there are zeros up to a multiple of CHANGES_WORD, which are
 * looked at as well.
 */
#ifndef ENGINE_CHANGES_H
#define ENGINE_CHANGES_H

#include "block/arena.h"

#define CHANGES_WORD 8u /* bytes looked at together */

struct changes {
	struct arena arena;
	uint8_t *expected; /* what each byte must be: the engine's to write */
	uint32_t bytes;    /* a multiple of CHANGES_WORD */
	uint32_t next;     /* byte to look at next */
};

/* All bytes are 0, and must be.  0 or -ENOMEM; `changes_fini` takes a zeroed one, too. */
int changes_init(struct changes *, uint32_t bytes);
void changes_fini(struct changes *);

static inline uint8_t *changes_at(const struct changes *c, uint32_t index)
{
	return c->arena.base + index;
}

/*
 * The next byte that differs, by an acquire load, from where the last look stopped: so that one
 * which changes often does not keep another waiting.  *left: bytes to look at before that is
 * enough, at first `bytes`.  False: none of them differs.
 */
bool changes_next(struct changes *, uint32_t *left, uint32_t *index, uint8_t *byte);

#endif
