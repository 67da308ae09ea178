/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/jobs/scheduler and budget: single rules, and random asking and giving back against what
 * must always hold. */
#include "rftpd/jobs/scheduler.h"
#include "tests/harness.h"

#define MIB (UINT64_C(1) << 20)
#define S UINT64_C(1000000000)

struct client {
	struct lease lease; /* first */
	unsigned granted, lost, position, told;
	uint64_t moved_ns;
	struct scheduler *gives_back_to; /* in `granted`: gives it back at once */
};

static struct client *of(const struct lease *l)
{
	return (struct client *)l;
}

static void granted(struct lease *l)
{
	of(l)->granted++;
	if (of(l)->gives_back_to)
		scheduler_release(of(l)->gives_back_to, l);
}

static void queued(struct lease *l, unsigned position)
{
	of(l)->position = position;
	of(l)->told++;
}

static uint64_t moved_ns(const struct lease *l)
{
	return of(l)->moved_ns;
}

static void lost(struct lease *l)
{
	of(l)->lost++;
}

static const struct lease_ops ops = {granted, queued, moved_ns, lost};
static const struct budget total = {64 * MIB, 64, 64};

static struct client wants(uint64_t least_mib, uint64_t most_mib)
{
	return (struct client){.lease = {.ops = &ops,
				       .least = {least_mib * MIB, 1, 3},
				       .most = {most_mib * MIB, 8, 6}}};
}

static void half_of_what_is_free_is_given(void)
{
	struct client a = wants(2, 512), b = wants(2, 512), c = wants(2, 4);
	struct scheduler s;

	scheduler_init(&s, &total, S);
	CHECK(scheduler_ask(&s, &a.lease, 0));
	CHECK_EQ(a.lease.has.memory_bytes, 32 * MIB);
	CHECK_EQ(a.lease.has.files, 8);
	CHECK_EQ(a.lease.has.threads, 6);
	CHECK(scheduler_ask(&s, &b.lease, 0));
	CHECK_EQ(b.lease.has.memory_bytes, 16 * MIB);
	CHECK(scheduler_ask(&s, &c.lease, 0));
	CHECK_EQ(c.lease.has.memory_bytes, 4 * MIB);
	CHECK(scheduler_next_ns(&s, 0) == UINT64_MAX);
	scheduler_release(&s, &a.lease);
	scheduler_release(&s, &b.lease);
	scheduler_release(&s, &c.lease);
	CHECK(budget_fits(&s.total, &s.free));
}

static void who_is_urgent_waits_before_the_others(void)
{
	struct client hold = wants(64, 64), a = wants(2, 4), b = wants(2, 4), urgent = wants(2, 4);
	struct scheduler s;

	a.lease.rank = b.lease.rank = 2;
	urgent.lease.rank = 1;
	scheduler_init(&s, &total, S);
	CHECK(scheduler_ask(&s, &hold.lease, 0));
	CHECK(!scheduler_ask(&s, &a.lease, 0) && !scheduler_ask(&s, &b.lease, 0));
	CHECK(!scheduler_ask(&s, &urgent.lease, 0));
	scheduler_run(&s, 0);
	CHECK_EQ(urgent.position, 1);
	CHECK_EQ(a.position, 2);
	CHECK_EQ(b.position, 3);
	scheduler_release(&s, &hold.lease);
	scheduler_run(&s, 1);
	CHECK(urgent.granted && a.granted && b.granted);
}

static void a_part_is_kept_for_who_is_urgent(void)
{
	struct client a[32], urgent = wants(2, 4), alone = wants(60, 64);
	struct scheduler s;
	unsigned held = 0;

	scheduler_init(&s, &total, S);
	for (unsigned i = 0; i < 32; i++) {
		a[i] = wants(2, 4);
		a[i].lease.rank = 5;
		a[i].lease.yields = true;
		held += scheduler_ask(&s, &a[i].lease, 0);
	}
	CHECK(held > 3 && held < 32);
	CHECK(s.free.memory_bytes >= 16 * MIB && s.free.threads >= 16 && s.free.files >= 16);
	CHECK(scheduler_ask(&s, &urgent.lease, 0));
	for (unsigned i = 0; i < 32; i++)
		scheduler_release(&s, &a[i].lease);
	scheduler_release(&s, &urgent.lease);
	/* but one that is alone may have all */
	alone.lease.yields = true;
	CHECK(scheduler_ask(&s, &alone.lease, 0));
}

