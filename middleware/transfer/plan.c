/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/plan: see plan.h.
 *
 * The window is what a round trip at WIRE_BYTES_PER_S holds, twice, so that the window is never
 * what limits a link of that speed; on short links it is LOCAL_WINDOW, small enough to stay in a
 * CPU's outer cache, where the sink's copy to the file reads it from.
 */
#include "transfer/plan.h"

#include "block/block.h"
#include "proto/transfer.h"

#define WIRE_BYTES_PER_S 5000000000ull /* 40 Gb/s */
#define LOCAL_WINDOW (8ull << 20)
/* blocks grow with the window: fewer messages for the same bytes, while there are always some
 * dozens; and some where a side has little memory, and its share of the window is a small one */
#define SMALL_BLOCK (512u << 10)
#define LARGE_BLOCK (1u << 20)
#define LARGE_WINDOW (64ull << 20)
/* where completion is local: filling, hashing, being sent; of small blocks as many as make so many
 * bytes */
#define SOURCE_BLOCKS 12u
#define SOURCE_BYTES (SOURCE_BLOCKS * SMALL_BLOCK)
#define DEPTH_MIN 4u
#define SHARED_BLOCKS 16u /* of several files: at least so many */
#define IN_PLACE_CPUS 2u
#define IN_PLACE_BLOCK (256u << 10)
#define FEED_BLOCKS_MORE 8u /* of a feed's source: two for each stream, and these */
#define FEED_BYTES (64ull << 20)
#define EARLY_TIMEOUT_MIN_NS 1000000u
/* of an area, which is 1 MiB, a few blocks with what is before them fill nearly all; larger
 * transfers gain more by larger blocks */
#define EARLY_BLOCK (252u << 10)
#define EARLY_TOTAL (8ull << 20)
#define FILE_DESCRIPTORS 4u /* the file, its directory, and what walking there takes */
#define SPARE_PART 8u       /* of the memory that is left a side takes at most one such part */

static uint64_t at_least(uint64_t value, uint64_t low)
{
	return value < low ? low : value;
}

static uint64_t at_most(uint64_t value, uint64_t high)
{
	return value > high ? high : value;
}

