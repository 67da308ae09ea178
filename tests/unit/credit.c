/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/credit: block/credit: each ledger against a naive one, then both against each other.
 */
#include "block/credit.h"
#include "tests/harness.h"

static void first_granted_first_spent(void)
{
	struct credit_book *book;
	uint32_t index = 99;

	CHECK_EQ(credit_book_new(4, &book), 0);
	CHECK_EQ(credit_book_spend(book, &index), -EAGAIN);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){2, 0}, 2), 0);
	CHECK_EQ(credit_book_add(book, NULL, 0), 0);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){3}, 1), 0);
	CHECK_EQ(credit_book_available(book), 3);
	CHECK_EQ(credit_book_spend(book, &index), 0);
	CHECK_EQ(index, 2);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){2, 1}, 2), 0); /* 2 may come again */
	CHECK_EQ(credit_book_available(book), 4);
	for (uint32_t i = 0; i < 4; i++) {
		CHECK_EQ(credit_book_spend(book, &index), 0);
		CHECK_EQ(index, ((uint32_t[]){0, 3, 2, 1})[i]);
	}
	CHECK_EQ(credit_book_spend(book, &index), -EAGAIN);
	credit_book_free(book);
	credit_book_free(NULL);
}

static void a_bad_grant_is_refused_whole(void)
{
	struct credit_book *book;
	uint32_t index;

	CHECK_EQ(credit_book_new(4, &book), 0);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){1}, 1), 0);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){0, 2, 4}, 3), -ERANGE);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){0, UINT32_MAX}, 2), -ERANGE);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){0, 2, 1}, 3), -EEXIST);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){0, 2, 0}, 3), -EEXIST);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){0, 2, 3, 0, 2, 3, 0, 2}, 8), -EEXIST);
	CHECK_EQ(credit_book_available(book), 1);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){0, 2, 3}, 3), 0);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){0}, 1), -EEXIST);
	CHECK_EQ(credit_book_available(book), 4);
	CHECK_EQ(credit_book_spend(book, &index), 0);
	CHECK_EQ(index, 1);
	credit_book_free(book);

	CHECK_EQ(credit_book_new(0, &book), 0);
	CHECK_EQ(credit_book_add(book, (uint32_t[]){0}, 1), -ERANGE);
	CHECK_EQ(credit_book_spend(book, &index), -EAGAIN);
	credit_book_free(book);
}

static void the_book_is_a_plain_list_of_indices(void)
{
	uint64_t seed = harness_seed();

	for (int round = 0; round < 200; round++) {
		uint32_t blocks = 1 + (uint32_t)(harness_random(&seed) % 12);
		uint32_t list[12], held = 0;
		struct credit_book *book;

		CHECK_EQ(credit_book_new(blocks, &book), 0);
		for (int step = 0; step < 200; step++) {
			uint32_t index, grant[6], n = (uint32_t)(harness_random(&seed) % 6);
			int expected = 0;

			if (harness_random(&seed) % 2) {
				CHECK_EQ(credit_book_spend(book, &index), held ? 0 : -EAGAIN);
				if (held) {
					CHECK_EQ(index, list[0]);
					memmove(list, list + 1, --held * sizeof list[0]);
				}
				continue;
			}
			for (uint32_t i = 0; i < n; i++) {
				grant[i] = (uint32_t)(harness_random(&seed) % (blocks + 1));
				if (expected)
					continue;
				if (grant[i] >= blocks)
					expected = -ERANGE;
				for (uint32_t j = 0; j < held; j++)
					if (list[j] == grant[i])
						expected = -EEXIST;
				for (uint32_t j = 0; j < i; j++)
					if (grant[j] == grant[i])
						expected = -EEXIST;
			}
			CHECK_EQ(credit_book_add(book, grant, n), expected);
			for (uint32_t i = 0; i < n && !expected; i++)
				list[held++] = grant[i];
			CHECK_EQ(credit_book_available(book), held);
		}
		credit_book_free(book);
	}
}

static void the_window_doubles_each_round_trip(void)
{
	struct credit_meter m;
	uint32_t window = 2;

	credit_meter_init(&m, 100, 2);
	CHECK_EQ(m.granted, 0);
	CHECK_EQ(credit_meter_grant(&m, 100), 2);
	while (window < 100) {
		uint32_t next = 2 * window < 100 ? 2 * window : 100, given = 0;

		for (uint32_t i = 0; i < window; i++) {
			credit_meter_landed(&m);
			given += credit_meter_grant(&m, 100 - m.granted);
		}
		if (next == 100) { /* the window is open: the last few wait until they are worth a
				      message */
			CHECK(given > 75 && m.granted == given);
			break;
		}
		CHECK_EQ(given, next);
		CHECK_EQ(m.granted, next);
		window = next;
	}
	/* from now on each landed block gives one, its own, a quarter of the window at a time */
	for (int i = 0; i < 1000; i++) {
		uint32_t before = m.granted - 1, given;

		credit_meter_landed(&m);
		given = credit_meter_grant(&m, 100 - m.granted);
		CHECK(given ? m.granted == 100 && given >= 25 : before > 75 || m.granted == before);
		CHECK(m.granted >= 75);
	}
	while (m.granted > 60) /* all given and used: who asks gets what there is */
		credit_meter_landed(&m);
	credit_meter_asked(&m);
	CHECK_EQ(credit_meter_grant(&m, 3), 3);
}

