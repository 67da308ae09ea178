/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/plan: what a transfer chooses from sizes, round trip, CPUs and limits.
 */
#include "../harness.h"

#include "block/block.h"
#include "session/channel_count.h"
#include "transfer/plan.h"

#define UNKNOWN UINT64_MAX

static const struct plan_facts usual = {
	.max_block = BLOCK_BYTES_MAX,
	.max_depth = 1024,
	.open_channels = 2,
	.window_max_bytes = 512ull << 20,
	.largest_bytes = 4ull << 30,
	.total_bytes = 4ull << 30,
	.rtt_ns = 50000,
	.cpus = 2,
};

static void local_transfers_stay_in_cache(void)
{
	struct plan plan;

	plan_make(&usual, &plan);
	CHECK_EQ(plan.block, 512 << 10);
	CHECK_EQ((uint64_t)plan.block * plan.depth, 8 << 20);
	CHECK(plan.source_blocks < plan.depth);
	CHECK_EQ(plan.channels, 2);
	CHECK_EQ(plan.workers, 1);
}

/* The source has as many bytes in hand with small blocks as with the usual ones. */
static void small_blocks_are_more(void)
{
	struct plan_facts facts = usual;
	struct plan plan, small;

	plan_make(&facts, &plan);
	facts.block = 64 << 10;
	plan_make(&facts, &small);
	CHECK_EQ(small.block, 64 << 10);
	CHECK_EQ((uint64_t)small.source_blocks * small.block,
		(uint64_t)plan.source_blocks * plan.block);
	facts.block = 4 << 20;
	facts.depth = 100;
	plan_make(&facts, &plan);
	CHECK_EQ(plan.source_blocks, 12);
}

static void a_long_link_gets_its_window(void)
{
	struct plan_facts facts = usual;
	struct plan plan;

	facts.rtt_ns = 50000000; /* 50 ms at 40 Gb/s are 250 MB, twice */
	plan_make(&facts, &plan);
	CHECK((uint64_t)plan.block * plan.depth >= 470ull << 20);
	CHECK((uint64_t)plan.block * plan.depth <= facts.window_max_bytes);
	facts.delivered = true; /* blocks come back to the source a round trip later */
	plan_make(&facts, &plan);
	CHECK_EQ(plan.source_blocks, plan.depth);
}

static void small_files_share_blocks(void)
{
	struct plan_facts facts = usual;
	struct plan plan;

	facts.largest_bytes = 10000;
	facts.total_bytes = 20000000;
	plan_make(&facts, &plan);
	CHECK_EQ(plan.block, 512 << 10);
	CHECK(plan.depth >= 16);
	facts.total_bytes = 20000;
	plan_make(&facts, &plan);
	CHECK_EQ(plan.block, BLOCK_BYTES_MIN);
	facts.largest_bytes = facts.total_bytes = 100000; /* one file: two blocks would do */
	plan_make(&facts, &plan);
	CHECK_EQ(plan.block, 102400);
	CHECK(plan.depth <= 4);
}

static void a_feed_has_two_blocks_for_each_stream(void)
{
	static const unsigned streams[] = {1, 12, 255};
	struct plan_facts facts = usual;
	struct plan plan;

	facts.largest_bytes = facts.total_bytes = UNKNOWN;
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
		facts.streams = streams[i];
		plan_make(&facts, &plan);
		CHECK(plan.source_blocks > 2 * streams[i]);
		CHECK((uint64_t)plan.source_blocks * plan.block <= 65ull << 20);
		CHECK(plan.block <= 512 << 10 && plan.block >= BLOCK_BYTES_MIN);
	}
	facts.window_max_bytes = 8 << 20; /* little memory: fewer, and none waits for ever */
	plan_make(&facts, &plan);
	CHECK((uint64_t)plan.source_blocks * plan.block <= 8 << 20);
	facts.block = 900 << 10; /* as asked for */
	plan_make(&facts, &plan);
	CHECK_EQ(plan.block, 900 << 10);
}

static void channels_by_cpus_and_round_trip(void)
{
	CHECK_EQ(channel_count_choose(1, 50000, true, 64), 1);
	CHECK_EQ(channel_count_choose(2, 50000, true, 64), 2);
	CHECK_EQ(channel_count_choose(64, 50000, true, 64), 4);
	CHECK_EQ(channel_count_choose(2, 10000000, true, 64), 6);   /* 10 ms */
	CHECK_EQ(channel_count_choose(2, 100000000, true, 64), 16); /* 100 ms */
	CHECK_EQ(channel_count_choose(2, 50000, false, 64), 4);     /* an adapter needs no CPU */
	CHECK_EQ(channel_count_choose(2, 100000000, false, 64), 16);
	CHECK_EQ(channel_count_choose(64, 100000000, true, 3), 3);
}

