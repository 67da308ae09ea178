/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/admission: see admission.h.
 */
#include "rftpd/jobs/admission.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

void admission_init(struct admission *a, const struct admission_limits *limits)
{
	*a = (struct admission){.limits = *limits, .expires_ns = ADMISSION_NEVER};
	for (unsigned ready = 0; ready < 2; ready++)
		for (unsigned i = 0; i < ADMISSION_RANKS; i++)
			TAILQ_INIT(&a->waiting[ready][i]);
	TAILQ_INIT(&a->running);
	TAILQ_INIT(&a->ages);
}

uint64_t admission_share(const struct admission *a, const struct claim *c)
{
	uint64_t share = c->share ? c->share : a->limits.bandwidth / 2;

	if (share > a->limits.bandwidth)
		share = a->limits.bandwidth;
	return share ? share : 1;
}

/* ---- the line ---- */

/* Both of the same rank. */
static bool is_before(const struct claim *a, const struct claim *b)
{
	return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns
						: a->order < b->order;
}

/* From the end: that is where most belong. */
static void insert(struct admission *a, struct claim *c)
{
	struct claim_list *list = &a->waiting[c->is_ready][c->counts_as];
	struct claim *other = TAILQ_LAST(list, claim_list);

	a->changes++;
	while (other && is_before(c, other))
		other = TAILQ_PREV(other, claim_list, entry);
	if (other)
		TAILQ_INSERT_AFTER(list, other, c, entry);
	else
		TAILQ_INSERT_HEAD(list, c, entry);
}

static void leave_line(struct admission *a, struct claim *c)
{
	a->changes++;
	TAILQ_REMOVE(&a->waiting[c->is_ready][c->counts_as], c, entry);
}

static void wait_for_turn(struct admission *a, struct claim *c, uint64_t now_ns)
{
	c->state = CLAIM_WAITING;
	c->counts_as = c->rank;
	c->order = a->order++;
	c->since_ns = c->age_ns = now_ns;
	c->told = 0;
	insert(a, c);
	TAILQ_INSERT_TAIL(&a->ages, c, age_entry);
	a->waiting_count++;
	if (c->expires_ns < a->expires_ns)
		a->expires_ns = c->expires_ns;
}

static void stop_waiting(struct admission *a, struct claim *c)
{
	leave_line(a, c);
	TAILQ_REMOVE(&a->ages, c, age_entry);
	a->waiting_count--;
	c->state = CLAIM_NONE;
}

static void stop_running(struct admission *a, struct claim *c)
{
	TAILQ_REMOVE(&a->running, c, entry);
	a->running_count--;
	a->granted -= c->rate;
	c->rate = 0;
	c->state = CLAIM_NONE;
}

int admission_add(struct admission *a, struct claim *c, uint64_t now_ns)
{
	assert(c->state == CLAIM_NONE && c->rank < ADMISSION_RANKS);
	if (a->waiting_count >= a->limits.queue_max)
		return -ENOSPC;
	c->is_ready = !c->ops->ready;
	c->quiet_ns = now_ns;
	wait_for_turn(a, c, now_ns);
	return 0;
}

void admission_again(struct admission *a, struct claim *c, uint64_t now_ns)
{
	if (c->state == CLAIM_WAITING)
		return;
	if (c->state == CLAIM_RUNNING)
		stop_running(a, c);
	c->quiet_ns = now_ns + ADMISSION_TELL_NS;
	wait_for_turn(a, c, now_ns);
}

void admission_ready(struct admission *a, struct claim *c)
{
	if (c->state != CLAIM_WAITING || c->is_ready)
		return;
	leave_line(a, c);
	c->is_ready = true;
	insert(a, c);
}

void admission_release(struct admission *a, struct claim *c)
{
	if (c->state == CLAIM_WAITING)
		stop_waiting(a, c);
	else if (c->state == CLAIM_RUNNING)
		stop_running(a, c);
}

/* The order of the list of ages depends on no limit: who waits longest is first. */
void admission_change(struct admission *a, const struct admission_limits *limits, uint64_t now_ns)
{
	struct claim *c;

	a->limits = *limits;
	TAILQ_FOREACH(c, &a->ages, age_entry)
	c->age_ns = now_ns;
}

