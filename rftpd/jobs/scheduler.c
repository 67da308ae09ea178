/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/scheduler: see scheduler.h.
 */
#include "rftpd/jobs/scheduler.h"

#include <assert.h>
#include <stddef.h>

void scheduler_init(struct scheduler *s, const struct budget *total, uint64_t stall_ns)
{
	*s = (struct scheduler){.total = *total, .free = *total, .stall_ns = stall_ns};
	TAILQ_INIT(&s->waiting);
	TAILQ_INIT(&s->held);
}

/* What is free: all but what is held, which may be more than there is after a resize. */
static void settle(struct scheduler *s)
{
	struct budget held = {0};
	const struct lease *l;

	TAILQ_FOREACH(l, &s->held, entry)
	budget_add(&held, &l->has);
	held = budget_min(&held, &s->total);
	s->free = s->total;
	budget_sub(&s->free, &held);
}

/* It cannot have more than that, however long it waits. */
static void bound_wants(const struct scheduler *s, struct lease *l)
{
	struct budget bound = l->patient ? budget_half(&s->total) : s->total;

	for (unsigned i = 0; i < l->purse_count; i++)
		bound = budget_min(&bound, &l->purses[i]->total);
	l->least = budget_min(&l->least, &bound);
	l->most = budget_min(&l->most, &bound);
	l->most = budget_max(&l->most, &l->least);
}

/* A lease that waits for more than there is now would wait for ever. */
void scheduler_resize(struct scheduler *s, const struct budget *total, uint64_t stall_ns)
{
	struct lease *l;

	s->total = *total;
	s->stall_ns = stall_ns;
	TAILQ_FOREACH(l, &s->waiting, entry)
	bound_wants(s, l);
	settle(s);
}

static struct budget without_urgent_part(const struct scheduler *s, const struct budget *room)
{
	const struct budget part = {
		s->total.memory_bytes / SCHEDULER_URGENT_PART,
		s->total.files / SCHEDULER_URGENT_PART,
		s->total.threads / SCHEDULER_URGENT_PART,
	};
	struct budget less = budget_min(&part, room), rest = *room;

	budget_sub(&rest, &less);
	return rest;
}

/* What of the budget a lease may draw on now, other leases and its purses apart. */
static struct budget room_in_all(const struct scheduler *s, const struct lease *l)
{
	struct budget half = budget_half(&s->total), room = s->free;

	if (s->held_count)
		room.files -= room.files < s->reserved_files ? room.files : s->reserved_files;
	if (l->yields && s->held_count)
		room = without_urgent_part(s, &room);
	if (!l->patient)
		return room;
	half = budget_max(&half, &s->patient); /* they may have more than half of what is left */
	budget_sub(&half, &s->patient);
	return budget_min(&room, &half);
}

/* What it waits for is only the half that patient ones have: it is in nobody's way but theirs. */
static bool waits_for_patient(const struct scheduler *s, const struct lease *l)
{
	return l->patient && budget_fits(&l->least, &s->free);
}

static struct budget room_in(const struct purse *p)
{
	struct budget has = budget_min(&p->has, &p->total), rest = p->total;

	budget_sub(&rest, &has);
	return rest;
}

static struct budget room_for(const struct scheduler *s, const struct lease *l)
{
	struct budget room = room_in_all(s, l);

	for (unsigned i = 0; i < l->purse_count; i++) {
		struct budget rest = room_in(l->purses[i]);

		room = budget_min(&room, &rest);
	}
	return room;
}

/* What it waits for is only in its purses. */
static bool waits_for_purse(const struct scheduler *s, const struct lease *l)
{
	struct budget all = room_in_all(s, l), room = room_for(s, l);

	return budget_fits(&l->least, &all) && !budget_fits(&l->least, &room);
}

static bool lacks(const struct purse *p, const struct lease *l)
{
	struct budget room = room_in(p);

	return !budget_fits(&l->least, &room);
}

static bool draws_on(const struct lease *l, const struct purse *p)
{
	for (unsigned i = 0; i < l->purse_count; i++)
		if (l->purses[i] == p)
			return true;
	return false;
}

/* Somebody before it waits for one of its purses. */
static bool is_behind(const struct lease *l)
{
	for (unsigned i = 0; i < l->purse_count; i++)
		if (l->purses[i]->is_waited_for)
			return true;
	return false;
}

static void wait_for_purses(struct lease *l)
{
	for (unsigned i = 0; i < l->purse_count; i++)
		l->purses[i]->is_waited_for |= lacks(l->purses[i], l);
}