/* Of a sink that gives fewer slots than were wished for, the source needs no more. */
static void a_smaller_window_needs_fewer_blocks(void)
{
	struct plan_facts facts = usual;

	facts.delivered = true;
	CHECK_EQ(plan_source_blocks(&facts, 4 << 20, 128), 128);
	CHECK_EQ(plan_source_blocks(&facts, 4 << 20, 2), 2);
	facts.delivered = false;
	CHECK_EQ(plan_source_blocks(&facts, 4 << 20, 128), 12);
	CHECK_EQ(plan_source_blocks(&facts, 4 << 20, 2), 2);
	facts.streams = 255; /* each may have one in hand */
	CHECK(plan_source_blocks(&facts, 64 << 10, 2) > 2 * 255);
}

static void a_part_of_what_is_spare(void)
{
	const uint64_t mib = 1 << 20;

	CHECK_EQ(plan_share(512 * mib, UINT64_MAX), 512 * mib); /* not known */
	CHECK_EQ(plan_share(512 * mib, 65536 * mib), 512 * mib);
	CHECK_EQ(plan_share(512 * mib, 800 * mib), 100 * mib);
	CHECK_EQ(plan_share(8 * mib, 0), 8 * mib);
	CHECK_EQ(plan_share(512 * mib, 0), 8 * mib);
}

static void any_facts_give_a_plan_within_the_limits(void)
{
	uint64_t rng = harness_seed();

	for (unsigned i = 0; i < 200000; i++) {
		struct plan_facts f = {
			.block = harness_random(&rng) % 3 ? 0 : (uint32_t)harness_random(&rng),
			.depth = harness_random(&rng) % 3
					 ? 0
					 : (uint32_t)(harness_random(&rng) % 100000),
			.channels = (uint16_t)(harness_random(&rng) % 65),
			.workers = harness_random(&rng) % 4,
			.max_block = (uint32_t)(BLOCK_BYTES_MIN +
						harness_random(&rng) % BLOCK_BYTES_MAX),
			.max_depth = (uint32_t)(4 + harness_random(&rng) % 2000),
			.open_channels = (uint16_t)(1 + harness_random(&rng) % 64),
			.window_max_bytes = harness_random(&rng) >> harness_random(&rng) % 64,
			.largest_bytes = harness_random(&rng) >> harness_random(&rng) % 64,
			.total_bytes = harness_random(&rng) % 5
					       ? harness_random(&rng) >> harness_random(&rng) % 64
					       : UNKNOWN,
			.rtt_ns = harness_random(&rng) % 10000000000ull,
			.cpus = 1 + harness_random(&rng) % 256,
			.delivered = harness_random(&rng) & 1,
		};
		struct plan plan;

		plan_make(&f, &plan);
		CHECK(plan.block >= BLOCK_BYTES_MIN && plan.block <= BLOCK_BYTES_MAX &&
			!(plan.block % BLOCK_ALIGN));
		CHECK(plan.depth >= 4 && plan.depth <= f.max_depth);
		CHECK(plan.source_blocks >= 4 && plan.source_blocks <= plan.depth);
		CHECK(plan.channels >= 1 && plan.channels <= f.open_channels);
		CHECK(plan.workers >= 1);
	}
}

static void io_in_place_on_few_cpus_and_over_tcp(void)
{
	CHECK(plan_in_place(0, 1, 0, false) && plan_in_place(0, 2, 0, false));
	CHECK(!plan_in_place(0, 3, 0, false)); /* a worker is not in anybody's way */
	CHECK(!plan_in_place(1, 1, 0, false)); /* a wish */
	/* who posts to a device may be busy with that */
	CHECK(!plan_in_place(0, 2, 64 << 10, true) && !plan_in_place(0, 2, 4 << 20, true));
	CHECK(!plan_in_place(0, 2, 64 << 10, false) && plan_in_place(0, 2, 512 << 10, false));
	CHECK(!plan_in_place(0, 3, 512 << 10, false));
}

static struct plan_early_facts early_facts(void)
{
	return (struct plan_early_facts){
		.area_bytes = 1 << 20,
		.bytes = 128 << 10,
		.resume_bytes = 16 << 20,
		.rtt_ns = 10000000,
	};
}

static void early_as_far_as_area_and_file_go(void)
{
	struct plan_early_facts f = early_facts();

	CHECK(plan_early(&f).ahead);
	CHECK_EQ(plan_early(&f).bytes, 128 << 10);
	CHECK_EQ(plan_early(&f).after_ns, 0);
	f.bytes = 5 << 20;
	CHECK_EQ(plan_early(&f).bytes, 1 << 20);
	f.bytes = 0;
	CHECK(plan_early(&f).ahead && !plan_early(&f).bytes);
	f.bytes = 16 << 20; /* the sink may have a part */
	CHECK(plan_early(&f).ahead && !plan_early(&f).bytes);
	f.resume_bytes = 0;
	CHECK_EQ(plan_early(&f).bytes, 1 << 20);
	f.area_bytes = 0;
	CHECK(plan_early(&f).ahead && !plan_early(&f).bytes);
	f = early_facts();
	f.several = true;
	CHECK(plan_early(&f).ahead && !plan_early(&f).bytes);
	f = early_facts();
	f.stream = true;
	CHECK(plan_early(&f).ahead && !plan_early(&f).bytes);
	f = early_facts();
	f.rtt_ns = 0; /* not known */
	CHECK(plan_early(&f).bytes);
	f.rtt_ns = 1000; /* no way is too short */
	CHECK(plan_early(&f).bytes);
}

