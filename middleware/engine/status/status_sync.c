/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status/status_sync: see status_sync.h.
 */
#include "engine/status/status_sync.h"

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

bool status_sync_second(const struct status_sync *s)
{
	return !s->skip;
}

void status_sync_asked(struct status_sync *s)
{
	s->waited = false;
	s->skip -= s->skip > 0;
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

static uint64_t limit(uint64_t ns, uint64_t least, uint64_t most)
{
	return ns < least ? least : ns < most ? ns : most;
}

/* Half of what can come has come: a little sooner the next time, to learn how soon it may be; all
 * has: the sink may have run dry, so much sooner.  Less has come: once a step later the next time,
 * and this time again when at this rate it will have. */
static void adapt_pause(struct status_sync *s, uint64_t now_ns, uint32_t freed, uint32_t usable)
{
	uint32_t enough = at_least_1(usable / (2 * s->share));
	uint64_t elapsed, again;

	if (!s->since_ns)
		s->since_ns = now_ns; /* the first answer */
	elapsed = now_ns - s->since_ns;
	if (s->freed >= enough) {
		if (freed >= usable / s->share)
			s->pause_ns /= 2;
		else if (!s->early)
			s->pause_ns -= s->pause_ns / 8;
		s->early = false;
		s->freed = 0;
		s->since_ns = now_ns;
		s->next_ns = now_ns + s->pause_ns;
		return;
	}
	if (!s->early)
		s->pause_ns = limit(s->pause_ns + s->pause_ns / 4, STATUS_SYNC_PAUSE_MIN_NS,
			STATUS_SYNC_PAUSE_MAX_NS);
	s->early = true;
	again = s->freed ? elapsed / s->freed * (enough - s->freed) : elapsed / 4;
	s->next_ns = now_ns + limit(again, STATUS_SYNC_PAUSE_MIN_NS, STATUS_SYNC_PAUSE_MAX_NS);
}

void status_sync_answered(
	struct status_sync *s, uint64_t now_ns, uint32_t left, uint32_t freed, uint32_t unavailable)
{
	adapt_lead(s, left, freed);
	s->freed += freed;
	adapt_pause(s, now_ns, freed, s->depth - unavailable);
}

void status_sync_second_answered(
	struct status_sync *s, uint64_t now_ns, uint32_t left, uint32_t freed, uint32_t unavailable)
{
	/* it wakes the source as any answer does: for one slot it is not worth it */
	if (freed > 1)
		s->vain = 0;
	else
		s->vain += s->vain < STATUS_SYNC_VAIN_MAX;
	s->skip = s->vain > STATUS_SYNC_VAIN ? 1u << (s->vain - STATUS_SYNC_VAIN) : 0;
	/* nothing says nothing of the pace: the one before it took all */
	if (freed)
		status_sync_answered(s, now_ns, left, freed, unavailable);
}
