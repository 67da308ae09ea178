/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/end_null.c: the end without bytes, and what a queue promises whatever the end.
 */
#include "tests/harness.h"

#include "end/end.h"
#include "tests/scratch.h"

#define BLOCK 65536u

static void null_reads_size_then_short(void)
{
	static const struct {
		uint64_t offset;
		uint32_t want, get;
	} rows[] = {
		{0, BLOCK, BLOCK},
		{BLOCK, BLOCK, BLOCK},
		{2 * BLOCK, BLOCK, 100},
		{2 * BLOCK + 100, BLOCK, 0},
		{UINT64_MAX, BLOCK, 0},
		{2 * BLOCK + 90, 10, 10},
		{0, 0, 0},
	};
	struct block *block = scratch_block(BLOCK), *done;
	struct end_queue *q;
	struct end *end;

	CHECK_EQ(end_queue_new(1, &q), 0);
	CHECK_EQ(end_null_open(2 * BLOCK + 100, &end), 0);
	CHECK(!end_is_stream(end));
	CHECK(!end_is_direct(end));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		block->offset = rows[i].offset;
		block->length = rows[i].want;
		block->error = -EIO;
		end_submit(q, end, block);
		CHECK_EQ(end_outstanding(q), 1);
		CHECK_EQ(end_reap(q, &done, 1, true), 1);
		CHECK(done == block);
		CHECK_EQ(block->length, rows[i].get);
		CHECK_EQ(block->error, 0);
		CHECK_EQ(end_outstanding(q), 0);
	}
	CHECK_EQ(end_sync(end), 0);
	CHECK_EQ(end_free(end), 0);
	end_queue_free(q);
	scratch_block_free(block);
}

static void queue_hands_out_in_order_and_at_most_max(void)
{
	struct block blocks[5], *done[5];
	struct end_queue *q;
	struct end *end;

	memset(blocks, 0, sizeof(blocks));
	CHECK_EQ(end_queue_new(0, &q), -EINVAL);
	CHECK_EQ(end_queue_new(5, &q), 0);
	CHECK_EQ(end_null_open(UINT64_MAX, &end), 0);
	CHECK_EQ(end_reap(q, done, 5, true), 0);
	CHECK_EQ(end_reap(q, done, 5, false), 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 5; i++) {
			blocks[i].length = 1000;
			end_submit(q, end, &blocks[i]);
		}
		CHECK_EQ(end_reap(q, done, 0, true), 0);
		CHECK_EQ(end_reap(q, done, 2, false), 2);
		CHECK(done[0] == &blocks[0] && done[1] == &blocks[1]);
		CHECK_EQ(end_outstanding(q), 3);
		CHECK_EQ(end_reap(q, done, 5, true), 3);
		CHECK(done[0] == &blocks[2] && done[2] == &blocks[4]);
	}
	end_queue_cancel(q); /* is about streams only */
	end_submit(q, end, &blocks[0]);
	CHECK_EQ(end_reap(q, done, 5, true), 1);
	CHECK_EQ(done[0]->error, 0);
	CHECK_EQ(end_free(end), 0);
	CHECK_EQ(end_free(NULL), 0);
	end_queue_free(q);
	end_queue_free(NULL);
}

HARNESS_MAIN({"null_reads_size_then_short", null_reads_size_then_short},
	{"queue_hands_out_in_order_and_at_most_max", queue_hands_out_in_order_and_at_most_max})
