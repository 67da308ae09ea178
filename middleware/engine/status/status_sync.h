/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status/status_sync: when the source reads the sink's status bytes: as seldom as it can
 * without waiting for the answer.  Pure.
 *
 * Two numbers follow what READs bring.  `lead`: a READ leaves when so few free slots are left; it
 * grows when a block had to wait for an answer, and shrinks when slots were left over.  `pause_ns`:
 * how long half of the window takes to come back, as far as answers have told: after an answer that
 * brought so much, no READ leaves for so long.  A sink that is slow is thus asked some two times a
 * window.  One that stalls is asked again when it might be ready, judged by how long it has
 * taken already; that it stalled once is hardly remembered.
 *
 * While a block waits for an answer a second READ may leave behind the one under way: where an
 * answer takes longer than to empty a slot, it brings what came free meanwhile.  Where it brings
 * one at most, again and again, the next such READs are left out, twice as many each time.
 */
#ifndef ENGINE_STATUS_SYNC_H
#define ENGINE_STATUS_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#define STATUS_SYNC_PAUSE_MIN_NS 2000ull
#define STATUS_SYNC_PAUSE_MAX_NS 10000000ull
#define STATUS_SYNC_VAIN 4u /* second READs in a row that may bring one slot or none, */
#define STATUS_SYNC_VAIN_MAX                                                                       \
	10u /* and the most that are counted: then 64 READs have no second one */

struct status_sync {
	uint32_t depth; /* slots */
	uint32_t share; /* channels: a READ is sure of the slots of one of them */
	uint32_t lead;
	uint64_t pause_ns; /* from an answer that brought enough to the next READ */
	uint64_t next_ns;  /* no READ before */
	uint64_t since_ns; /* of the last answer that brought enough */
	uint32_t freed;    /* that came since */
	bool early;        /* the last answer did not bring enough */
	bool waited;       /* a block waited since the READ under way left */
	uint32_t skip;     /* READs still to come without a second one behind them */
	uint32_t vain;     /* second READs in a row that brought one slot or none */
};

void status_sync_init(struct status_sync *, uint32_t depth, unsigned channels);
/* Whether a READ is to leave now, with `free` slots left (and none under way). */
bool status_sync_due(const struct status_sync *, uint64_t now_ns, uint32_t free);
/* Whether, as a block waits, a second READ is to leave behind one that is under way. */
bool status_sync_second(const struct status_sync *);
/* A READ leaves that is not a second one. */
void status_sync_asked(struct status_sync *);
/* A block waits for a slot while a READ is under way. */
void status_sync_waits(struct status_sync *);
/* The answer: `left` slots were free before it, it brings `freed` more, `unavailable` are kept. */
void status_sync_answered(
	struct status_sync *, uint64_t now_ns, uint32_t left, uint32_t freed, uint32_t unavailable);
/* The same of a second one. */
void status_sync_second_answered(
	struct status_sync *, uint64_t now_ns, uint32_t left, uint32_t freed, uint32_t unavailable);

#endif