static void who_wants_more_than_there_is_gets_all(void)
{
	struct client a = wants(1000, 2000);
	struct scheduler s;

	scheduler_init(&s, &total, S);
	CHECK(scheduler_ask(&s, &a.lease, 0));
	CHECK_EQ(a.lease.has.memory_bytes, 64 * MIB);
	scheduler_release(&s, &a.lease);
}

static void reserved_files_are_not_lent(void)
{
	struct client a = wants(1, 1), b = wants(1, 1);
	struct scheduler s;

	scheduler_init(&s, &total, S);
	scheduler_reserve(&s, total.files);
	CHECK(scheduler_ask(&s, &a.lease, 0)); /* one always runs */
	CHECK(!scheduler_ask(&s, &b.lease, 0));
	scheduler_run(&s, 0);
	CHECK_EQ(b.granted, 0);
	scheduler_reserve(&s, total.files - a.lease.has.files - b.lease.least.files);
	scheduler_run(&s, 0);
	CHECK_EQ(b.granted, 1);
	CHECK_EQ(b.lease.has.files, b.lease.least.files);
	scheduler_release(&s, &a.lease);
	scheduler_release(&s, &b.lease);
}

static void what_is_given_back_early_is_for_others(void)
{
	const struct budget keep = {.threads = 1};
	struct client a = wants(64, 64), b = wants(32, 64);
	struct scheduler s;

	scheduler_init(&s, &total, S);
	CHECK(scheduler_ask(&s, &a.lease, 0));
	CHECK(!scheduler_ask(&s, &b.lease, 0));
	scheduler_reduce(&s, &a.lease, &keep);
	scheduler_run(&s, 0);
	CHECK_EQ(b.granted, 1);
	scheduler_release(&s, &a.lease);
	scheduler_release(&s, &b.lease);
	CHECK(budget_fits(&s.total, &s.free));
}

static void a_small_one_does_not_pass_a_large_one(void)
{
	struct client a = wants(40, 40), large = wants(40, 40), small = wants(1, 1);
	struct scheduler s;

	scheduler_init(&s, &total, S);
	CHECK(scheduler_ask(&s, &a.lease, 0));
	CHECK(!scheduler_ask(&s, &large.lease, 0));
	CHECK(!scheduler_ask(&s, &small.lease, 0));
	scheduler_run(&s, 0);
	CHECK_EQ(large.granted + small.granted, 0);
	CHECK_EQ(large.position, 1);
	CHECK_EQ(small.position, 2);
	scheduler_release(&s, &a.lease);
	CHECK_EQ(large.granted, 0); /* from scheduler_run only */
	scheduler_run(&s, 0);
	CHECK_EQ(large.granted, 1);
	CHECK_EQ(small.granted, 1);
	scheduler_release(&s, &large.lease);
	scheduler_release(&s, &small.lease);
}

static void who_is_far_behind_is_told_less_often(void)
{
	struct client first = wants(64, 64), others[SCHEDULER_NEAR + 1];
	struct client *near = &others[SCHEDULER_NEAR - 1], *far = &others[SCHEDULER_NEAR];
	struct scheduler s;

	scheduler_init(&s, &total, 0);
	CHECK(scheduler_ask(&s, &first.lease, 0));
	for (unsigned i = 0; i <= SCHEDULER_NEAR; i++) {
		others[i] = wants(64, 64);
		CHECK(!scheduler_ask(&s, &others[i].lease, 0));
	}
	scheduler_run(&s, 0);
	CHECK_EQ(near->told + far->told, 2);
	scheduler_release(&s, &others[0].lease);
	near->lease.told = far->lease.told = SCHEDULER_NEAR + 5; /* as if they had moved up more */
	scheduler_run(&s, SCHEDULER_TELL_NS);
	CHECK_EQ(far->position, SCHEDULER_NEAR);
	CHECK_EQ(near->told + far->told, 4);
	CHECK(!scheduler_ask(&s, &others[0].lease, SCHEDULER_TELL_NS));
	scheduler_run(&s, SCHEDULER_TELL_NS);
	CHECK_EQ(others[0].position, SCHEDULER_NEAR + 1);
	others[0].lease.told++;
	scheduler_run(&s, 2 * SCHEDULER_TELL_NS);
	CHECK_EQ(others[0].told, 2); /* not yet */
	scheduler_run(&s, SCHEDULER_TELL_NS + SCHEDULER_AGAIN_NS);
	CHECK_EQ(others[0].told, 3);
	for (unsigned i = 0; i <= SCHEDULER_NEAR; i++)
		scheduler_release(&s, &others[i].lease);
	scheduler_release(&s, &first.lease);
}