static struct claim *first(const struct admission *a, bool ready)
{
	for (unsigned i = 0; i < ADMISSION_RANKS; i++)
		if (!TAILQ_EMPTY(&a->waiting[ready][i]))
			return TAILQ_FIRST(&a->waiting[ready][i]);
	return NULL;
}

/* ---- granting ---- */

static void grow_old(struct admission *a, uint64_t now_ns)
{
	struct claim *c;

	while (a->limits.age_ns && (c = TAILQ_FIRST(&a->ages)) &&
		now_ns - c->age_ns >= a->limits.age_ns) {
		TAILQ_REMOVE(&a->ages, c, age_entry);
		c->age_ns += a->limits.age_ns;
		if (now_ns - c->age_ns >= a->limits.age_ns)
			c->age_ns = now_ns; /* the caller was away: once is enough */
		TAILQ_INSERT_TAIL(&a->ages, c, age_entry);
		if (!c->counts_as)
			continue;
		leave_line(a, c);
		c->counts_as--;
		insert(a, c);
	}
}

static void grant(struct admission *a, struct claim *c, uint64_t now_ns)
{
	stop_waiting(a, c);
	c->state = CLAIM_RUNNING;
	c->rate = admission_share(a, c);
	c->turn_bytes = a->limits.turn_bytes;
	c->start_moved = c->seen_moved = c->ops->moved(c);
	c->since_ns = c->seen_ns = c->moved_ns = now_ns;
	a->granted += c->rate;
	TAILQ_INSERT_TAIL(&a->running, c, entry);
	a->running_count++;
	c->ops->granted(c);
}

static uint64_t free_rate(const struct admission *a)
{
	return a->granted < a->limits.bandwidth ? a->limits.bandwidth - a->granted : 0;
}

static bool fits(const struct admission *a, const struct claim *c)
{
	return admission_share(a, c) <= free_rate(a);
}

/* Whether the first that is not ready is before the first that is, or there is none that is. */
static bool is_next(const struct claim *other, const struct claim *ready)
{
	if (!other || !ready)
		return other;
	return other->counts_as != ready->counts_as ? other->counts_as < ready->counts_as
						    : is_before(other, ready);
}

/* Nobody passes who waits for bandwidth; who waits for something else is passed. */
static void grant_all(struct admission *a, uint64_t now_ns)
{
	for (;;) {
		struct claim *ready = first(a, true), *other = first(a, false);

		if (is_next(other, ready)) {
			if (!fits(a, other))
				return;
			if (other->ops->ready(other)) {
				admission_ready(a, other);
				continue;
			}
			ready = first(a, true); /* as it may have changed */
		}
		if (!ready || !fits(a, ready))
			return;
		grant(a, ready, now_ns);
	}
}

/* ---- lending ---- */

static void lend(struct admission *a, struct claim *c, uint64_t moved, uint64_t passed_ns)
{
	uint64_t share = admission_share(a, c);
	uint64_t pace = (uint64_t)((double)moved * 1e9 / (double)passed_ns);
	uint64_t keep = pace + pace / 4;

	if (pace > c->rate / 4 * 3)
		return;
	if (keep < share / ADMISSION_LENT_MOST)
		keep = share / ADMISSION_LENT_MOST;
	if (keep >= c->rate)
		return;
	a->granted -= c->rate - keep;
	c->rate = keep;
	c->ops->changed(c);
}

/* It gets back what nobody waits for. */
static void unlend(struct admission *a, struct claim *c)
{
	uint64_t more = admission_share(a, c) - c->rate;

	if (more > free_rate(a))
		more = free_rate(a);
	a->granted += more;
	c->rate += more;
	if (more)
		c->ops->changed(c);
}

static void look(struct admission *a, uint64_t now_ns)
{
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&a->running); c; c = next) {
		uint64_t passed_ns = now_ns - c->seen_ns, moved;

		next = TAILQ_NEXT(c, entry);
		if (passed_ns < ADMISSION_LOOK_NS)
			continue;
		moved = c->ops->moved(c) - c->seen_moved;
		c->seen_moved += moved;
		c->seen_ns = now_ns;
		if (moved)
			c->moved_ns = now_ns;
		if (now_ns - c->moved_ns >= ADMISSION_SILENT_NS) {
			stop_running(a, c);
			c->ops->changed(c);
		} else if (a->waiting_count && passed_ns < 2 * ADMISSION_LOOK_NS) {
			lend(a, c, moved, passed_ns);
		} else if (!a->waiting_count && c->rate < admission_share(a, c)) {
			unlend(a, c);
		}
	}
}

