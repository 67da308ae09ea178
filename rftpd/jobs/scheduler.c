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

/* A lease that waits for more than there is now would wait for ever. */
void scheduler_resize(struct scheduler *s, const struct budget *total, uint64_t stall_ns)
{
	struct budget half = budget_half(total);
	struct lease *l;

	s->total = *total;
	s->stall_ns = stall_ns;
	TAILQ_FOREACH(l, &s->waiting, entry)
	{
		const struct budget *bound = l->patient ? &half : total;

		l->least = budget_min(&l->least, bound);
		l->most = budget_min(&l->most, bound);
		l->most = budget_max(&l->most, &l->least);
	}
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

/* What of the budget a lease may draw on now, other leases apart. */
static struct budget room_for(const struct scheduler *s, const struct lease *l)
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
	struct budget bound = l->patient ? budget_half(&s->total) : s->total, room;
	const struct lease *other;
	bool first = true;

	assert(l->state == LEASE_NONE);
	l->least = budget_min(&l->least, &bound);
	l->most = budget_min(&l->most, &bound);
	l->most = budget_max(&l->most, &l->least);
	l->is_lost = false;
	l->told = 0;
	TAILQ_FOREACH(other, &s->waiting, entry)
	if (other->rank <= l->rank && (l->patient || !waits_for_patient(s, other)))
		first = false;
	room = room_for(s, l);
	if (first && budget_fits(&l->least, &room)) {
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
}

/* The next in line for which there is enough; NULL: all have to wait on. */
static struct lease *next_served(const struct scheduler *s)
{
	bool patient_blocked = false;
	struct lease *l;

	TAILQ_FOREACH(l, &s->waiting, entry)
	{
		struct budget room = room_for(s, l);

		if (l->patient && patient_blocked)
			continue;
		if (budget_fits(&l->least, &room))
			return l;
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
	if (!waits_for_patient(s, l))
		return l;
	return NULL;
}

static struct lease *longest_stalled(
	const struct scheduler *s, const struct lease *starved, uint64_t now_ns)
{
	struct lease *l, *longest = NULL;
	uint64_t oldest = UINT64_MAX;

	TAILQ_FOREACH(l, &s->held, entry)
	{
		uint64_t moved;

		if (l->patient || l->is_lost)
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
		l = longest_stalled(s, starved, now_ns);
		if (!l)
			return;
		l->is_lost = true;
		l->ops->lost(l);
	}
}

void scheduler_run(struct scheduler *s, uint64_t now_ns)
{
	grant(s);
	take_from_stalled(s, now_ns);
	tell(s, now_ns);
}

uint64_t scheduler_next_ns(const struct scheduler *s, uint64_t now_ns)
{
	return TAILQ_EMPTY(&s->waiting) ? UINT64_MAX : now_ns + SCHEDULER_TELL_NS;
}