static void the_first_grant_is_bounded_by_the_pool(void)
{
	struct credit_meter m;

	credit_meter_init(&m, 8, 100);
	CHECK_EQ(credit_meter_grant(&m, 3), 3);
	CHECK_EQ(credit_meter_grant(&m, 0), 0);
	CHECK_EQ(credit_meter_grant(&m, 8), 5);
	CHECK_EQ(credit_meter_grant(&m, 8), 0);
	credit_meter_init(&m, 8, UINT32_MAX);
	CHECK_EQ(credit_meter_grant(&m, 8), 8);
}

static void who_asks_is_owed_one(void)
{
	struct credit_meter m;

	credit_meter_init(&m, 8, 0);
	CHECK_EQ(credit_meter_grant(&m, 8), 0);
	credit_meter_asked(&m);
	CHECK(m.asked);
	CHECK_EQ(credit_meter_grant(&m, 0), 0);
	CHECK(m.asked);         /* not answered yet */
	credit_meter_asked(&m); /* asking again does not add up */
	CHECK_EQ(credit_meter_grant(&m, 8), 1);
	CHECK(!m.asked);
	credit_meter_init(&m, 1, 1);
	CHECK_EQ(credit_meter_grant(&m, 1), 1);
	credit_meter_asked(&m); /* all is granted already: there is nothing more to owe */
	CHECK_EQ(m.debt, 0);
	credit_meter_landed(&m);
	CHECK_EQ(credit_meter_grant(&m, 1), 1);
	CHECK(!m.asked);
}

static void grants_wait_for_free_blocks(void)
{
	struct credit_meter m;

	credit_meter_init(&m, 4, 4);
	CHECK_EQ(credit_meter_grant(&m, 4), 4);
	for (int i = 0; i < 4; i++)
		credit_meter_landed(&m);
	CHECK_EQ(m.debt, 4);
	CHECK_EQ(credit_meter_grant(&m, 0), 0); /* they are being drained */
	CHECK_EQ(credit_meter_grant(&m, 1), 1);
	CHECK_EQ(credit_meter_grant(&m, 2), 2);
	CHECK_EQ(m.granted, 3);
	CHECK_EQ(m.debt, 1);
}

/*
 * A sink and a source at random speeds: no index is ever refused, granted never passes the pool,
 * and when everything rests something can always move (no deadlock).
 */
static void source_and_sink_never_lock_up(void)
{
	uint64_t seed = harness_seed();

	for (int round = 0; round < 100; round++) {
		enum { MOST = 16 };
		uint32_t blocks = 1 + (uint32_t)(harness_random(&seed) % MOST);
		uint32_t free_list[MOST], free_count = blocks;
		uint32_t flying[MOST], flying_count = 0, draining[MOST], draining_count = 0;
		uint64_t landed = 0;
		struct credit_book *book;
		struct credit_meter m;

		credit_meter_init(&m, blocks, 1 + (uint32_t)(harness_random(&seed) % blocks));
		CHECK_EQ(credit_book_new(blocks, &book), 0);
		for (uint32_t i = 0; i < blocks; i++)
			free_list[i] = i;
		for (int step = 0; step < 2000; step++) {
			uint32_t index;

			switch (harness_random(&seed) % 4) {
			case 0: { /* the sink grants */
				uint32_t n = credit_meter_grant(&m, free_count);

				CHECK(n <= free_count);
				free_count -= n;
				CHECK_EQ(credit_book_add(book, free_list + free_count, n), 0);
				break;
			}
			case 1: /* the source sends */
				if (!credit_book_spend(book, &index))
					flying[flying_count++] = index;
				else if (!m.asked)
					credit_meter_asked(&m);
				break;
			case 2: /* one lands */
				if (flying_count) {
					draining[draining_count++] = flying[--flying_count];
					credit_meter_landed(&m);
					landed++;
				}
				break;
			default: /* one is drained */
				if (draining_count)
					free_list[free_count++] = draining[--draining_count];
			}
			CHECK_EQ(m.granted, credit_book_available(book) + flying_count);
			CHECK(m.granted + m.debt <= blocks);
			CHECK_EQ(free_count + m.granted + draining_count, blocks);
			CHECK(m.granted || m.debt || draining_count || m.asked || free_count);
		}
		/* 2,000 steps of 4 kinds: a stalled pair would be stuck at a few */
		CHECK(landed > 100);
		credit_book_free(book);
	}
}

HARNESS_MAIN({"first_granted_first_spent", first_granted_first_spent},
	{"a_bad_grant_is_refused_whole", a_bad_grant_is_refused_whole},
	{"the_book_is_a_plain_list_of_indices", the_book_is_a_plain_list_of_indices},
	{"the_window_doubles_each_round_trip", the_window_doubles_each_round_trip},
	{"the_first_grant_is_bounded_by_the_pool", the_first_grant_is_bounded_by_the_pool},
	{"who_asks_is_owed_one", who_asks_is_owed_one},
	{"grants_wait_for_free_blocks", grants_wait_for_free_blocks},
	{"source_and_sink_never_lock_up", source_and_sink_never_lock_up})
