/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/queue: base/queue, alone and between threads.
 */
#include "base/queue.h"
#include "tests/aborts.h"
#include "tests/harness.h"

#include <pthread.h>
#include <stdatomic.h>

static void keeps_order_around_the_ring(void)
{
	struct queue *q;
	int items[100], pushed = 0, popped = 0;
	uint64_t seed = harness_seed();

	CHECK_EQ(queue_new(7, &q), 0);
	while (popped < 100) {
		void *batch[9];
		size_t n = harness_random(&seed) % 4;

		for (size_t i = 0; i < n; i++)
			batch[i] = &items[(pushed + (int)i) % 100];
		if (pushed - popped + (int)n <= 7) {
			CHECK_EQ(queue_push(q, batch, n), 0);
			pushed += (int)n;
		}
		n = queue_pop(q, batch, harness_random(&seed) % 9, false);
		for (size_t i = 0; i < n; i++, popped++)
			CHECK(batch[i] == &items[popped % 100]);
	}
	queue_free(q);
}

static void takes_its_bound_and_no_more(void)
{
	struct queue *q;
	void *items[3] = {items, items, items}, *got[4];

	CHECK_EQ(queue_new(3, &q), 0);
	CHECK_EQ(queue_push(q, items, 3), 0);
	CHECK_EQ(queue_pop(q, got, 4, true), 3);
	CHECK_EQ(queue_pop(q, got, 4, false), 0);
	queue_free(q);
}

static void overfill(void *arg)
{
	void *items[4] = {NULL, NULL, NULL, NULL};

	queue_push(arg, items, 4);
}

static void a_push_into_a_full_queue_is_a_bug(void)
{
	struct queue *q;

	CHECK_EQ(queue_new(3, &q), 0);
	CHECK(aborts(overfill, q));
	queue_free(q);
}

static void a_close_refuses_pushes_and_hands_out_the_rest(void)
{
	struct queue *q;
	int a, b;
	void *items[2] = {&a, &b}, *got[2];

	CHECK_EQ(queue_new(4, &q), 0);
	CHECK_EQ(queue_push(q, items, 2), 0);
	queue_close(q);
	queue_close(q);
	CHECK_EQ(queue_push(q, items, 1), -EPIPE);
	CHECK_EQ(queue_push(q, items, 0), -EPIPE);
	CHECK_EQ(queue_pop(q, got, 1, true), 1);
	CHECK(got[0] == &a);
	CHECK_EQ(queue_pop(q, got, 2, true), 1);
	CHECK(got[0] == &b);
	CHECK_EQ(queue_pop(q, got, 2, true), 0);
	CHECK_EQ(queue_pop(q, got, 2, false), 0);
	queue_free(q);
	queue_free(NULL);
}

static void an_impossible_bound_is_refused(void)
{
	struct queue *q;

	CHECK_EQ(queue_new(SIZE_MAX, &q), -ENOMEM);
	CHECK_EQ(queue_new(SIZE_MAX / sizeof(void *), &q), -ENOMEM);
}

struct waiter {
	struct queue *queue;
	size_t got;
	void *item;
	atomic_int *awake;
};

static void *wait_for_one(void *arg)
{
	struct waiter *w = arg;

	w->got = queue_pop(w->queue, &w->item, 1, true);
	atomic_fetch_add(w->awake, 1);
	return NULL;
}

static void one_push_of_many_serves_every_waiter(void)
{
	enum { WAITERS = 4 };
	struct queue *q;
	pthread_t threads[WAITERS];
	struct waiter waiters[WAITERS];
	int values[WAITERS];
	void *items[WAITERS];
	bool seen[WAITERS] = {false};
	atomic_int awake = 0;

	CHECK_EQ(queue_new(WAITERS, &q), 0);
	for (int i = 0; i < WAITERS; i++) {
		waiters[i] = (struct waiter){.queue = q, .awake = &awake};
		items[i] = &values[i];
		CHECK_EQ(pthread_create(&threads[i], NULL, wait_for_one, &waiters[i]), 0);
	}
	CHECK_EQ(queue_push(q, items, WAITERS), 0);
	for (int i = 0; i < WAITERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < WAITERS; i++) {
		CHECK_EQ(waiters[i].got, 1);
		seen[(int *)waiters[i].item - values] = true;
	}
	for (int i = 0; i < WAITERS; i++)
		CHECK(seen[i]);
	queue_free(q);
}

static void a_close_wakes_every_waiter(void)
{
	enum { WAITERS = 3 };
	struct queue *q;
	pthread_t threads[WAITERS];
	struct waiter waiters[WAITERS];
	atomic_int awake = 0;

	CHECK_EQ(queue_new(1, &q), 0);
	for (int i = 0; i < WAITERS; i++) {
		waiters[i] = (struct waiter){.queue = q, .got = 9, .awake = &awake};
		CHECK_EQ(pthread_create(&threads[i], NULL, wait_for_one, &waiters[i]), 0);
	}
	CHECK_EQ(atomic_load(&awake), 0);
	queue_close(q);
	for (int i = 0; i < WAITERS; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(waiters[i].got, 0);
	}
	queue_free(q);
}

