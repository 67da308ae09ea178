/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/bucket: how fast a transfer may go, and how much of its turn is left: a token bucket.
 *
 * The source asks it before it sends a block, the sink before a slot is free again.  Whoever
 * decides about the transfer changes rate and turn at any time, from another thread; without such a
 * one the rate is fixed and the turn has no end.
 *
 * Beside its own rate it keeps to those that several transfers share (transfer/meter).
 *
 * What crosses in a moment is bounded: the rate's bytes of that moment, and `burst_bytes`.
 */
#ifndef TRANSFER_BUCKET_H
#define TRANSFER_BUCKET_H

#include "base/wakeup.h"
#include "transfer/meter.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BUCKET_ENDLESS INT64_MAX
#define BUCKET_NEVER UINT64_MAX
#define BUCKET_RATE_MIN UINT64_C(16384) /* slower would be taken for broken */
#define BUCKET_PART 8u                  /* of a turn: what may be under way at once */
#define BUCKET_METERS_MAX 24u

struct bucket {
	/* of both sides */
	_Atomic uint64_t rate;     /* bytes a second */
	_Atomic int64_t left;      /* bytes of the turn; not above 0: it is over */
	_Atomic uint64_t moved;    /* bytes, ever */
	_Atomic uint32_t position; /* in the line for the next turn, for the peer; 0: not in one */
	_Atomic uint64_t wait_ns;  /* and for about how long; BUCKET_NEVER: not known */
	struct wakeup wakeup;
	/* the decider's; it is called in the transfer's thread, once for each turn that is over:
	 * another one is wanted.  NULL: there is none */
	void (*wants)(void *ctx);
	void *ctx;
	/* rates that it shares with other transfers, set before it is used; they outlive it */
	struct meter *meters[BUCKET_METERS_MAX];
	unsigned meter_count;
	/* the transfer's thread's: when what it has spent of each is paid for; what others spend
	 * later is theirs to wait for */
	uint64_t owed_ns[BUCKET_METERS_MAX];
	/* the transfer's thread's */
	uint64_t unmoved; /* bytes that time was used up for, and that have not moved */
	uint64_t burst_bytes;
	uint64_t next_ns; /* when something may move */
	bool asked;
};

/* 0 or -errno.  `rate` is for ever, and there are no turns, unless the decider says more. */
int bucket_init(struct bucket *, uint64_t rate, uint64_t burst_bytes);
/* Other transfers get back what this one has paid for and did not use. */
void bucket_fini(struct bucket *);

/* ---- the decider: any one thread ---- */

/* Another turn, or more of one: `bytes` (BUCKET_ENDLESS). */
void bucket_grant(struct bucket *, uint64_t rate, int64_t bytes);
void bucket_set_rate(struct bucket *, uint64_t rate);
/* The turn is over. */
void bucket_stop(struct bucket *);
/* Where in line it is, for the peer; wakes nobody. */
void bucket_tell(struct bucket *, uint32_t position, uint64_t wait_ns);

/* ---- the transfer's thread ---- */

/* When something may move: not later than now: it may; BUCKET_NEVER: after another grant. */
uint64_t bucket_next_ns(struct bucket *, uint64_t now_ns);
/* Time for so many bytes, which are about to move, is used up. */
void bucket_spend(struct bucket *, uint64_t bytes, uint64_t now_ns);
/* It was for more than came: as far as it is not used. */
void bucket_refund(struct bucket *, uint64_t bytes);
/* Nothing more will move: when what has moved is paid for where it shares a rate, or when to ask
 * again, if that is soon enough; not later than now: it is, and stays so.  It stands in line for
 * that with what others had spent before its last byte, and not with what they spend now. */
uint64_t bucket_paid_ns(struct bucket *, uint64_t now_ns);
/* So many bytes of the turn have moved: for those that no time was used up for it is now. */
void bucket_count(struct bucket *, uint64_t bytes, uint64_t now_ns);
/* Asks for another turn, if it is over. */
void bucket_ask(struct bucket *);

/* ---- for sizes ---- */

/* What counts as a turn where turns have no end: so that 2.5 ms of the rate, and two round trips,
 * may be under way. */
uint64_t bucket_turn(uint64_t rate, uint64_t rtt_ns);
/* The largest block, and the most bytes under way at once, for turns of so many bytes. */
uint32_t bucket_max_block(uint64_t bytes);
uint64_t bucket_max_window(uint64_t bytes);

#endif
