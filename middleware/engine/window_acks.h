/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/window_acks: the source's thread for ACKs, of the sliding window: it takes the completions of the
 * lanes, checks each ACK, posts its receive again and moves the window.  Knows slots; no blocks, no sends.
 *
 * Completions of sends, which come by the same queue, it only hands on: blocks, striping and the lanes'
 * sending half (engine/lane.h) stay with the loop.  So the two share counters and a ring, no lock.
 *
 * All but the thread's own work is the loop's to call.
 */
#ifndef ENGINE_WINDOW_ACKS_H
#define ENGINE_WINDOW_ACKS_H

#include "engine/engine.h"

struct acks;

/* Starts the thread.  Receives for `slots` ACKs are posted on each lane. */
int acks_start(const struct engine_env *, uint32_t slots, struct acks **out);
/* Ends it; waits for it, for a moment only.  What it has taken from the queue can still be taken. */
void acks_stop(struct acks *);
void acks_free(struct acks *);

/* Slots ever used, up to the oldest without ACK. */
uint64_t acks_head(const struct acks *);
/* Slots up to `tail` may have ACKs now: before the last of them is posted. */
void acks_expect(struct acks *, uint64_t tail);
/* The head that the loop waits for, from now on: while it is less, ACKs wake nobody.  ACKS_NONE, as at
 * first: for none. */
#define ACKS_NONE UINT64_MAX
void acks_want(struct acks *, uint64_t head);
/*
 * Completions that are not ACKs, oldest first: sends, and what failed.  How many, or 0; once there are none
 * left, what ended the thread: -EBADMSG, or as fabric_cq_poll, fabric_post_recv.
 */
int acks_take(struct acks *, struct fabric_wc *, unsigned max);

/* Arm, look at head and acks_take once more, wait on the fd, disarm. */
int acks_fd(const struct acks *);
void acks_arm(struct acks *);
void acks_disarm(struct acks *);

#endif