/* ---- telling ---- */

/* What one turn of it takes of the line. */
static uint64_t turn_of(const struct admission *a, const struct claim *c)
{
	return a->limits.turn_bytes < c->bytes ? a->limits.turn_bytes : c->bytes;
}

static uint64_t left_of_turns(const struct admission *a)
{
	const struct claim *c;
	uint64_t sum = 0;

	TAILQ_FOREACH(c, &a->running, entry)
	{
		uint64_t turn = turn_of(a, c), moved = c->seen_moved - c->start_moved;

		if (turn == ADMISSION_ENDLESS)
			return ADMISSION_NEVER;
		sum += moved < turn ? turn - moved : 0;
	}
	return sum;
}

static uint64_t time_for(const struct admission *a, uint64_t bytes)
{
	if (bytes == ADMISSION_NEVER)
		return ADMISSION_NEVER;
	return (uint64_t)((double)bytes / (double)a->limits.bandwidth * 1e9);
}

static bool is_due(const struct claim *c, unsigned position, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - c->told_ns;

	if (!c->told)
		return now_ns >= c->quiet_ns;
	if (since_ns < ADMISSION_TELL_NS)
		return false;
	/* each frame wakes a client, and hundreds of them cost those that run */
	return since_ns >= ADMISSION_AGAIN_NS ||
	       (c->told != position && position <= ADMISSION_NEAR);
}

/* The next of a rank, in order, of those that are ready and those that are not. */
static struct claim *merge(struct claim **ready, struct claim **other)
{
	struct claim **at = !*ready ? other : !*other || is_before(*ready, *other) ? ready : other;
	struct claim *c = *at;

	if (c)
		*at = TAILQ_NEXT(c, entry);
	return c;
}

/* The first in line first.  A callback may change the line: true, it is to be looked through anew.
 */
static bool tell(struct admission *a, uint64_t now_ns)
{
	uint64_t ahead = left_of_turns(a), changes = a->changes;

	for (unsigned rank = 0; rank < ADMISSION_RANKS; rank++) {
		struct claim *ready = TAILQ_FIRST(&a->waiting[1][rank]);
		struct claim *other = TAILQ_FIRST(&a->waiting[0][rank]);
		unsigned position = 0;
		struct claim *c;

		while ((c = merge(&ready, &other))) {
			uint64_t turn = turn_of(a, c);

			if (is_due(c, ++position, now_ns)) {
				c->told = position;
				c->told_ns = now_ns;
				c->ops->queued(c, position, time_for(a, ahead));
				if (changes != a->changes)
					return true;
			}
			ahead = turn == ADMISSION_ENDLESS || ahead == ADMISSION_NEVER
					? ADMISSION_NEVER
					: ahead + turn;
		}
	}
	return false;
}

/* One that has expired; NULL: none. */
static struct claim *find_expired(struct admission *a, uint64_t now_ns)
{
	struct claim *c;

	a->expires_ns = ADMISSION_NEVER;
	TAILQ_FOREACH(c, &a->ages, age_entry)
	{
		if (c->expires_ns <= now_ns)
			return c;
		if (c->expires_ns < a->expires_ns)
			a->expires_ns = c->expires_ns;
	}
	return NULL;
}

static void expire(struct admission *a, uint64_t now_ns)
{
	struct claim *c;

	while (a->expires_ns <= now_ns && (c = find_expired(a, now_ns))) {
		a->expires_ns = now_ns; /* there may be more of them */
		c->expires_ns = ADMISSION_NEVER;
		c->ops->expired(c);
	}
}

void admission_run(struct admission *a, uint64_t now_ns)
{
	look(a, now_ns);
	expire(a, now_ns);
	grow_old(a, now_ns);
	grant_all(a, now_ns);
	while (a->waiting_count && tell(a, now_ns))
		;
}

uint64_t admission_next_ns(const struct admission *a, uint64_t now_ns)
{
	uint64_t next_ns = now_ns + ADMISSION_LOOK_NS;

	if (!a->running_count && !a->waiting_count)
		return UINT64_MAX;
	return a->expires_ns < next_ns ? a->expires_ns : next_ns;
}
