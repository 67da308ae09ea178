/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/sender: the source's blocks that are with the fabric: chooses their channels, posts them,
 * and says which are done.  It is the first of the status-byte paper's three regions: which of our
 * blocks are full.
 *
 * Only every n-th block of a channel is signalled (engine/send_queue.h), n such that less than half
 * of the source's blocks wait for a later one.  What is left at the end of a transfer is told of by
 * a WRITE of nothing (sender_flush).
 */
#ifndef ENGINE_SENDER_H
#define ENGINE_SENDER_H

#include "engine/engine.h"

#define SENDER_POLL_BATCH 32

int sender_new(const struct engine_env *, struct sender **out);
/* The one that blocks were sent by before the engine was opened (engine_env.sender), or a new one.
 */
int sender_of(const struct engine_env *, struct sender **out);
void sender_free(struct sender *);

/* The channel for the next block: the one with the fewest bytes under way; among equals they take
 * turns.  A slow channel then gets less, and none waits for another. */
struct channel *sender_pick(struct sender *);
/* Posts a list of requests, which ends with `last`, that carries these FILLED blocks, oldest first;
 * they become SENDING.  The last request is signalled if it is time for it. */
int sender_post(struct sender *, struct channel *, const struct fabric_wr *list,
	struct fabric_wr *last, struct block *const *blocks, unsigned count);
/* Blocks that have been posted on the channel in this transfer. */
uint64_t sender_posts(const struct sender *, const struct channel *);

/* A completion of any channel: 1 it is left to the caller; 0; -ECONNRESET the request failed. */
int sender_completion(struct sender *, const struct fabric_wc *);
/* Blocks that are done, at most `max`; they are still SENDING.  How many. */
unsigned sender_done(struct sender *, struct block **done, unsigned max);
/* Takes completions in, as an engine's poll. */
int sender_poll(struct sender *, struct fabric_cq *, struct block **done, unsigned max);
/* How long it goes well without looking for blocks that are done (engine/moderation.h). */
uint64_t sender_moderation_ns(const struct sender *);
/* Asks for completions of all that is out: 1 nothing is, 0 they are to come, -errno. */
int sender_flush(struct sender *);
/* The end: takes in what has completed, so that the accounts of the channels are right.  What
 * failed is not told any more. */
void sender_drain(struct sender *, struct fabric_cq *);

#endif
