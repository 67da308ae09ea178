/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/window/window_acks: the ACKs of a sliding window at the source: takes the completions of
 * the channels, checks each ACK, posts its receive again and moves the window.
 *
 * Two threads take them, one at a time.  The loop does in each of its rounds, and sleeps on the
 * channels' completion queue as with any engine.  While the loop waits for a disk, or starts a
 * large tree, a thread of the engine does.  To hand each ACK from that thread to the loop made
 * small blocks up to three times slower (README).
 *
 * Completions of sends, which come by the same queue, are only handed on: blocks, striping and the
 * channels' sending half (engine/channel.h) are the loop's.
 *
 * All functions are called by the loop.
 */
#ifndef ENGINE_WINDOW_ACKS_H
#define ENGINE_WINDOW_ACKS_H

#include "engine/engine.h"

struct acks;

/* Starts the thread.  Receives for `slots` ACKs are posted on each channel. */
int acks_start(const struct engine_env *, uint32_t slots, struct acks **out);
/* Ends the thread, which takes a moment at most.  What it has taken from the queue can still be had
 * by acks_take; the queue itself is not touched any more. */
void acks_stop(struct acks *);
void acks_free(struct acks *);

/* Slots ever used, up to the oldest without ACK.  As of the last time that ACKs were taken. */
uint64_t acks_head(const struct acks *);
/* Slots up to `tail` may have ACKs now: before the last of them is posted. */
void acks_expect(struct acks *, uint64_t tail);
/*
 * Takes ACKs in.  Gives completions that are not ACKs, oldest first: sends, and what failed.  How
 * many, or 0: the queue is empty; once there are none left, what went wrong, for good: -EBADMSG and
 * a verdict, or as fabric_cq_poll, fabric_post_recv.
 */
int acks_take(struct acks *, struct fabric_wc *, unsigned max, struct verdict *);

#endif
