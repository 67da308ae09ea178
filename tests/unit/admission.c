/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/jobs/admission: single rules, and random arrivals, sizes and deaths against what must
 * always hold. */
#include "rftpd/jobs/admission.h"
#include "tests/harness.h"

#define S UINT64_C(1000000000)
#define MS UINT64_C(1000000)

struct user {
	struct claim claim; /* first */
	unsigned granted, changed, told, position, expired;
	uint64_t wait_ns, moved;
	bool is_ready;
};

static struct user *order[4096]; /* of grants */
static unsigned grants;

static struct user *of(const struct claim *c)
{
	return (struct user *)c;
}

static void granted(struct claim *c)
{
	of(c)->granted++;
	order[grants++ % 4096] = of(c);
}

static void changed(struct claim *c)
{
	of(c)->changed++;
}

static void expired(struct claim *c)
{
	of(c)->expired++;
}

static void queued(struct claim *c, unsigned position, uint64_t wait_ns)
{
	of(c)->told++;
	of(c)->position = position;
	of(c)->wait_ns = wait_ns;
}

static uint64_t moved(const struct claim *c)
{
	return of(c)->moved;
}

static bool ready(struct claim *c)
{
	return of(c)->is_ready;
}

static const struct claim_ops ops = {.granted = granted,
	.changed = changed,
	.queued = queued,
	.expired = expired,
	.moved = moved};
static const struct claim_ops ops_ready = {.ready = ready,
	.granted = granted,
	.changed = changed,
	.queued = queued,
	.expired = expired,
	.moved = moved};
static const struct admission_limits limits = {1000, 100, 30 * S, 8};

static struct user user(unsigned rank, uint64_t share)
{
	return (struct user){.claim = {.ops = &ops,
				     .rank = rank,
				     .share = share,
				     .deadline_ns = ADMISSION_NEVER,
				     .bytes = ADMISSION_NEVER,
				     .expires_ns = ADMISSION_NEVER}};
}

static bool runs(const struct user *u)
{
	return u->claim.state == CLAIM_RUNNING;
}

static void shares_are_granted_while_they_last(void)
{
	struct user a = user(1, 500), b = user(1, 0), c = user(0, 500), d = user(0, 5000);
	struct admission m;

	admission_init(&m, &limits);
	CHECK(!admission_add(&m, &a.claim, 0) && !admission_add(&m, &b.claim, 0));
	admission_run(&m, 0);
	CHECK(runs(&a) && runs(&b));
	CHECK_EQ(b.claim.rate, 500); /* none was said: half of all */
	CHECK_EQ(a.claim.turn_bytes, 100);
	CHECK(!admission_add(&m, &c.claim, 1));
	admission_run(&m, 1);
	CHECK(!runs(&c));
	CHECK_EQ(c.position, 1);
	CHECK_EQ(c.wait_ns, 200 * S / 1000);
	admission_release(&m, &a.claim);
	admission_run(&m, 2);
	CHECK(runs(&c));
	/* more than there is: all of it */
	CHECK(!admission_add(&m, &d.claim, 3));
	admission_release(&m, &b.claim);
	admission_release(&m, &c.claim);
	admission_run(&m, 3);
	CHECK_EQ(d.claim.rate, 1000);
	admission_release(&m, &d.claim);
	CHECK_EQ(m.granted, 0);
	CHECK(admission_next_ns(&m, 4) == UINT64_MAX);
}

static void nobody_passes_because_it_wants_less(void)
{
	struct user a = user(0, 600), big = user(0, 600), small = user(1, 100);
	struct admission m;

	admission_init(&m, &limits);
	admission_add(&m, &a.claim, 0);
	admission_add(&m, &big.claim, 0);
	admission_add(&m, &small.claim, 0);
	admission_run(&m, 0);
	CHECK(runs(&a) && !runs(&big) && !runs(&small));
	admission_release(&m, &a.claim);
	admission_run(&m, 1);
	CHECK(runs(&big) && runs(&small));
}

