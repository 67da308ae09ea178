/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/stripe: see stripe.h.
 */
#include "engine/stripe.h"

struct lane *stripe_pick(struct lane *const *lanes, unsigned count, unsigned *last)
{
	unsigned best = 0;

	for (unsigned k = 1; k <= count; k++) {
		unsigned i = (*last + k) % count;

		if (k == 1 || lanes[i]->outstanding_bytes < lanes[best]->outstanding_bytes)
			best = i;
	}
	*last = best;
	return lanes[best];
}