static void who_leaves_the_line_lets_others_up(void)
{
	struct client a = wants(64, 64), b = wants(64, 64), c = wants(1, 1), d = wants(1, 1);
	struct scheduler s;

	scheduler_init(&s, &total, 100 * S);
	CHECK(scheduler_ask(&s, &a.lease, 0));
	CHECK(!scheduler_ask(&s, &b.lease, 0));
	CHECK(!scheduler_ask(&s, &c.lease, 0));
	CHECK(!scheduler_ask(&s, &d.lease, 0));
	scheduler_run(&s, 0);
	CHECK_EQ(d.position, 3);
	scheduler_release(&s, &b.lease);
	scheduler_release(&s, &b.lease); /* none: nothing happens */
	scheduler_run(&s, 1);
	CHECK_EQ(d.told, 1); /* too soon to be told again */
	CHECK_EQ(scheduler_next_ns(&s, 1), 1 + SCHEDULER_TELL_NS);
	scheduler_run(&s, SCHEDULER_TELL_NS);
	CHECK_EQ(d.position, 2);
	CHECK_EQ(d.told, 2);
	scheduler_run(&s, 2 * SCHEDULER_TELL_NS);
	CHECK_EQ(d.told, 2); /* nothing new */
	scheduler_run(&s, SCHEDULER_TELL_NS + SCHEDULER_AGAIN_NS);
	CHECK_EQ(d.told, 3);
	scheduler_release(&s, &a.lease);
	scheduler_run(&s, SCHEDULER_TELL_NS + SCHEDULER_AGAIN_NS);
	CHECK_EQ(b.granted, 0);
	CHECK_EQ(c.granted + d.granted, 2);
	scheduler_release(&s, &c.lease);
	scheduler_release(&s, &d.lease);
}

static void who_stalls_gives_way_to_who_waits(void)
{
	struct client moves = wants(32, 32), stalls = wants(16, 16), more = wants(16, 16);
	struct client waits = wants(10, 10), later = wants(5, 5);
	struct scheduler s;

	scheduler_init(&s, &total, 30 * S);
	CHECK(scheduler_ask(&s, &moves.lease, 0));
	CHECK(scheduler_ask(&s, &stalls.lease, 0));
	CHECK(scheduler_ask(&s, &more.lease, 0));
	more.moved_ns = 1;
	moves.moved_ns = 100 * S;
	scheduler_run(&s, 100 * S); /* nobody waits: nobody is in the way */
	CHECK_EQ(stalls.lost, 0);
	CHECK(!scheduler_ask(&s, &waits.lease, 100 * S));
	CHECK(!scheduler_ask(&s, &later.lease, 100 * S));
	scheduler_run(&s, 100 * S);
	moves.moved_ns = 129 * S;
	scheduler_run(&s, 130 * S - 1);
	CHECK_EQ(stalls.lost, 0); /* not for so long while others waited */
	scheduler_run(&s, 130 * S);
	CHECK_EQ(stalls.lost, 1);
	CHECK_EQ(more.lost, 0); /* one is enough */
	scheduler_run(&s, 131 * S);
	CHECK_EQ(stalls.lost, 1);
	CHECK_EQ(moves.lost + more.lost + waits.granted, 0);
	scheduler_release(&s, &stalls.lease);
	scheduler_run(&s, 131 * S);
	CHECK_EQ(waits.granted, 1);
	CHECK_EQ(later.granted, 1);
	scheduler_release(&s, &waits.lease);
	scheduler_release(&s, &later.lease);
	scheduler_release(&s, &more.lease);
	scheduler_release(&s, &moves.lease);
	CHECK(budget_fits(&s.total, &s.free));
}