static void rank_then_deadline_then_arrival(void)
{
	struct user hold = user(0, 1000), u[5];
	static const unsigned rank[5] = {1, 1, 1, 0, 1};
	static const uint64_t deadline[5] = {
		ADMISSION_NEVER, 5 * S, ADMISSION_NEVER, ADMISSION_NEVER, 3 * S};
	static const unsigned wanted[5] = {3, 4, 1, 0, 2};
	struct admission m;

	admission_init(&m, &limits);
	admission_add(&m, &hold.claim, 0);
	admission_run(&m, 0);
	for (unsigned i = 0; i < 5; i++) {
		u[i] = user(rank[i], 1000);
		u[i].claim.deadline_ns = deadline[i];
		CHECK(!admission_add(&m, &u[i].claim, 0));
	}
	admission_run(&m, 1);
	CHECK_EQ(u[4].position, 1);
	CHECK_EQ(u[1].position, 2);
	CHECK_EQ(u[0].position, 3);
	CHECK_EQ(u[2].position, 4);
	CHECK_EQ(u[3].position, 1); /* of its own class */
	CHECK(u[3].wait_ns < u[4].wait_ns && u[4].wait_ns < u[1].wait_ns);
	admission_release(&m, &hold.claim);
	for (unsigned i = 0; i < 5; i++) {
		admission_run(&m, 2 + i);
		CHECK(runs(&u[wanted[i]]));
		admission_release(&m, &u[wanted[i]].claim);
	}
}

static void a_turn_used_up_queues_behind_its_class(void)
{
	struct user a = user(1, 1000), b = user(1, 1000), urgent = user(0, 1000);
	struct admission m;

	admission_init(&m, &limits);
	admission_add(&m, &a.claim, 0);
	admission_add(&m, &b.claim, 0);
	admission_run(&m, 0);
	CHECK(runs(&a));
	admission_add(&m, &urgent.claim, 1);
	admission_again(&m, &a.claim, 1);
	admission_again(&m, &a.claim, 1); /* it asks once, however often */
	admission_run(&m, 1);
	CHECK(runs(&urgent) && !runs(&a) && !runs(&b));
	admission_release(&m, &urgent.claim);
	admission_run(&m, 2);
	CHECK(runs(&b));
	admission_again(&m, &b.claim, 3);
	admission_run(&m, 3);
	CHECK(runs(&a) && !runs(&b));
	/* alone it goes on at once */
	admission_release(&m, &b.claim);
	admission_again(&m, &a.claim, 4);
	admission_run(&m, 4);
	CHECK(runs(&a));
	CHECK_EQ(a.told, 0); /* such short waits are not told */
}

static void who_waits_long_counts_as_more(void)
{
	struct user old = user(2, 1000), hold = user(0, 1000), young = user(1, 1000);
	struct admission m;
	struct admission_limits strict = limits;

	for (unsigned turn = 0; turn < 2; turn++) {
		old = user(2, 1000), hold = user(0, 1000), young = user(1, 1000);
		strict.age_ns = turn ? 0 : 30 * S;
		admission_init(&m, &strict);
		admission_add(&m, &hold.claim, 0);
		admission_run(&m, 0);
		admission_add(&m, &old.claim, 0);
		hold.moved++; /* it lives */
		admission_run(&m, 29 * S);
		admission_add(&m, &young.claim, 29 * S);
		CHECK_EQ(old.claim.counts_as, 2);
		hold.moved++;
		admission_run(&m, 30 * S);
		CHECK_EQ(old.claim.counts_as, turn ? 2 : 1);
		admission_release(&m, &hold.claim);
		admission_run(&m, 30 * S + 1);
		CHECK(runs(turn ? &young : &old));
		/* its next turn is of its own class again */
		if (!turn) {
			admission_again(&m, &old.claim, 31 * S);
			admission_run(&m, 31 * S);
			CHECK(runs(&young));
		}
	}
}

static void unused_shares_are_lent_and_come_back(void)
{
	struct user slow = user(0, 800), other = user(0, 500);
	struct admission m;

	admission_init(&m, &limits);
	admission_add(&m, &slow.claim, 0);
	admission_add(&m, &other.claim, 0);
	admission_run(&m, 0);
	CHECK(runs(&slow) && !runs(&other));
	slow.moved = 8; /* of 80 */
	admission_run(&m, 100 * MS);
	CHECK_EQ(slow.changed, 1);
	CHECK_EQ(slow.claim.rate, 100);
	CHECK(runs(&other));
	CHECK(m.granted <= 1000);
	admission_again(&m, &slow.claim, 200 * MS);
	other.moved = 50;
	admission_run(&m, 200 * MS);
	CHECK(!runs(&slow)); /* its share is taken back, when the other's turn is over */
	admission_again(&m, &other.claim, 210 * MS);
	admission_run(&m, 210 * MS);
	CHECK_EQ(slow.claim.rate, 800);
	CHECK(!runs(&other));
	/* and at once when nobody waits any more */
	slow.moved += 8;
	admission_run(&m, 310 * MS);
	CHECK_EQ(slow.claim.rate, 100);
	CHECK(runs(&other));
	admission_release(&m, &other.claim);
	slow.moved += 8;
	admission_run(&m, 410 * MS);
	CHECK_EQ(slow.claim.rate, 800);
}

