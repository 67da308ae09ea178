/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/wakeup: base/wakeup.
 */
#include "base/wakeup.h"
#include "base/worker.h"
#include "tests/harness.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#define ITEMS 20000u

static bool rings(const struct wakeup *b, int timeout_ms)
{
	struct pollfd fd = {b->fd, POLLIN, 0};

	return poll(&fd, 1, timeout_ms) == 1;
}

static void only_who_armed_is_woken(void)
{
	struct wakeup b;

	CHECK_EQ(wakeup_init(&b), 0);
	wakeup_signal(&b);
	CHECK(!rings(&b, 0));
	for (int i = 0; i < 3; i++) {
		wakeup_arm(&b);
		CHECK(!rings(&b, 0));
		wakeup_signal(&b);
		wakeup_signal(&b);
		CHECK(rings(&b, 0));
		wakeup_disarm(&b);
	}
	/* armed and awake again before anybody rang; twice without having slept */
	wakeup_arm(&b);
	wakeup_disarm(&b);
	wakeup_signal(&b);
	wakeup_arm(&b);
	CHECK(!rings(&b, 0));
	wakeup_signal(&b);
	wakeup_arm(&b);
	CHECK(!rings(&b, 0));
	wakeup_signal(&b);
	CHECK(rings(&b, 0));
	wakeup_fini(&b);
	wakeup_fini(&b);
}

/* One that rings is held up before it writes, and another overtakes it: the fd must not stay
 * readable, or the sleeper would never sleep again. */
static void who_is_late_wakes_once(void)
{
	const uint64_t one = 1;
	struct wakeup b;

	CHECK_EQ(wakeup_init(&b), 0);
	wakeup_arm(&b);
	CHECK(atomic_exchange(&b.armed, false)); /* the first half of wakeup_signal */
	wakeup_disarm(&b);
	wakeup_arm(&b);
	wakeup_signal(&b);
	CHECK(rings(&b, 0));
	wakeup_disarm(&b);
	wakeup_arm(&b);
	CHECK(!rings(&b, 0));
	CHECK_EQ(write(b.fd, &one, sizeof one), sizeof one); /* the second */
	CHECK(rings(&b, 0));
	wakeup_disarm(&b);
	wakeup_arm(&b);
	CHECK(!rings(&b, 0));
	wakeup_signal(&b);
	CHECK(rings(&b, 0));
	wakeup_fini(&b);
}

struct work {
	struct wakeup wakeup;
	_Atomic unsigned made, seen;
};

static void make_items(void *arg)
{
	struct work *w = arg;

	for (unsigned i = 0; i < ITEMS; i++) {
		atomic_fetch_add_explicit(&w->made, 1, memory_order_release);
		wakeup_signal(&w->wakeup);
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

	CHECK_EQ(wakeup_init(&w.wakeup), 0);
	CHECK_EQ(worker_start(&worker, "maker", make_items, &w), 0);
	while (seen < ITEMS) {
		wakeup_arm(&w.wakeup);
		if (atomic_load_explicit(&w.made, memory_order_acquire) == seen) {
			CHECK(rings(&w.wakeup, 10000));
			sleeps++;
		}
		wakeup_disarm(&w.wakeup);
		seen = atomic_load_explicit(&w.made, memory_order_acquire);
		atomic_store_explicit(&w.seen, seen, memory_order_release);
	}
	worker_stop(&worker);
	wakeup_fini(&w.wakeup);
	printf("# %u sleeps\n", sleeps);
}

HARNESS_MAIN({"only who armed is woken", only_who_armed_is_woken},
	{"who is late wakes once", who_is_late_wakes_once},
	{"nothing is missed", nothing_is_missed})
