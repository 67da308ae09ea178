/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/squeeze: block/squeeze, and transfer/squeeze_choice over links and compressors of
 * given rates.
 */
#include "tests/harness.h"

#include "block/squeeze.h"
#include "tests/scratch.h"
#include "transfer/squeeze_choice.h"

#define BLOCK 65536u

static void fill_text(uint8_t *to, uint32_t bytes, uint64_t *seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = (uint8_t) "all that is sent is said twice\n"[harness_random(seed) % 31];
}

static void fill_random(uint8_t *to, uint32_t bytes, uint64_t *seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)harness_random(seed);
}

static void there_and_back(void)
{
	struct block *b = scratch_block(BLOCK);
	uint64_t seed = harness_seed();
	uint8_t *copy = malloc(BLOCK);
	struct squeeze *s;

	for (unsigned level = 1; level <= SQUEEZE_LEVEL_MAX; level++) {
		CHECK_EQ(squeeze_new(level, &s), 0);
		for (int round = 0; round < 20; round++) {
			b->length = 1 + (uint32_t)(harness_random(&seed) % BLOCK);
			if (round % 3)
				fill_text(b->payload, b->length, &seed);
			else
				memset(b->payload, round, b->length);
			memcpy(copy, b->payload, b->length);
			squeeze_pack(s, b);
			CHECK(b->stored < b->length);
			CHECK(b->length < 1000 || b->stored);
			CHECK_EQ(block_crossing(b), b->stored ? b->stored : b->length);
			if (b->stored)
				CHECK_EQ(squeeze_unpack(s, b), 0);
			CHECK(!memcmp(copy, b->payload, b->length));
		}
		squeeze_free(s);
	}
	free(copy);
	scratch_block_free(b);
}

static void what_does_not_shrink_stays(void)
{
	struct block *b = scratch_block(BLOCK);
	uint64_t seed = harness_seed();
	uint8_t *copy = malloc(BLOCK);
	struct squeeze *s;

	CHECK_EQ(squeeze_new(9, &s), 0);
	for (uint32_t length = 1; length <= BLOCK; length = length * 3 + 1) {
		b->length = length;
		b->stored = 7;
		fill_random(b->payload, length, &seed);
		memcpy(copy, b->payload, length);
		squeeze_pack(s, b);
		CHECK_EQ(b->stored, 0);
		CHECK(!memcmp(copy, b->payload, length));
	}
	squeeze_free(s);
	free(copy);
	scratch_block_free(b);
}

/* More or fewer bytes than the header says, or something behind the end: refused. */
static void what_does_not_fit_is_refused(void)
{
	struct block *b = scratch_block(BLOCK);
	uint64_t seed = harness_seed();
	uint8_t packed[BLOCK];
	uint32_t stored;
	struct squeeze *s;

	CHECK_EQ(squeeze_new(6, &s), 0);
	b->length = 30000;
	fill_text(b->payload, b->length, &seed);
	squeeze_pack(s, b);
	stored = b->stored;
	memcpy(packed, b->payload, stored);
	b->length = 29999;
	b->payload[29999] = 0xee;
	CHECK_EQ(squeeze_unpack(s, b), -EILSEQ);
	CHECK_EQ(b->payload[29999], 0xee); /* not a byte beyond */
	for (int i = 0; i < 4; i++) {
		memcpy(b->payload, packed, stored);
		b->length = i == 0 ? 30001 : 30000;
		b->stored = i == 1 ? stored - 1 : i == 2 ? stored + 1 : stored;
		if (i == 2)
			b->payload[stored] = 0;
		CHECK_EQ(squeeze_unpack(s, b), i == 3 ? 0 : -EILSEQ);
	}
	/* the bits of a block that is not compressed */
	b->length = 1000;
	b->stored = 500;
	fill_random(b->payload, 1000, &seed);
	CHECK_EQ(squeeze_unpack(s, b), -EILSEQ);
	squeeze_free(s);
	scratch_block_free(b);
}

/* ---- the choice ---- */

struct model {
	double link, compressor, ratio; /* bytes a second; of them, bytes that one becomes */
};

/* Ten seconds of a transfer of blocks of 1 MiB: the part of its bytes that was compressed after the
 * first two. */
