/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/queue: a bounded, closable queue of pointers between threads.
 *
 * The hand-over of the pipeline: many pushers, many poppers.  Its bound is the number of blocks in
 * the pool, so a push never waits for room (a push into a full queue is our bug: assert).  One
 * short critical section a call, however many items the call moves.
 */
#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

struct queue;

/* A queue for at most `bound` items.  0 or -ENOMEM. */
int queue_new(size_t bound, struct queue **out);
void queue_free(struct queue *);

/*
 * Appends `count` items in order.  0, or -EPIPE once the queue is closed (nothing was appended).
 * Never blocks for room.
 */
int queue_push(struct queue *, void *const *items, size_t count);

/*
 * Takes up to `max` items in order.  With `wait` it blocks until there is one or the queue is
 * closed.  Returns how many were taken; 0 without `wait` means empty (or closed), 0 with `wait`
 * means closed and empty.  What was pushed before the close is still handed out.
 */
size_t queue_pop(struct queue *, void **items, size_t max, bool wait);

/* No more pushes; wakes every waiter.  May be called more than once. */
void queue_close(struct queue *);

#endif
