/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a source looks away, and from what.
 */
#include "../harness.h"

#include "engine/moderation.h"

static void few_blocks_are_watched(void)
{
	for (uint32_t blocks = 0; blocks < MODERATION_BLOCKS_MIN; blocks++)
		for (uint32_t out = 0; out <= blocks; out++)
			CHECK_EQ(moderation_ns(blocks, out, 1000000), 0);
	CHECK(moderation_ns(MODERATION_BLOCKS_MIN, MODERATION_BLOCKS_MIN, 1000000) > 0);
}

static void free_blocks_are_not_left_lying(void)
{
	CHECK_EQ(moderation_ns(128, 0, 10000), 0);
	CHECK_EQ(moderation_ns(128, 95, 10000), 0);
	CHECK_EQ(moderation_ns(128, 96, 10000), 160000);
	CHECK_EQ(moderation_ns(128, 128, 10000), 160000);
}

/* Whatever comes back meanwhile, more than half stay under way; and nothing waits for long. */
static void it_is_short(void)
{
	for (uint32_t blocks = MODERATION_BLOCKS_MIN; blocks <= 1024; blocks++) {
		for (uint64_t gap = 1; gap; gap <<= 1) {
			uint32_t out = blocks - blocks / 4;
			uint64_t ns = moderation_ns(blocks, out, gap);

			CHECK(ns <= MODERATION_NS_MAX);
			CHECK(!ns || ns >= MODERATION_NS_MIN);
			CHECK(out - ns / gap > blocks / 2);
		}
	}
	CHECK_EQ(moderation_ns(128, 128, 0), 0);
	CHECK_EQ(moderation_ns(128, 128, 1000), 0); /* less than a sleep takes */
	CHECK_EQ(moderation_ns(128, 128, UINT64_MAX), MODERATION_NS_MAX);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"few blocks are watched", few_blocks_are_watched},
		{"free blocks are not left lying", free_blocks_are_not_left_lying},
		{"it is short", it_is_short},
		{NULL, NULL},
	};

	return harness_run(cases, argc, argv);
}
