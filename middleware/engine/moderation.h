/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/moderation: for how long a source may leave completions alone.  Pure.
 *
 * While nearly all its blocks wait to be sent, one more that was sent changes nothing: it is filled
 * again, and waits behind all others.  With small blocks, to be woken for each is most of what the
 * source's thread does, and it takes a core from what carries the bytes.  Adapters moderate
 * interrupts for the same reason.
 *
 * Only for fabrics whose completion says that a block has left.  Where it says that it was
 * delivered, blocks that are under way are on the link, not waiting, and one that comes back should
 * go at once.
 */
#ifndef ENGINE_MODERATION_H
#define ENGINE_MODERATION_H

#include <stdint.h>

#define MODERATION_BLOCKS_MIN 32u /* with fewer each completion counts */
#define MODERATION_NS_MIN 20000u  /* a shorter sleep is not worth its switch */
#define MODERATION_NS_MAX 2000000u

/* Of `blocks` that the source has, `out` are under way, and one comes back every `gap_ns`: how
 * long the source may sleep so that more than half stay under way.  0: not at all. */
uint64_t moderation_ns(uint32_t blocks, uint32_t out, uint64_t gap_ns);

#endif
