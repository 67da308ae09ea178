/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/lookout: see lookout.h.
 */
#include "engine/lookout.h"

#define SPIN_NS 10000u     /* we look again at once for so long, */
#define SPIN_GAP_NS 50000u /* if they came so fast lately */
#define SLEEP_MIN_NS 20000u
#define SLEEP_MAX_NS 5000000u
#define WATCHED_SLEEP_NS 100000000u /* where the fabric wakes us */

void lookout_init(struct lookout *l, bool watched, uint64_t now_ns)
{
	*l = (struct lookout){.active_ns = now_ns, .watched = watched};
}

void lookout_came(struct lookout *l, uint32_t count, uint64_t now_ns)
{
	l->gap_ns = (3 * l->gap_ns + (now_ns - l->active_ns) / count) / 4;
	l->active_ns = now_ns;
}

void lookout_foretold(struct lookout *l, uint64_t now_ns)
{
	l->active_ns = now_ns;
}

uint64_t lookout_next_ns(const struct lookout *l, uint64_t now_ns)
{
	uint64_t idle = now_ns - l->active_ns, sleep_ns;

	if (l->watched)
		return now_ns + WATCHED_SLEEP_NS;
	if (idle < SPIN_NS && l->gap_ns < SPIN_GAP_NS)
		return now_ns;
	sleep_ns = idle > l->gap_ns ? idle / 2 : l->gap_ns / 2;
	return now_ns + (sleep_ns < SLEEP_MIN_NS          ? SLEEP_MIN_NS
				: sleep_ns > SLEEP_MAX_NS ? SLEEP_MAX_NS
							  : sleep_ns);
}
