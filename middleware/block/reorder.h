/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/reorder: hands blocks out in sequence order, for streams.  Pure.
 *
 * Cannot deadlock: sequence numbers are given when a credit is spent, so each missing number is on
 * its way in a granted block; the window is bounded by the pool's size.
 */
#ifndef BLOCK_REORDER_H
#define BLOCK_REORDER_H

#include "block/block.h"

struct reorder;

/* `window`: most blocks that can be ahead (the pool's count). */
int reorder_new(uint32_t window, struct reorder **out);
void reorder_free(struct reorder *);
/* Puts a block in by its `sequence`.  -ERANGE: outside the window; -EEXIST: that number came
 * already. */
int reorder_put(struct reorder *, struct block *);
/* The next block in order, or NULL when it has not come. */
struct block *reorder_get(struct reorder *);
/* Any block still held, for clean-up; NULL when empty. */
struct block *reorder_drain(struct reorder *);
uint32_t reorder_held(const struct reorder *); /* blocks that wait for one before them */

#endif