static void who_is_silent_loses_its_turn(void)
{
	struct user idle = user(0, 800), other = user(0, 500);
	struct admission m;

	admission_init(&m, &limits);
	admission_add(&m, &idle.claim, 0);
	admission_run(&m, 0);
	for (uint64_t now = 0; now < S; now += 100 * MS)
		admission_run(&m, now);
	CHECK(runs(&idle));
	admission_run(&m, S);
	CHECK_EQ(idle.claim.state, CLAIM_NONE);
	CHECK_EQ(idle.changed, 1);
	CHECK_EQ(m.granted, 0);
	admission_add(&m, &other.claim, 2 * S);
	admission_run(&m, 2 * S);
	CHECK(runs(&other));
	admission_again(&m, &idle.claim, 3 * S);
	other.moved++;
	admission_run(&m, 3 * S);
	CHECK_EQ(idle.claim.state, CLAIM_WAITING);
}

static void who_lacks_something_else_is_passed(void)
{
	struct user hold = user(0, 1000), first = user(0, 1000), second = user(1, 1000);
	struct admission m;

	first.claim.ops = &ops_ready;
	admission_init(&m, &limits);
	admission_add(&m, &hold.claim, 0);
	admission_run(&m, 0);
	admission_add(&m, &first.claim, 0);
	admission_add(&m, &second.claim, 0);
	admission_release(&m, &hold.claim);
	admission_run(&m, 1);
	CHECK(runs(&second));
	CHECK_EQ(first.position, 1);
	first.is_ready = true;
	admission_ready(&m, &first.claim);
	admission_run(&m, 2);
	CHECK(!runs(&first));
	admission_again(&m, &second.claim, 3);
	admission_run(&m, 3);
	CHECK(runs(&first));
}

static void who_waits_in_vain_is_told(void)
{
	struct user hold = user(0, 1000), a = user(0, 1000), b = user(1, 1000), past = user(0, 10);
	struct admission m;

	admission_init(&m, &limits);
	past.claim.expires_ns = 5;
	admission_add(&m, &past.claim, 5);
	admission_run(&m, 5);
	CHECK_EQ(past.expired, 1); /* before it is granted anything */
	admission_release(&m, &past.claim);
	admission_add(&m, &hold.claim, 6);
	admission_run(&m, 6);
	a.claim.expires_ns = 50;
	b.claim.expires_ns = 40;
	admission_add(&m, &a.claim, 6);
	admission_add(&m, &b.claim, 6);
	admission_run(&m, 39);
	CHECK_EQ(admission_next_ns(&m, 39), 40);
	CHECK_EQ(a.expired + b.expired, 0);
	admission_run(&m, 60);
	CHECK_EQ(a.expired, 1);
	CHECK_EQ(b.expired, 1);
	admission_run(&m, 70);
	CHECK_EQ(a.expired + b.expired, 2);
}

static void the_queue_has_an_end(void)
{
	struct user u[10];
	struct admission m;
	struct admission_limits more = limits;

	admission_init(&m, &limits);
	for (unsigned i = 0; i < 9; i++) {
		u[i] = user(0, 1000);
		CHECK(!admission_add(&m, &u[i].claim, 0));
		admission_run(&m, 0);
	}
	u[9] = user(0, 1000);
	CHECK_EQ(admission_add(&m, &u[9].claim, 0), -ENOSPC);
	/* whose turn is over is not turned away */
	admission_again(&m, &u[0].claim, 1);
	admission_run(&m, 1);
	CHECK(runs(&u[1]));
	more.queue_max = 100;
	more.bandwidth = 5000;
	admission_change(&m, &more, 2);
	admission_run(&m, 2);
	CHECK_EQ(m.running_count, 5);
	more.bandwidth = 500;
	admission_change(&m, &more, 3);
	admission_release(&m, &u[1].claim);
	admission_run(&m, 3);
	CHECK_EQ(m.running_count, 4); /* they go on; nobody else begins */
	for (unsigned i = 0; i < 10; i++)
		admission_release(&m, &u[i].claim);
	CHECK_EQ(m.granted, 0);
	CHECK_EQ(m.waiting_count, 0);
}

