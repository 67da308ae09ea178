/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/stripe: which channel the next block goes to.
 */
#ifndef ENGINE_STRIPE_H
#define ENGINE_STRIPE_H

#include "engine/lane.h"

/* The lane with the fewest bytes outstanding; among equals the one after `*last`, so that idle
 * channels take turns.  Sets *last.  A slow channel then gets less, and no channel waits for
 * another. */
struct lane *stripe_pick(struct lane *const *lanes, unsigned count, unsigned *last);

#endif
