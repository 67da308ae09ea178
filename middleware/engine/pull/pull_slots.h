/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/pull/pull_slots: what a sink that fetches knows of its source's slots: which it has given,
 * what was filled into them since, and in which order that is fetched.  Pure.
 *
 * The source numbers what it fills, and its records become visible in that order.  One READ of all
 * records may find a block and miss the one before it; the next READ finds that.  So blocks are
 * fetched in the order of their numbers.
 */
#ifndef ENGINE_PULL_SLOTS_H
#define ENGINE_PULL_SLOTS_H

#include "base/verdict.h"

#include <stdbool.h>
#include <stdint.h>

struct pull_slot {
	uint32_t sequence; /* of its last record */
	uint32_t length;
	bool out;     /* given to the source: its record may change */
	bool again;   /* it has been fetched twice */
	uint8_t torn; /* times that its record was not whole */
};

struct pull_slots {
	struct pull_slot *slot;
	uint32_t *order, order_size; /* slot + 1 by sequence; 0: not known */
	uint32_t first, known;       /* the next to fetch; known and not fetched yet */
	uint32_t *repeat, repeats;   /* to be fetched once more: a stack */
};

/* None is the source's, at first.  0 or -ENOMEM; pull_slots_fini in any case. */
int pull_slots_init(struct pull_slots *, uint32_t count);
void pull_slots_fini(struct pull_slots *);
/* The source may fill it. */
void pull_slots_give(struct pull_slots *, uint32_t index);
/* Its record as it was read, where a block has at most `most_bytes`.  1: a block is known that was
 * not; 0: nothing new; -EBADMSG: no source says so, as the verdict tells. */
int pull_slots_take(struct pull_slots *, uint32_t index, uint64_t record, uint32_t most_bytes,
	struct verdict *);
/* Whether there is one to be fetched: what was damaged, or the next number, if it is known. */
bool pull_slots_can_fetch(const struct pull_slots *);
/* That one, which is fetched now, and how many bytes it has. */
uint32_t pull_slots_next(struct pull_slots *);
uint32_t pull_slots_length(const struct pull_slots *, uint32_t index);
/* It came damaged: it is to be fetched once more.  False: it was already. */
bool pull_slots_again(struct pull_slots *, uint32_t index);

#endif
