/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/serve/deadline against a plain array: starting, starting again, stopping, moving between
 * lists.
 */
#include "rftpd/serve/deadline.h"
#include "tests/harness.h"

#define COUNT 32

static void a_list_without_length_never_runs(void)
{
	struct deadline_list list, other;
	struct deadline d = {0};

	deadline_list_init(&list, 0);
	deadline_list_init(&other, 5);
	deadline_start(&other, &d, 1);
	CHECK_EQ(deadline_first_ns(&other), 6);
	deadline_start(&list, &d, 1); /* leaves the other */
	CHECK(deadline_first_ns(&list) == UINT64_MAX && deadline_first_ns(&other) == UINT64_MAX);
	CHECK(!deadline_expired(&list, UINT64_MAX) && !deadline_expired(&other, UINT64_MAX));
	deadline_stop(&d);
}

static void as_an_array_would_do_it(void)
{
	struct deadline_list lists[2];
	struct deadline d[COUNT] = {0};
	uint64_t model[COUNT] = {0}, now = 1000, rng = harness_seed();
	int in[COUNT];

	deadline_list_init(&lists[0], 10);
	deadline_list_init(&lists[1], 35);
	for (int i = 0; i < COUNT; i++) {
		d[i].owner = &d[i];
		in[i] = -1;
	}
	for (int step = 0; step < 20000; step++) {
		int i = (int)(harness_random(&rng) % COUNT), l = (int)(harness_random(&rng) % 2);

		now += harness_random(&rng) % 3;
		switch (harness_random(&rng) % 3) {
		case 0:
			deadline_start(&lists[l], &d[i], now);
			in[i] = l;
			model[i] = now + lists[l].length_ns;
			break;
		case 1:
			deadline_stop(&d[i]);
			in[i] = -1;
			break;
		default:
			for (struct deadline *over; (over = deadline_expired(&lists[l], now));) {
				int k = (int)(over - d);

				CHECK(over->owner == over && in[k] == l && model[k] <= now);
				in[k] = -1;
			}
			for (int k = 0; k < COUNT; k++)
				CHECK(in[k] != l || model[k] > now);
			break;
		}
		for (l = 0; l < 2; l++) {
			uint64_t first = UINT64_MAX;

			for (int k = 0; k < COUNT; k++)
				if (in[k] == l && model[k] < first)
					first = model[k];
			CHECK(deadline_first_ns(&lists[l]) == first);
		}
	}
}

static void another_length(void)
{
	struct deadline_list list;
	struct deadline a = {0}, b = {0};

	deadline_list_init(&list, 100);
	deadline_start(&list, &a, 0);
	deadline_start(&list, &b, 50);
	deadline_list_change(&list, 30);
	CHECK_EQ(deadline_first_ns(&list), 30);
	CHECK(deadline_expired(&list, 79) == &a && !deadline_expired(&list, 79));
	deadline_list_change(&list, 1000);
	CHECK_EQ(deadline_first_ns(&list), 1050);
	deadline_list_change(&list, 0);
	CHECK(deadline_first_ns(&list) == UINT64_MAX && !b.list);
	deadline_start(&list, &b, 50);
	CHECK(!b.list);
}

HARNESS_MAIN({"a list without length never runs", a_list_without_length_never_runs},
	{"as an array would do it", as_an_array_would_do_it}, {"another length", another_length})