static uint32_t round_block(uint64_t bytes)
{
	uint64_t rounded = (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;

	return (uint32_t)at_most(at_least(rounded, BLOCK_BYTES_MIN), BLOCK_BYTES_MAX);
}

static uint64_t feed_blocks(const struct plan_facts *f)
{
	return 2ull * f->streams + FEED_BLOCKS_MORE;
}

void plan_make(const struct plan_facts *f, struct plan *out)
{
	uint64_t window =
		at_least(f->rtt_ns * (WIRE_BYTES_PER_S / 1000000) / 1000 * 2, LOCAL_WINDOW);
	uint64_t block = f->block;

	window = at_most(window, f->window_max_bytes);
	if (!block && f->streams) {
		block = at_most(
			at_most(FEED_BYTES, f->window_max_bytes) / feed_blocks(f), SMALL_BLOCK);
	} else if (!block) {
		block = window >= LARGE_WINDOW ? LARGE_BLOCK : SMALL_BLOCK;
		if (f->early_bytes && f->total_bytes <= EARLY_TOTAL)
			block = at_most(block, EARLY_BLOCK);
		/* a little needs no large blocks; many small files share one */
		block = at_most(block, f->total_bytes);
	}
	out->block = round_block(at_most(block, f->max_block));
	out->depth = f->depth ? f->depth : (uint32_t)at_most(window / out->block, UINT32_MAX);
	/* no more than the transfer has blocks, where that is known; of small files, which share
	 * them, not all are full */
	if (!f->depth && f->total_bytes != UINT64_MAX)
		out->depth = (uint32_t)at_most(
			out->depth, f->total_bytes == f->largest_bytes
					    ? f->total_bytes / out->block + 1
					    : f->total_bytes / out->block * 5 / 4 + SHARED_BLOCKS);
	out->depth = (uint32_t)at_most(at_least(out->depth, DEPTH_MIN), f->max_depth);
	out->source_blocks = plan_source_blocks(f, out->block, out->depth);
	out->channels =
		f->channels && f->channels < f->open_channels ? f->channels : f->open_channels;
	out->workers = plan_workers(f->workers, f->cpus);
}

uint32_t plan_source_blocks(const struct plan_facts *f, uint32_t block, uint32_t depth)
{
	uint64_t blocks = depth;

	if (!f->delivered)
		blocks = at_most(blocks, at_least(SOURCE_BYTES / block, SOURCE_BLOCKS));
	if (f->streams)
		blocks = at_least(blocks, at_most(feed_blocks(f), f->window_max_bytes / block));
	return (uint32_t)blocks;
}

/* Why nothing leaves before the answer; NULL: it may. */
static const char *waits_for_answer(const struct plan_early_facts *f)
{
	if (f->mode == PLAN_EARLY_NEVER)
		return "asked for";
	if (f->feed)
		return "streams of a feed";
	if (f->mode == PLAN_EARLY_ALWAYS)
		return NULL;
	if (f->resting)
		return "one of the last was refused";
	if (f->in_line)
		return "transfers wait in line there";
	return NULL;
}

/* Why no block leaves before its file is READY; NULL: blocks may. */
static const char *waits_for_ready(const struct plan_early_facts *f)
{
	if (f->several)
		return "several files";
	if (f->stream)
		return "a stream, which can be read once";
	if (!f->area_bytes)
		return "the server has no room for early data";
	if (f->resume_bytes && f->bytes >= f->resume_bytes)
		return "the server may have a part of it";
	return NULL;
}

struct plan_early plan_early(const struct plan_early_facts *f)
{
	struct plan_early p = {.why = waits_for_answer(f)};

	if (p.why)
		return p;
	p.ahead = true;
	p.why = waits_for_ready(f);
	if (p.why)
		return p;
	p.bytes = at_most(f->bytes, f->area_bytes);
	p.why = f->mode == PLAN_EARLY_ALWAYS    ? "asked for"
		: f->mode == PLAN_EARLY_TIMEOUT ? "after two time-outs"
						: "round trips are saved";
	if (f->mode == PLAN_EARLY_TIMEOUT)
		p.after_ns = 2 * at_least(f->rtt_ns, EARLY_TIMEOUT_MIN_NS);
	return p;
}

struct plan_early plan_early_get(const struct plan_early_facts *f)
{
	struct plan_early p = {.why = waits_for_answer(f)};

	if (!p.why && f->several)
		p.why = "several files";
	if (!p.why && f->stream)
		p.why = "to a stream";
	if (!p.why && f->mode == PLAN_EARLY_TIMEOUT)
		p.why = "the server chooses, and waits for nothing";
	if (p.why)
		return p;
	return (struct plan_early){
		.ahead = true,
		.bytes = (uint64_t)PLAN_EARLY_BLOCK * PLAN_EARLY_DEPTH,
		.why = f->mode == PLAN_EARLY_ALWAYS ? "asked for" : "round trips are saved",
	};
}

uint64_t plan_share(uint64_t wanted, uint64_t spare)
{
	return at_most(wanted, at_least(spare / SPARE_PART, LOCAL_WINDOW));
}

unsigned plan_workers(unsigned wish, unsigned cpus)
{
	return wish ? wish : (unsigned)at_most(at_least(cpus / 8, 1), 4);
}

unsigned plan_open_files(unsigned wish, uint64_t free_descriptors)
{
	return (unsigned)at_most(
		at_least(wish ? wish : free_descriptors / FILE_DESCRIPTORS, 1), TRANSFER_OPEN_MAX);
}

bool plan_in_place(unsigned wish, unsigned cpus, uint32_t posts_bytes, bool delivered)
{
	/* A device should never wait for a block to be filled; and where the kernel plays one, the
	 * thread that posts may have no time for it: on rxe posting is sending, and on siw it is
	 * while the device has nothing else to send.  On siw large blocks are faster in place all
	 * the same (measured). */
	if (posts_bytes && (delivered || posts_bytes < IN_PLACE_BLOCK))
		return false;
	/* on few CPUs, and where sending over TCP needs them, a hand-over costs more than it gains
	 */
	return !wish && cpus <= IN_PLACE_CPUS;
}