static double run_model(const struct model *m, bool shrinks)
{
	const uint64_t step = 1000000;
	const uint32_t block = 1 << 20;
	struct squeeze_choice c;
	double compressed = 0, all = 0, carry = 0;
	bool on;

	squeeze_choice_init(&c, true, 16ull * block, block);
	on = squeeze_choice_next(&c);
	for (uint64_t now = step; now < 10000000000ull; now += step) {
		double link_rate = on && shrinks ? m->link / m->ratio : m->link;
		double rate = on && m->compressor < link_rate ? m->compressor : link_rate;
		uint64_t left = 0;

		carry += rate * (double)step / 1e9;
		for (; carry >= block; carry -= block, left += block) {
			all += now > 2000000000;
			compressed += on && now > 2000000000;
			if (on)
				squeeze_choice_note(&c, shrinks);
			on = squeeze_choice_next(&c);
		}
		squeeze_choice_round(&c, now,
			&(struct squeeze_round){
				.bytes = left, .busy = !on || link_rate <= m->compressor});
	}
	return compressed / all;
}

static void the_faster_way_is_taken(void)
{
	const struct model slow = {10e6, 200e6, 0.4}, fast = {1000e6, 200e6, 0.4},
			   between = {150e6, 200e6, 0.5};

	CHECK(run_model(&slow, true) > 0.99);
	CHECK(run_model(&fast, true) < 0.2);
	CHECK(run_model(&between, true) > 0.8);
	CHECK(run_model(&slow, false) < 0.1);
}

/* The same with blocks of 512 KiB that wait in a pool of 32 for a link, of which the first
 * `buffer` bytes take no time.  The sum of the time in which they were compressed, of `seconds`. */
static double time_on(const struct model *m, double buffer, double seconds)
{
	enum { POOL = 32 };
	const double step = 0.0005, block = 1 << 19;
	struct squeeze_choice c;
	double sizes[POOL] = {0}, made = 0, gone = buffer, on_s = 0;
	unsigned count = 0;
	bool on;

	squeeze_choice_init(&c, true, POOL * (uint64_t)block, (uint32_t)block);
	on = squeeze_choice_next(&c);
	for (double now = step; now < seconds; now += step) {
		struct squeeze_round round = {0};

		for (made += (on ? m->compressor : 5e9) * step; made >= block && count < POOL;) {
			made -= block;
			sizes[count++] = on ? block * m->ratio : block;
			if (on)
				squeeze_choice_note(&c, true);
			on = squeeze_choice_next(&c);
		}
		if (count == POOL)
			made = 0;
		gone += m->link * step;
		while (count && gone >= sizes[0]) {
			gone -= sizes[0];
			memmove(sizes, sizes + 1, --count * sizeof *sizes);
			round.bytes += (uint64_t)block;
		}
		if (!count && gone > buffer)
			gone = buffer;
		round.under_way_bytes = (uint64_t)(count * block);
		round.busy = count > POOL / 2;
		on_s += c.on ? step : 0;
		squeeze_choice_round(&c, (uint64_t)(now * 1e9), &round);
	}
	return on_s;
}

static void a_fast_link_shows_soon(void)
{
	const struct model fast = {2000e6, 50e6, 0.5}, faster = {1000e6, 200e6, 0.4};

	CHECK(time_on(&fast, 0, 1) < 0.2);
	CHECK(time_on(&faster, 0, 1) < 0.2);
	CHECK(time_on(&fast, 1e6, 1) < 0.2);
	/* nor is much lost by trying again */
	CHECK(time_on(&fast, 0, 10) < 1);
}

static void a_slow_link_stays_compressed(void)
{
	static const double links[] = {1e6, 5e6, 10e6, 20e6, 40e6};

	for (unsigned i = 0; i < sizeof links / sizeof *links; i++) {
		const struct model quick = {links[i], 200e6, 0.4}, slow = {links[i], 60e6, 0.4};

		for (double buffer = 0; buffer < 5e6; buffer += 1e6) {
			CHECK(time_on(&quick, buffer, 5) > 4.8);
			/* the last keeps up with this one: the other way is tried, and left */
			CHECK(time_on(&slow, buffer, 5) > (i < 4 ? 4.8 : 3));
		}
	}
}

static void nothing_is_compressed_unasked(void)
{
	struct squeeze_choice c;

	squeeze_choice_init(&c, false, 1 << 20, 1 << 16);
	for (int i = 0; i < 100; i++) {
		CHECK(!squeeze_choice_next(&c));
		squeeze_choice_round(&c, (uint64_t)i * 1000000000,
			&(struct squeeze_round){.bytes = 1 << 20, .busy = i % 2});
	}
}

HARNESS_MAIN({"there_and_back", there_and_back},
	{"what_does_not_shrink_stays", what_does_not_shrink_stays},
	{"what_does_not_fit_is_refused", what_does_not_fit_is_refused},
	{"the_faster_way_is_taken", the_faster_way_is_taken},
	{"a_fast_link_shows_soon", a_fast_link_shows_soon},
	{"a_slow_link_stays_compressed", a_slow_link_stays_compressed},
	{"nothing_is_compressed_unasked", nothing_is_compressed_unasked})