static void patient_ones_have_half_and_keep_it(void)
{
	struct client p = wants(20, 20), q = wants(20, 20), a = wants(30, 30), b = wants(30, 30);
	struct scheduler s;

	scheduler_init(&s, &total, S);
	p.lease.patient = q.lease.patient = true;
	CHECK(scheduler_ask(&s, &p.lease, 0));
	CHECK(!scheduler_ask(&s, &q.lease, 0)); /* over the half */
	CHECK(scheduler_ask(&s, &a.lease, 0));  /* is not held up by that */
	CHECK(!scheduler_ask(&s, &b.lease, 0));
	a.moved_ns = 100 * S;
	scheduler_run(&s, 100 * S);
	CHECK_EQ(p.lost + q.granted + b.granted, 0);
	scheduler_release(&s, &a.lease);
	scheduler_run(&s, 100 * S);
	CHECK_EQ(b.granted, 1);
	CHECK_EQ(q.granted, 0);
	scheduler_release(&s, &p.lease);
	scheduler_run(&s, 100 * S);
	CHECK_EQ(q.granted, 1);
	scheduler_release(&s, &q.lease);
	scheduler_release(&s, &b.lease);
	CHECK(budget_fits(&s.total, &s.free));
}

static void a_grant_may_be_given_back_within(void)
{
	struct client a = wants(64, 64), b = wants(64, 64), c = wants(64, 64);
	struct scheduler s;

	scheduler_init(&s, &total, S);
	b.gives_back_to = &s;
	CHECK(scheduler_ask(&s, &a.lease, 0));
	CHECK(!scheduler_ask(&s, &b.lease, 0));
	CHECK(!scheduler_ask(&s, &c.lease, 0));
	scheduler_release(&s, &a.lease);
	scheduler_run(&s, 0);
	CHECK_EQ(b.granted, 1);
	CHECK_EQ(c.granted, 1);
	scheduler_release(&s, &c.lease);
	CHECK(budget_fits(&s.total, &s.free));
}

/* What must hold whatever happens. */
static bool sums_up(const struct scheduler *s, const struct client *clients, unsigned count)
{
	struct budget sum = s->free, patient = {0}, half = budget_half(&s->total);

	for (unsigned i = 0; i < count; i++)
		if (clients[i].lease.state == LEASE_HELD) {
			const struct lease *l = &clients[i].lease;

			if (!budget_fits(&l->least, &l->has) || !budget_fits(&l->has, &l->most))
				return false;
			budget_add(&sum, &l->has);
			if (l->patient)
				budget_add(&patient, &l->has);
		}
	return budget_fits(&sum, &s->total) && budget_fits(&s->total, &sum) &&
	       budget_fits(&patient, &half);
}

static void nothing_is_lost_and_everybody_gets_a_turn(void)
{
	enum { COUNT = 40 };
	struct client clients[COUNT] = {0};
	uint64_t rng = harness_seed(), now = S;
	uint64_t asked[COUNT] = {0}, order = 0;
	unsigned grants = 0;
	struct scheduler s;

	scheduler_init(&s, &total, 20 * S);
	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = (unsigned)(harness_random(&rng) % COUNT);
		struct client *c = &clients[i];
		uint64_t least = harness_random(&rng) % 70;
		unsigned before[COUNT];

		now += harness_random(&rng) % S;
		if (c->lease.state == LEASE_NONE) {
			*c = wants(least, least + harness_random(&rng) % 70);
			c->lease.least.threads = (uint32_t)(harness_random(&rng) % 80);
			c->lease.patient = harness_random(&rng) % 4 == 0;
			c->moved_ns = now;
			asked[i] = ++order;
			scheduler_ask(&s, &c->lease, now);
		} else if (c->lease.state == LEASE_HELD || harness_random(&rng) % 8 == 0) {
			scheduler_release(&s, &c->lease);
		}
		for (i = 0; i < COUNT; i++)
			before[i] = clients[i].granted;
		scheduler_run(&s, now);
		CHECK(sums_up(&s, clients, COUNT));
		for (i = 0; i < COUNT; i++) {
			if (clients[i].granted == before[i])
				continue;
			grants++;
			/* of one kind, nobody who asked before waits still */
			for (unsigned j = 0; j < COUNT; j++)
				CHECK(clients[j].lease.state != LEASE_WAITING ||
					clients[j].lease.patient != clients[i].lease.patient ||
					asked[j] > asked[i]);
		}
		for (i = 0; i < COUNT; i++) {
			CHECK(clients[i].granted <= 1);
			CHECK(!clients[i].lost || !clients[i].lease.patient);
			CHECK(clients[i].lease.state != LEASE_WAITING || clients[i].told);
		}
	}
	printf("# %u of %ju asked had to wait\n", grants, (uintmax_t)order);
	CHECK(grants > 200);
	while (s.held_count + s.waiting_count) { /* all get their turn when all give back */
		unsigned left = s.held_count + s.waiting_count;

		for (unsigned i = 0; i < COUNT; i++)
			if (clients[i].lease.state == LEASE_HELD)
				scheduler_release(&s, &clients[i].lease);
		scheduler_run(&s, now);
		CHECK(s.held_count + s.waiting_count < left);
	}
	CHECK(budget_fits(&s.total, &s.free));
}