static void places_are_told_now_and_then(void)
{
	struct user hold = user(0, 1000), a = user(0, 10), b = user(0, 10);
	struct admission m;

	admission_init(&m, &limits);
	admission_add(&m, &hold.claim, 0);
	admission_run(&m, 0);
	CHECK_EQ(hold.told, 0);
	admission_add(&m, &a.claim, 0);
	admission_add(&m, &b.claim, 0);
	admission_run(&m, 0);
	admission_run(&m, 1);
	CHECK_EQ(b.told, 1);
	CHECK_EQ(b.position, 2);
	admission_release(&m, &a.claim);
	admission_run(&m, S / 2);
	CHECK_EQ(b.told, 1);
	hold.moved++;
	admission_run(&m, S);
	CHECK_EQ(b.told, 2);
	CHECK_EQ(b.position, 1);
	hold.moved++;
	admission_run(&m, 2 * S);
	CHECK_EQ(b.told, 2);
	hold.moved++;
	admission_run(&m, 6 * S);
	CHECK_EQ(b.told, 3);
}

/* ---- random ---- */

#define USERS 64u

static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	return harness_random(&seed) % n;
}

/* What must hold after each run.  NULL or what does not. */
static const char *broken(const struct admission *m, const struct user *u)
{
	const struct claim *best = NULL;
	uint64_t sum = 0;
	unsigned waiting = 0, running = 0;

	for (unsigned i = 0; i < USERS; i++) {
		const struct claim *c = &u[i].claim;

		waiting += c->state == CLAIM_WAITING;
		running += c->state == CLAIM_RUNNING;
		sum += c->state == CLAIM_RUNNING ? c->rate : 0;
		if (c->state == CLAIM_WAITING &&
			(!best || c->counts_as < best->counts_as ||
				(c->counts_as == best->counts_as &&
					(c->deadline_ns < best->deadline_ns ||
						(c->deadline_ns == best->deadline_ns &&
							c->order < best->order)))))
			best = c;
	}
	if (sum != m->granted)
		return "what is granted does not add up";
	if (sum > m->limits.bandwidth)
		return "more is granted than there is";
	if (waiting != m->waiting_count || running != m->running_count)
		return "a claim is lost";
	if (best && admission_share(m, best) <= m->limits.bandwidth - sum)
		return "the first in line waits although there is enough";
	return NULL;
}

/* Arrivals, sizes and deaths as chance has it; the end of all arrivals finds everybody served,
 * within a bounded time. */