/* ---- many pushers, many poppers ---- */

enum { PUSHERS = 3, POPPERS = 3, EACH = 20000 };

struct traffic {
	struct queue *queue;
	int numbers[PUSHERS][EACH];
	atomic_int seen[PUSHERS][EACH];
	atomic_int disorder;
};

struct party {
	struct traffic *traffic;
	int number;
	uint64_t seed;
};

static void *push_all(void *arg)
{
	struct party *p = arg;
	void *batch[8];

	for (int sent = 0; sent < EACH;) {
		size_t n = 1 + harness_random(&p->seed) % 8;

		if (n > (size_t)(EACH - sent))
			n = (size_t)(EACH - sent);
		for (size_t i = 0; i < n; i++)
			batch[i] = &p->traffic->numbers[p->number][sent++];
		if (queue_push(p->traffic->queue, batch, n))
			return arg;
	}
	return NULL;
}

static void *pop_all(void *arg)
{
	struct party *p = arg;
	struct traffic *t = p->traffic;
	int last[PUSHERS];
	void *batch[8];
	size_t n;

	for (int i = 0; i < PUSHERS; i++)
		last[i] = -1;
	while ((n = queue_pop(t->queue, batch, 1 + harness_random(&p->seed) % 8, true))) {
		for (size_t i = 0; i < n; i++) {
			int at = (int)((int *)batch[i] - &t->numbers[0][0]);
			int from = at / EACH, number = at % EACH;

			if (number <= last[from])
				atomic_fetch_add(&t->disorder, 1);
			last[from] = number;
			atomic_fetch_add(&t->seen[from][number], 1);
		}
	}
	return NULL;
}

static void nothing_is_lost_doubled_or_reordered_between_threads(void)
{
	static struct traffic t;
	pthread_t pushers[PUSHERS], poppers[POPPERS];
	struct party push[PUSHERS], pop[POPPERS];
	uint64_t seed = harness_seed();

	CHECK_EQ(queue_new((size_t)PUSHERS * EACH, &t.queue), 0);
	for (int i = 0; i < POPPERS; i++) {
		pop[i] = (struct party){&t, i, harness_random(&seed)};
		CHECK_EQ(pthread_create(&poppers[i], NULL, pop_all, &pop[i]), 0);
	}
	for (int i = 0; i < PUSHERS; i++) {
		push[i] = (struct party){&t, i, harness_random(&seed)};
		CHECK_EQ(pthread_create(&pushers[i], NULL, push_all, &push[i]), 0);
	}
	for (int i = 0; i < PUSHERS; i++) {
		void *failed;

		pthread_join(pushers[i], &failed);
		CHECK(!failed);
	}
	queue_close(t.queue);
	for (int i = 0; i < POPPERS; i++)
		pthread_join(poppers[i], NULL);
	CHECK_EQ(t.disorder, 0);
	for (int i = 0; i < PUSHERS; i++)
		for (int j = 0; j < EACH; j++)
			CHECK_EQ(t.seen[i][j], 1);
	queue_free(t.queue);
}

/* A block goes round: one thread hands it on, the other hands it back, with what was written in. */
struct round_trip {
	struct queue *there, *back;
};

static void *echo(void *arg)
{
	struct round_trip *r = arg;
	void *item;

	while (queue_pop(r->there, &item, 1, true)) {
		++*(long *)item;
		if (queue_push(r->back, &item, 1))
			break;
	}
	queue_close(r->back);
	return NULL;
}

static void a_hand_over_is_a_barrier(void)
{
	struct round_trip r;
	pthread_t thread;
	long value = 0;
	void *item = &value;

	CHECK_EQ(queue_new(1, &r.there), 0);
	CHECK_EQ(queue_new(1, &r.back), 0);
	CHECK_EQ(pthread_create(&thread, NULL, echo, &r), 0);
	for (long i = 0; i < 2000; i++) {
		CHECK_EQ(value, 2 * i);
		value++;
		CHECK_EQ(queue_push(r.there, &item, 1), 0);
		CHECK_EQ(queue_pop(r.back, &item, 1, true), 1);
	}
	queue_close(r.there);
	CHECK_EQ(queue_pop(r.back, &item, 1, true), 0);
	pthread_join(thread, NULL);
	queue_free(r.there);
	queue_free(r.back);
}

HARNESS_MAIN({"keeps_order_around_the_ring", keeps_order_around_the_ring},
	{"takes_its_bound_and_no_more", takes_its_bound_and_no_more},
	{"a_push_into_a_full_queue_is_a_bug", a_push_into_a_full_queue_is_a_bug},
	{"a_close_refuses_pushes_and_hands_out_the_rest",
		a_close_refuses_pushes_and_hands_out_the_rest},
	{"an_impossible_bound_is_refused", an_impossible_bound_is_refused},
	{"one_push_of_many_serves_every_waiter", one_push_of_many_serves_every_waiter},
	{"a_close_wakes_every_waiter", a_close_wakes_every_waiter},
	{"nothing_is_lost_doubled_or_reordered_between_threads",
		nothing_is_lost_doubled_or_reordered_between_threads},
	{"a_hand_over_is_a_barrier", a_hand_over_is_a_barrier})