static void another_total(void)
{
	static const struct budget less = {16 * MIB, 8, 8}, none_left = {0};
	struct client a = wants(2, 512), b = wants(40, 512), c = wants(2, 512), p = wants(2, 512);
	struct scheduler s;

	scheduler_init(&s, &total, S);
	CHECK(scheduler_ask(&s, &a.lease, 0)); /* 32 MiB, more than there is to be */
	p.lease.patient = true;
	CHECK(scheduler_ask(&s, &p.lease, 0));
	CHECK(!scheduler_ask(&s, &b.lease, 0));
	scheduler_resize(&s, &less, S);
	CHECK_EQ(s.free.memory_bytes, none_left.memory_bytes);
	CHECK(!scheduler_ask(&s, &c.lease, 0));
	scheduler_run(&s, 1);
	CHECK_EQ(b.granted + c.granted, 0);
	scheduler_release(&s, &a.lease);
	scheduler_release(&s, &p.lease);
	CHECK_EQ(s.free.memory_bytes, 16 * MIB);
	scheduler_run(&s, 2); /* who waits for more than there is now has all of it */
	CHECK_EQ(b.granted, 1);
	CHECK_EQ(b.lease.has.memory_bytes, 16 * MIB);
	scheduler_resize(&s, &total, S);
	scheduler_run(&s, 3);
	CHECK_EQ(c.granted, 1);
	scheduler_release(&s, &b.lease);
	scheduler_release(&s, &c.lease);
	CHECK(budget_fits(&s.total, &s.free) && s.free.memory_bytes == total.memory_bytes);
}

static struct client draws(uint64_t least_mib, uint64_t most_mib, struct purse *purse)
{
	struct client c = wants(least_mib, most_mib);

	c.lease.purses[0] = purse;
	c.lease.purse_count = 1;
	return c;
}

static void a_purse_bounds_those_that_draw_on_it(void)
{
	struct purse alices = {.total = {16 * MIB, UINT32_MAX, UINT32_MAX}},
		     bobs = {.total = {UINT64_MAX, 3, UINT32_MAX}};
	struct client a = draws(2, 512, &alices), a2 = draws(10, 512, &alices),
		      a3 = draws(1, 1, &alices), big = draws(20, 512, &alices),
		      b = draws(2, 8, &bobs), b2 = draws(2, 8, &bobs), c = wants(2, 8);
	struct scheduler s;

	scheduler_init(&s, &total, 0);
	CHECK(scheduler_ask(&s, &a.lease, 0));
	CHECK_EQ(a.lease.has.memory_bytes, 8 * MIB); /* half of what hers is */
	CHECK(!scheduler_ask(&s, &a2.lease, 0));
	/* others of hers wait behind it, and nobody else */
	CHECK(!scheduler_ask(&s, &a3.lease, 0));
	CHECK(scheduler_ask(&s, &b.lease, 0));
	CHECK_EQ(b.lease.has.files, 1);
	CHECK(scheduler_ask(&s, &c.lease, 0));
	CHECK(scheduler_ask(&s, &b2.lease, 0));
	CHECK_EQ(bobs.has.files, 2);
	scheduler_run(&s, 1);
	CHECK_EQ(a2.granted + a3.granted, 0);
	scheduler_release(&s, &a.lease);
	scheduler_run(&s, 2);
	CHECK_EQ(a2.granted, 1);
	CHECK_EQ(a3.granted, 1);
	CHECK(alices.has.memory_bytes <= 16 * MIB);
	/* more than the purse ever has is cut to that */
	CHECK(!scheduler_ask(&s, &big.lease, 3));
	CHECK_EQ(big.lease.least.memory_bytes, 16 * MIB);
	/* a smaller one: who waits can still be served */
	alices.total.memory_bytes = 4 * MIB;
	scheduler_resize(&s, &total, 0);
	CHECK_EQ(big.lease.least.memory_bytes, 4 * MIB);
	scheduler_release(&s, &a2.lease);
	scheduler_run(&s, 4);
	CHECK_EQ(big.granted, 0);
	scheduler_release(&s, &a3.lease);
	scheduler_run(&s, 5);
	CHECK_EQ(big.granted, 1);
	scheduler_release(&s, &big.lease);
	scheduler_release(&s, &b.lease);
	scheduler_release(&s, &b2.lease);
	scheduler_release(&s, &c.lease);
	CHECK_EQ(alices.has.memory_bytes + bobs.has.files, 0);
	CHECK(s.free.memory_bytes == total.memory_bytes);
}

