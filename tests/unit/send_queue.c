/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/send_queue: what a completion tells of, when a posting is to be signalled, and that
 * the accounts are right whatever is posted in whatever order.
 */
#include "../harness.h"

#include "engine/send_queue.h"

#define SIZE 32u

static void a_completion_tells_of_all_before_it(void)
{
	struct send_queue q;

	CHECK_EQ(send_queue_init(&q, SIZE), 0);
	CHECK_EQ(send_queue_room(&q), SIZE);
	send_queue_post(&q, (struct send_count){2, 1}, false);
	send_queue_post(&q, (struct send_count){1, 0}, false);
	send_queue_post(&q, (struct send_count){3, 2}, true);
	send_queue_post(&q, (struct send_count){4, 3}, false);
	CHECK_EQ(send_queue_room(&q), SIZE - 10);
	CHECK_EQ(q.silent.blocks, 3);
	CHECK_EQ(send_queue_complete(&q), 3);
	CHECK_EQ(send_queue_room(&q), SIZE - 4);
	/* a request without a block tells of those before it, too: a READ, or a flush */
	send_queue_post(&q, (struct send_count){1, 0}, true);
	CHECK_EQ(q.silent.blocks, 0);
	CHECK_EQ(send_queue_complete(&q), 3);
	CHECK_EQ(send_queue_room(&q), SIZE);
	send_queue_fini(&q);
}

static void it_is_time_by_requests_or_by_blocks(void)
{
	const struct send_count by_blocks = {UINT32_MAX, 4}, by_requests = {6, UINT32_MAX};
	const struct send_count two = {2, 1};
	struct send_queue q;

	CHECK_EQ(send_queue_init(&q, SIZE), 0);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 3; i++) {
			CHECK_EQ(send_queue_due(&q, two, by_requests), i == 2);
			CHECK(!send_queue_due(&q, two, by_blocks));
			send_queue_post(&q, two, false);
		}
		CHECK(send_queue_due(&q, two, by_blocks));
		CHECK(send_queue_due(&q, (struct send_count){5, 7}, by_blocks));
		send_queue_post(&q, two, true);
		CHECK_EQ(send_queue_complete(&q), 4);
	}
	send_queue_fini(&q);
}

/* Against a list of all that was posted. */
static void the_accounts_are_right(void)
{
	uint64_t random = harness_seed();
	uint32_t posted = 0, done = 0, silent_requests = 0, silent_blocks = 0;
	struct send_count spans[1 << 14];
	uint32_t head = 0, tail = 0, out = 0;
	struct send_queue q;

	CHECK_EQ(send_queue_init(&q, SIZE), 0);
	while (tail < sizeof spans / sizeof *spans) {
		struct send_count n = {.requests = 1 + (uint32_t)(harness_random(&random) % 4),
			.blocks = (uint32_t)(harness_random(&random) % 3)};
		bool signalled = harness_random(&random) % 3 == 0;

		CHECK_EQ(send_queue_room(&q), SIZE - out);
		/* the last requests of a queue are kept for a signalled one, or nothing more goes
		 */
		if (n.requests + 4 <= SIZE - out || (signalled && n.requests <= SIZE - out)) {
			send_queue_post(&q, n, signalled);
			posted += n.blocks;
			out += n.requests;
			silent_requests += n.requests;
			silent_blocks += n.blocks;
			CHECK_EQ(q.silent.requests, signalled ? 0 : silent_requests);
			if (signalled) {
				spans[tail++] = (struct send_count){silent_requests, silent_blocks};
				silent_requests = silent_blocks = 0;
			}
		} else if (head < tail) {
			CHECK_EQ(send_queue_complete(&q), spans[head].blocks);
			done += spans[head].blocks;
			out -= spans[head++].requests;
		}
	}
	CHECK(done <= posted);
	for (; head < tail; head++) {
		CHECK_EQ(send_queue_complete(&q), spans[head].blocks);
		done += spans[head].blocks;
	}
	CHECK_EQ(done + silent_blocks, posted);
	CHECK_EQ(send_queue_room(&q), SIZE - silent_requests);
	send_queue_fini(&q);
}

HARNESS_MAIN({"a completion tells of all before it", a_completion_tells_of_all_before_it},
	{"it is time by requests or by blocks", it_is_time_by_requests_or_by_blocks},
	{"the accounts are right", the_accounts_are_right})
