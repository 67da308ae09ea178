/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/moderation: see lull.h.
 */
#include "engine/moderation.h"

uint64_t moderation_ns(uint32_t blocks, uint32_t out, uint64_t gap_ns)
{
	uint64_t ns;

	if (blocks < MODERATION_BLOCKS_MIN || out < blocks - blocks / 4)
		return 0;
	ns = gap_ns < MODERATION_NS_MAX ? gap_ns * (blocks / 8) : MODERATION_NS_MAX;
	return ns < MODERATION_NS_MIN ? 0 : ns < MODERATION_NS_MAX ? ns : MODERATION_NS_MAX;
}
