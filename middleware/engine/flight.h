/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/flight: the source's blocks that are with the fabric, and which of their postings ask for
 * a completion.  It is the first of the status-byte paper's three regions: which of our blocks are
 * full.
 *
 * Requests of a lane complete in order, so that one completion tells of all before it; only every
 * n-th posting of a lane has one, n such that less than half of the source's blocks wait for a
 * later one. What is left at the end of a transfer is told of by a WRITE of nothing (flight_flush).
 */
#ifndef ENGINE_FLIGHT_H
#define ENGINE_FLIGHT_H

#include "engine/engine.h"

struct flight;

/* What engines differ in; a NULL is what is said. */
struct flight_ops {
	/* completions of the lanes; as fabric_cq_poll, and NULL is it */
	int (*take)(void *ctx, struct fabric_wc *, int max);
	/* one that tells of no block: 0, -errno; NULL: there is nothing to be done */
	int (*other)(void *ctx, const struct fabric_wc *);
};

int flight_new(const struct engine_env *, struct flight **out);
void flight_free(struct flight *);

/* The lane for the next block. */
struct lane *flight_pick(struct flight *);
/* Whether the posting of the next `count` blocks on this lane is to be signalled, with the last. */
bool flight_signals(const struct flight *, const struct lane *, unsigned count);
/* It was posted; becomes SENDING. */
void flight_add(struct flight *, const struct lane *, struct block *, bool signalled);
/* Blocks that have been posted on the lane in this transfer. */
uint64_t flight_posts(const struct flight *, const struct lane *);
/* A completion of a request that was posted on the lane when flight_posts was `posts`. */
void flight_done(struct flight *, struct lane *, uint64_t posts);
/*
 * Blocks that are done, at most `max`; they are still SENDING.  How many; 0 when none is and no
 * completion is left to look at; -errno, as from `ops`, -ECONNRESET a request failed.
 */
int flight_poll(
	struct flight *, const struct flight_ops *, void *ctx, struct block **done, unsigned max);
/* How long it goes well without looking for blocks that are done (engine/lull.h). */
uint64_t flight_lull_ns(const struct flight *);
/* Asks for completions of all that is out: 1 nothing is, 0 they are to come, -errno. */
int flight_flush(struct flight *);

#endif