static void nobody_waits_for(struct lease *l)
{
	for (unsigned i = 0; i < l->purse_count; i++)
		l->purses[i]->is_waited_for = false;
}

static void nobody_waits(struct scheduler *s)
{
	struct lease *l;

	TAILQ_FOREACH(l, &s->waiting, entry)
	nobody_waits_for(l);
}

/* Whether nobody in line has to be served before one that is new. */
static bool is_first(struct scheduler *s, struct lease *l)
{
	struct lease *other;

	nobody_waits(s);
	nobody_waits_for(l);
	TAILQ_FOREACH(other, &s->waiting, entry)
	if (other->rank > l->rank || is_behind(other))
		continue;
	else if (waits_for_purse(s, other))
		wait_for_purses(other);
	else if (l->patient || !waits_for_patient(s, other))
		return false;
	return !is_behind(l);
}

static void fill_purses(struct lease *l, const struct budget *more)
{
	for (unsigned i = 0; i < l->purse_count; i++)
		budget_add(&l->purses[i]->has, more);
}

static void empty_purses(struct lease *l, const struct budget *less)
{
	for (unsigned i = 0; i < l->purse_count; i++)
		budget_sub(&l->purses[i]->has, less);
}

void scheduler_reserve(struct scheduler *s, uint32_t files)
{
	s->reserved_files = files;
}

static void take(struct scheduler *s, struct lease *l)
{
	struct budget room = room_for(s, l), has = budget_half(&room);

	has = budget_min(&has, &l->most);
	has = budget_max(&has, &l->least);
	l->has = has;
	l->state = LEASE_HELD;
	budget_sub(&s->free, &has);
	if (l->patient)
		budget_add(&s->patient, &has);
	fill_purses(l, &has);
	TAILQ_INSERT_TAIL(&s->held, l, entry);
	s->held_count++;
}

static void insert_waiting(struct scheduler *s, struct lease *l)
{
	struct lease *other = TAILQ_LAST(&s->waiting, lease_list);

	while (other && other->rank > l->rank)
		other = TAILQ_PREV(other, lease_list, entry);
	if (other)
		TAILQ_INSERT_AFTER(&s->waiting, other, l, entry);
	else
		TAILQ_INSERT_HEAD(&s->waiting, l, entry);
}

bool scheduler_ask(struct scheduler *s, struct lease *l, uint64_t now_ns)
{
	struct budget room;

	assert(l->state == LEASE_NONE);
	bound_wants(s, l);
	l->is_lost = false;
	l->told = 0;
	room = room_for(s, l);
	if (is_first(s, l) && budget_fits(&l->least, &room)) {
		take(s, l);
		return true;
	}
	l->state = LEASE_WAITING;
	l->waits_since_ns = now_ns;
	insert_waiting(s, l);
	s->waiting_count++;
	return false;
}

void scheduler_release(struct scheduler *s, struct lease *l)
{
	if (l->state == LEASE_WAITING) {
		TAILQ_REMOVE(&s->waiting, l, entry);
		s->waiting_count--;
	} else if (l->state == LEASE_HELD) {
		TAILQ_REMOVE(&s->held, l, entry);
		s->held_count--;
		if (l->patient)
			budget_sub(&s->patient, &l->has);
		empty_purses(l, &l->has);
		settle(s);
	}
	l->state = LEASE_NONE;
	l->has = (struct budget){0};
}

void scheduler_reduce(struct scheduler *s, struct lease *l, const struct budget *keep)
{
	struct budget back = l->has;

	assert(l->state == LEASE_HELD && budget_fits(keep, &l->has));
	budget_sub(&back, keep);
	l->has = *keep;
	settle(s);
	if (l->patient)
		budget_sub(&s->patient, &back);
	empty_purses(l, &back);
}

/* The next in line for which there is enough; NULL: all have to wait on. */
static struct lease *next_served(struct scheduler *s)
{
	bool patient_blocked = false;
	struct lease *l;

	nobody_waits(s);
	TAILQ_FOREACH(l, &s->waiting, entry)
	{
		struct budget room = room_for(s, l);

		if ((l->patient && patient_blocked) || is_behind(l))
			continue;
		if (budget_fits(&l->least, &room))
			return l;
		if (waits_for_purse(s, l)) {
			wait_for_purses(l);
			continue;
		}
		if (!waits_for_patient(s, l))
			return NULL; /* nobody passes it */
		patient_blocked = true;
	}
	return NULL;
}

static void grant(struct scheduler *s)
{
	struct lease *l;

	while ((l = next_served(s))) {
		TAILQ_REMOVE(&s->waiting, l, entry);
		s->waiting_count--;
		take(s, l);
		l->ops->granted(l);
	}
}