static void random_lives(void)
{
	const struct admission_limits l = {1000000, 25000, 3 * S, USERS};
	static struct user u[USERS];
	static uint64_t left[USERS], turn_left[USERS];
	struct admission m;
	uint64_t now = 0, step = 5 * MS;
	unsigned served = 0, died = 0, born = 0;

	seed = harness_seed();
	memset(u, 0, sizeof u);
	admission_init(&m, &l);
	for (unsigned round = 0; round < 40000; round++, now += step) {
		bool arrivals = round < 20000;
		unsigned busy = 0;

		for (unsigned i = 0; i < USERS; i++) {
			struct user *v = &u[i];
			bool is_new = v->granted && runs(v) && !turn_left[i];

			if (is_new) {
				turn_left[i] = v->claim.turn_bytes;
				v->granted = 0;
			}
			if (!v->claim.ops) {
				if (!arrivals || random_below(200))
					continue;
				*v = user((unsigned)random_below(4), 1 + random_below(1200000));
				left[i] = 1 + random_below(200000);
				turn_left[i] = 0;
				if (!random_below(2))
					v->claim.deadline_ns = now + random_below(5 * S);
				CHECK(!admission_add(&m, &v->claim, now));
				born++;
				continue;
			}
			busy++;
			if (!random_below(2000)) { /* it dies, whatever it was doing */
				admission_release(&m, &v->claim);
				v->claim.ops = NULL;
				died++;
			} else if (runs(v)) {
				uint64_t n = v->claim.rate * step / S + 1;

				n = n < left[i] ? n : left[i];
				n = n < turn_left[i] ? n : turn_left[i];
				if (i % 16 == 7)
					n = n / 10; /* its disk is slow */
				if (i % 16 == 9 && !random_below(3000))
					n = 0;
				v->moved += n;
				left[i] -= n;
				turn_left[i] -= n;
				if (!left[i] || (i % 16 == 7 && left[i] < 10)) {
					admission_release(&m, &v->claim);
					v->claim.ops = NULL;
					served++;
				} else if (!turn_left[i]) {
					admission_again(&m, &v->claim, now);
				}
			} else if (v->claim.state == CLAIM_NONE) { /* it was too slow */
				turn_left[i] = 0;
				admission_again(&m, &v->claim, now);
			}
		}
		admission_run(&m, now);
		if (broken(&m, u))
			printf("# round %u: %s\n", round, broken(&m, u));
		CHECK(!broken(&m, u));
		if (!arrivals && !busy)
			break;
	}
	for (unsigned i = 0; i < USERS; i++)
		CHECK(!u[i].claim.ops);
	CHECK_EQ(born, served + died);
	CHECK_EQ(m.granted, 0);
}

/* A stream of urgent ones that fills the bandwidth for ever: with ages the others move, too. */
static void nobody_starves(void)
{
	const struct admission_limits l = {1000, 100, S, 100};
	struct user bulk = user(3, 1000), urgent[3];
	struct admission m;
	uint64_t now = 0;

	admission_init(&m, &l);
	for (unsigned i = 0; i < 3; i++) {
		urgent[i] = user(0, 1000);
		admission_add(&m, &urgent[i].claim, now);
	}
	admission_add(&m, &bulk.claim, now);
	for (unsigned round = 0; !bulk.granted; round++, now += 100 * MS) {
		CHECK(round < 40);
		for (unsigned i = 0; i < 3; i++)
			if (runs(&urgent[i]) && round) {
				urgent[i].moved += 100;
				admission_again(&m, &urgent[i].claim, now);
			}
		admission_run(&m, now);
	}
}

/* So many that anything that is not about constant shows. */
static void ten_thousand_wait(void)
{
	enum { MANY = 10000 };
	const struct admission_limits l = {1000, 100, 30 * S, MANY};
	struct user *u = calloc(MANY, sizeof *u);
	struct admission m;
	uint64_t now = 0;
	unsigned done = 0;

	CHECK(u);
	admission_init(&m, &l);
	for (unsigned i = 0; i < MANY; i++) {
		u[i] = user(i % 3, 500);
		CHECK(!admission_add(&m, &u[i].claim, 0));
	}
	admission_run(&m, 0);
	grants = 0;
	for (unsigned i = 0; i < MANY && done < MANY; i++) {
		for (unsigned k = 0; k < MANY; k++) {
			if (!runs(&u[k]))
				continue;
			admission_release(&m, &u[k].claim);
			done++;
		}
		now += MS;
		admission_run(&m, now);
	}
	free(u);
	CHECK_EQ(done, MANY);
}

HARNESS_MAIN({"shares_are_granted_while_they_last", shares_are_granted_while_they_last},
	{"nobody_passes_because_it_wants_less", nobody_passes_because_it_wants_less},
	{"rank_then_deadline_then_arrival", rank_then_deadline_then_arrival},
	{"a_turn_used_up_queues_behind_its_class", a_turn_used_up_queues_behind_its_class},
	{"who_waits_long_counts_as_more", who_waits_long_counts_as_more},
	{"unused_shares_are_lent_and_come_back", unused_shares_are_lent_and_come_back},
	{"who_is_silent_loses_its_turn", who_is_silent_loses_its_turn},
	{"who_lacks_something_else_is_passed", who_lacks_something_else_is_passed},
	{"who_waits_in_vain_is_told", who_waits_in_vain_is_told},
	{"the_queue_has_an_end", the_queue_has_an_end},
	{"places_are_told_now_and_then", places_are_told_now_and_then},
	{"random_lives", random_lives}, {"nobody_starves", nobody_starves},
	{"ten_thousand_wait", ten_thousand_wait})
