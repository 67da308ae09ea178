/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/bell: base/bell.
 */
#include "base/bell.h"
#include "base/worker.h"
#include "tests/harness.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#define ITEMS 20000u

static bool rings(const struct bell *b, int timeout_ms)
{
	struct pollfd fd = {b->fd, POLLIN, 0};

	return poll(&fd, 1, timeout_ms) == 1;
}

static void only_who_armed_is_woken(void)
{
	struct bell b;

	CHECK_EQ(bell_init(&b), 0);
	bell_ring(&b);
	CHECK(!rings(&b, 0));
	for (int i = 0; i < 3; i++) {
		bell_arm(&b);
		CHECK(!rings(&b, 0));
		bell_ring(&b);
		bell_ring(&b);
		CHECK(rings(&b, 0));
		bell_disarm(&b);
	}
	/* armed and awake again before anybody rang; twice without having slept */
	bell_arm(&b);
	bell_disarm(&b);
	bell_ring(&b);
	bell_arm(&b);
	CHECK(!rings(&b, 0));
	bell_ring(&b);
	bell_arm(&b);
	CHECK(!rings(&b, 0));
	bell_ring(&b);
	CHECK(rings(&b, 0));
	bell_fini(&b);
	bell_fini(&b);
}

/* One that rings is held up before it writes, and another overtakes it: the fd must not stay
 * readable, or the sleeper would never sleep again. */
static void who_is_late_wakes_once(void)
{
	const uint64_t one = 1;
	struct bell b;

	CHECK_EQ(bell_init(&b), 0);
	bell_arm(&b);
	CHECK(atomic_exchange(&b.armed, false)); /* the first half of bell_ring */
	bell_disarm(&b);
	bell_arm(&b);
	bell_ring(&b);
	CHECK(rings(&b, 0));
	bell_disarm(&b);
	bell_arm(&b);
	CHECK(!rings(&b, 0));
	CHECK_EQ(write(b.fd, &one, sizeof one), sizeof one); /* the second */
	CHECK(rings(&b, 0));
	bell_disarm(&b);
	bell_arm(&b);
	CHECK(!rings(&b, 0));
	bell_ring(&b);
	CHECK(rings(&b, 0));
	bell_fini(&b);
}

struct work {
	struct bell bell;
	_Atomic unsigned made, seen;
};

static void make_items(void *arg)
{
	struct work *w = arg;

	for (unsigned i = 0; i < ITEMS; i++) {
		atomic_fetch_add_explicit(&w->made, 1, memory_order_release);
		bell_ring(&w->bell);
		/* until the sleeper is about to sleep again, give or take a little */
		while (i % 16 && atomic_load_explicit(&w->seen, memory_order_acquire) <= i)
			sched_yield();
		for (volatile unsigned pause = i * 7919 % 1024; pause; pause--)
			;
	}
}

/* Nothing that was made before the sleeper sleeps is missed: it would sleep to the end. */
static void nothing_is_missed(void)
{
	struct worker worker = {0};
	struct work w = {.made = 0, .seen = 0};
	unsigned sleeps = 0, seen = 0;

	CHECK_EQ(bell_init(&w.bell), 0);
	CHECK_EQ(worker_start(&worker, "maker", make_items, &w), 0);
	while (seen < ITEMS) {
		bell_arm(&w.bell);
		if (atomic_load_explicit(&w.made, memory_order_acquire) == seen) {
			CHECK(rings(&w.bell, 10000));
			sleeps++;
		}
		bell_disarm(&w.bell);
		seen = atomic_load_explicit(&w.made, memory_order_acquire);
		atomic_store_explicit(&w.seen, seen, memory_order_release);
	}
	worker_stop(&worker);
	bell_fini(&w.bell);
	printf("# %u sleeps\n", sleeps);
}

HARNESS_MAIN({"only who armed is woken", only_who_armed_is_woken},
	{"who is late wakes once", who_is_late_wakes_once},
	{"nothing is missed", nothing_is_missed})