/* What auto takes into account, who asks for it does not. */
static void early_where_it_pays_or_is_asked_for(void)
{
	struct plan_early_facts all = early_facts();

	all.resting = 1;
	all.in_line = true;
	for (unsigned i = 0; i < 2; i++) {
		struct plan_early_facts f = early_facts();

		f.resting = i == 0 ? all.resting : 0;
		f.in_line = i == 1;
		CHECK(!plan_early(&f).ahead && !plan_early(&f).bytes && plan_early(&f).why);
	}
	CHECK(!plan_early(&all).ahead);
	all.mode = PLAN_EARLY_ALWAYS;
	CHECK(plan_early(&all).ahead && plan_early(&all).bytes);
	all.mode = PLAN_EARLY_NEVER;
	CHECK(!plan_early(&all).ahead && !plan_early(&all).bytes);
	all.mode = PLAN_EARLY_ALWAYS;
	all.feed = true;
	CHECK(!plan_early(&all).ahead);
}

static void an_early_get_has_memory_for_a_few_blocks(void)
{
	struct plan_early_facts f = {0};

	CHECK(plan_early_get(&f).ahead);
	CHECK_EQ(plan_early_get(&f).bytes, 4 << 20);
	f.stream = true;
	CHECK(!plan_early_get(&f).ahead && plan_early_get(&f).why);
	f = (struct plan_early_facts){.several = true};
	CHECK(!plan_early_get(&f).ahead);
	f = (struct plan_early_facts){.resting = 1};
	CHECK(!plan_early_get(&f).ahead);
	f.mode = PLAN_EARLY_ALWAYS;
	CHECK(plan_early_get(&f).ahead);
	f.mode = PLAN_EARLY_NEVER;
	CHECK(!plan_early_get(&f).ahead);
	f.mode = PLAN_EARLY_TIMEOUT;
	CHECK(!plan_early_get(&f).ahead);
}

static void early_after_two_time_outs(void)
{
	struct plan_early_facts f = early_facts();

	f.mode = PLAN_EARLY_TIMEOUT;
	CHECK(plan_early(&f).ahead);
	CHECK_EQ(plan_early(&f).bytes, 128 << 10);
	CHECK_EQ(plan_early(&f).after_ns, 20000000);
	f.rtt_ns = 1000; /* a short way is no reason: it is asked for */
	CHECK_EQ(plan_early(&f).after_ns, 2000000);
}

/* Blocks so small that an area of 1 MiB holds a good part, and of large files as without. */
static void early_blocks_fill_an_area(void)
{
	struct plan_facts f = {
		.max_block = BLOCK_BYTES_MAX,
		.max_depth = 1000,
		.open_channels = 2,
		.window_max_bytes = 512 << 20,
		.largest_bytes = 1 << 20,
		.total_bytes = 1 << 20,
		.early_bytes = 1 << 20,
		.cpus = 2,
	};
	struct plan plan, without;

	plan_make(&f, &plan);
	CHECK((1 << 20) / (plan.block + BLOCK_ALIGN) * plan.block >= 900 << 10);
	f.total_bytes = f.largest_bytes = 1 << 30;
	plan_make(&f, &plan);
	f.early_bytes = 0;
	plan_make(&f, &without);
	CHECK_EQ(plan.block, without.block);
}

HARNESS_MAIN({"early as far as area and file go", early_as_far_as_area_and_file_go},
	{"early where it pays or is asked for", early_where_it_pays_or_is_asked_for},
	{"early after two time-outs", early_after_two_time_outs},
	{"an early get has memory for a few blocks", an_early_get_has_memory_for_a_few_blocks},
	{"early blocks fill an area", early_blocks_fill_an_area},
	{"local transfers stay in cache", local_transfers_stay_in_cache},
	{"small blocks are more", small_blocks_are_more},
	{"a long link gets its window", a_long_link_gets_its_window},
	{"small files share blocks", small_files_share_blocks},
	{"a feed has two blocks for each stream", a_feed_has_two_blocks_for_each_stream},
	{"channels by CPUs and round trip", channels_by_cpus_and_round_trip},
	{"I/O in place on few CPUs and over TCP", io_in_place_on_few_cpus_and_over_tcp},
	{"a smaller window needs fewer blocks", a_smaller_window_needs_fewer_blocks},
	{"a part of what is spare", a_part_of_what_is_spare},
	{"any facts give a plan within the limits", any_facts_give_a_plan_within_the_limits})
