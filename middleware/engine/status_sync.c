/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status_sync: see status_sync.h.
 */
#include "engine/status_sync.h"

static uint32_t at_least_1(uint32_t n)
{
	return n ? n : 1;
}

void status_sync_init(struct status_sync *s, uint32_t depth, unsigned channels)
{
	*s = (struct status_sync){.depth = depth, .share = channels ? channels : 1};
}

bool status_sync_due(const struct status_sync *s, uint64_t now_ns, uint32_t free)
{
	return free <= s->lead && now_ns >= s->next_ns;
}

void status_sync_asked(struct status_sync *s)
{
	s->waited = false;
}

void status_sync_waits(struct status_sync *s)
{
	s->waited = true;
}

static void adapt_lead(struct status_sync *s, uint32_t left, uint32_t freed)
{
	/* an answer that brought nothing would have brought nothing earlier either */
	if (s->waited && freed) {
		s->lead += at_least_1(s->lead / 2);
		if (s->lead > s->depth / 2)
			s->lead = s->depth / 2;
	} else if (!s->waited && left > 1 && s->lead) {
		s->lead--;
	}
}

static void adapt_pause(struct status_sync *s, uint32_t freed, uint32_t usable)
{
	uint32_t quarter = at_least_1(usable / (4 * s->share));

	if (freed >= 2 * quarter) {
		s->pause_ns /= 2;
		if (s->pause_ns < STATUS_SYNC_PAUSE_MIN_NS)
			s->pause_ns = 0;
	} else if (freed < quarter) {
		s->pause_ns = s->pause_ns ? 2 * s->pause_ns : STATUS_SYNC_PAUSE_MIN_NS;
		if (s->pause_ns > STATUS_SYNC_PAUSE_MAX_NS)
			s->pause_ns = STATUS_SYNC_PAUSE_MAX_NS;
	}
}

void status_sync_answered(
	struct status_sync *s, uint64_t now_ns, uint32_t left, uint32_t freed, uint32_t unavailable)
{
	adapt_lead(s, left, freed);
	adapt_pause(s, freed, s->depth - unavailable);
	s->next_ns = now_ns + s->pause_ns;
}
