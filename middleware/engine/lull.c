/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/lull: see lull.h.
 */
#include "engine/lull.h"

uint64_t lull_ns(uint32_t blocks, uint32_t out, uint64_t gap_ns)
{
	uint64_t ns;

	if (blocks < LULL_BLOCKS_MIN || out < blocks - blocks / 4)
		return 0;
	ns = gap_ns < LULL_NS_MAX ? gap_ns * (blocks / 8) : LULL_NS_MAX;
	return ns < LULL_NS_MIN ? 0 : ns < LULL_NS_MAX ? ns : LULL_NS_MAX;
}