/* Who stalls gives way to who waits for the same purse, and to nobody else. */
static void a_purse_is_not_kept_by_who_stalls(void)
{
	struct purse alices = {.total = {8 * MIB, UINT32_MAX, UINT32_MAX}}, bobs = alices;
	struct client a = draws(8, 8, &alices), b = draws(8, 8, &bobs), a2 = draws(2, 8, &alices);
	struct scheduler s;

	scheduler_init(&s, &total, S);
	CHECK(scheduler_ask(&s, &b.lease, 0));
	CHECK(scheduler_ask(&s, &a.lease, 0));
	a.moved_ns = 1;
	CHECK(!scheduler_ask(&s, &a2.lease, S));
	scheduler_run(&s, S + 1);
	CHECK_EQ(a.lost + b.lost, 0);
	scheduler_run(&s, 2 * S + 1);
	scheduler_run(&s, 2 * S + 2);
	CHECK_EQ(a.lost, 1);
	CHECK_EQ(b.lost, 0);
	scheduler_release(&s, &a.lease);
	scheduler_run(&s, 2 * S + 3);
	CHECK_EQ(a2.granted, 1);
	scheduler_release(&s, &a2.lease);
	scheduler_release(&s, &b.lease);
}

static void defaults_suit_the_host(void)
{
	static const struct {
		struct budget_host host;
		struct budget budget;
	} rows[] = {
		{{UINT64_C(64) << 30, 20000, 32}, {UINT64_C(16) << 30, 2500, 512}},
		{{UINT64_C(2) << 30, 1024, 2}, {UINT64_C(512) << 20, 128, 32}},
		{{UINT64_MAX, 256, 1}, {UINT64_C(1) << 30, 32, 32}},
		{{0, 0, 1}, {BUDGET_MEMORY_MIN, BUDGET_FILES_MIN, 32}},
		{{UINT64_MAX - 1, UINT64_MAX, 100000}, {UINT64_C(64) << 30, 65536, UINT16_MAX}},
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct budget b;

		budget_of_host(&rows[i].host, &b);
		CHECK_EQ(b.memory_bytes, rows[i].budget.memory_bytes);
		CHECK_EQ(b.files, rows[i].budget.files);
		CHECK_EQ(b.threads, rows[i].budget.threads);
	}
}

HARNESS_MAIN({"who_is_urgent_waits_before_the_others", who_is_urgent_waits_before_the_others},
	{"a_part_is_kept_for_who_is_urgent", a_part_is_kept_for_who_is_urgent},
	{"who_is_far_behind_is_told_less_often", who_is_far_behind_is_told_less_often},
	{"reserved_files_are_not_lent", reserved_files_are_not_lent},
	{"what_is_given_back_early_is_for_others", what_is_given_back_early_is_for_others},
	{"half_of_what_is_free_is_given", half_of_what_is_free_is_given},
	{"who_wants_more_than_there_is_gets_all", who_wants_more_than_there_is_gets_all},
	{"a_small_one_does_not_pass_a_large_one", a_small_one_does_not_pass_a_large_one},
	{"who_leaves_the_line_lets_others_up", who_leaves_the_line_lets_others_up},
	{"who_stalls_gives_way_to_who_waits", who_stalls_gives_way_to_who_waits},
	{"patient_ones_have_half_and_keep_it", patient_ones_have_half_and_keep_it},
	{"a_grant_may_be_given_back_within", a_grant_may_be_given_back_within},
	{"nothing_is_lost_and_everybody_gets_a_turn", nothing_is_lost_and_everybody_gets_a_turn},
	{"a_purse_bounds_those_that_draw_on_it", a_purse_bounds_those_that_draw_on_it},
	{"a_purse_is_not_kept_by_who_stalls", a_purse_is_not_kept_by_who_stalls},
	{"another_total", another_total}, {"defaults_suit_the_host", defaults_suit_the_host})