/* A callback may take a lease out of the line, even the one that it is for: the line is looked
 * through anew after each. */
static void tell(struct scheduler *s, uint64_t now_ns)
{
	struct lease *l;
	unsigned position;

again:
	position = 0;
	TAILQ_FOREACH(l, &s->waiting, entry)
	{
		uint64_t since = now_ns - l->told_ns;

		position++;
		if (l->told && since < SCHEDULER_TELL_NS)
			continue;
		/* each frame wakes a client, and hundreds of them cost those that run */
		if ((l->told == position || position > SCHEDULER_NEAR) && l->told &&
			since < SCHEDULER_AGAIN_NS)
			continue;
		l->told = position;
		l->told_ns = now_ns;
		l->ops->queued(l, position);
		goto again;
	}
}

/* The one who waits for what stalled leases could give back; NULL: none. */
static const struct lease *first_starved(const struct scheduler *s)
{
	struct lease *l;

	TAILQ_FOREACH(l, &s->waiting, entry)
	{
		struct budget room = room_in_all(s, l);

		/* else it waits for a purse, or behind who does */
		if (!waits_for_patient(s, l) && !budget_fits(&l->least, &room))
			return l;
	}
	return NULL;
}

/* Of those that draw on the purse; NULL: of all. */
static struct lease *longest_stalled(const struct scheduler *s, const struct lease *starved,
	const struct purse *purse, uint64_t now_ns)
{
	struct lease *l, *longest = NULL;
	uint64_t oldest = UINT64_MAX;

	TAILQ_FOREACH(l, &s->held, entry)
	{
		uint64_t moved;

		if (l->patient || l->is_lost || (purse && !draws_on(l, purse)))
			continue;
		moved = l->ops->moved_ns(l);
		if (moved < oldest) {
			oldest = moved;
			longest = l;
		}
	}
	if (oldest < starved->waits_since_ns)
		oldest = starved->waits_since_ns; /* nobody was in need before */
	return longest && now_ns > oldest && now_ns - oldest >= s->stall_ns ? longest : NULL;
}

/* What there will be when those that lost theirs have given it back. */
static struct budget coming(const struct scheduler *s)
{
	struct budget sum = s->free;
	const struct lease *l;

	TAILQ_FOREACH(l, &s->held, entry)
	if (l->is_lost)
		budget_add(&sum, &l->has);
	sum.files -= sum.files < s->reserved_files ? sum.files : s->reserved_files;
	return sum;
}

/* As many as the first in line needs. */
static void take_from_stalled(struct scheduler *s, uint64_t now_ns)
{
	const struct lease *starved;
	struct lease *l;

	while (s->stall_ns && (starved = first_starved(s))) {
		struct budget sum = coming(s);

		if (budget_fits(&starved->least, &sum))
			return;
		l = longest_stalled(s, starved, NULL, now_ns);
		if (!l)
			return;
		l->is_lost = true;
		l->ops->lost(l);
	}
}

/* What a purse will have when those that lost theirs have given it back. */
static struct budget coming_in(const struct scheduler *s, const struct purse *p)
{
	struct budget sum = room_in(p);
	const struct lease *l;

	TAILQ_FOREACH(l, &s->held, entry)
	if (l->is_lost && draws_on(l, p))
		budget_add(&sum, &l->has);
	return sum;
}

/* The same for those who wait for a purse: from who draws on it, one at a time. */
static void take_for_purses(struct scheduler *s, uint64_t now_ns)
{
	struct lease *starved, *l;

	TAILQ_FOREACH(starved, &s->waiting, entry)
	for (unsigned i = 0; s->stall_ns && i < starved->purse_count; i++) {
		struct budget sum = coming_in(s, starved->purses[i]);

		if (budget_fits(&starved->least, &sum))
			continue;
		l = longest_stalled(s, starved, starved->purses[i], now_ns);
		if (!l)
			continue;
		l->is_lost = true;
		l->ops->lost(l);
		return; /* which may have changed the line; the rest in the next round */
	}
}

void scheduler_run(struct scheduler *s, uint64_t now_ns)
{
	grant(s);
	take_from_stalled(s, now_ns);
	take_for_purses(s, now_ns);
	tell(s, now_ns);
}

uint64_t scheduler_next_ns(const struct scheduler *s, uint64_t now_ns)
{
	return TAILQ_EMPTY(&s->waiting) ? UINT64_MAX : now_ns + SCHEDULER_TELL_NS;
}
