/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/seal: what one side seals the other opens, and nothing else.
 */
#include "../harness.h"

#include "block/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY 70000u

struct ends {
	struct seal_key *source_key, *sink_key;
	struct seal *source, *sink;
	uint8_t *memory, *copy;
	struct block block;
};

static void ends_open(struct ends *e, enum seal_level level, uint8_t first)
{
	uint8_t secret[SEAL_SECRET_BYTES] = {first};

	*e = (struct ends){
		.memory = aligned_alloc(BLOCK_ALIGN, 32 * BLOCK_ALIGN), .copy = malloc(CAPACITY)};
	CHECK(e->memory && e->copy);
	CHECK_EQ(seal_key_new(level, secret, &e->source_key), 0);
	CHECK_EQ(seal_key_new(level, secret, &e->sink_key), 0);
	CHECK_EQ(seal_new(e->source_key, &e->source), 0);
	CHECK_EQ(seal_new(e->sink_key, &e->sink), 0);
	e->block.payload = e->memory + BLOCK_ALIGN;
}

static void ends_close(struct ends *e)
{
	seal_free(e->source);
	seal_free(e->sink);
	seal_key_free(e->source_key);
	seal_key_free(e->sink_key);
	free(e->memory);
	free(e->copy);
}

/* Random payload, header and sum, sealed. */
static void seal_one(struct ends *e, uint64_t *rng, uint32_t length)
{
	uint8_t *at = e->block.payload - BLOCK_PREFIX_BYTES;

	e->block.length = length;
	for (uint32_t i = 0; i < BLOCK_PREFIX_BYTES + length; i++)
		at[i] = (uint8_t)harness_random(rng);
	memcpy(e->copy, at, BLOCK_PREFIX_BYTES + length);
	CHECK_EQ(seal_payload(e->source, &e->block), 0);
	CHECK_EQ(seal_prefix(e->source, &e->block), 0);
}

/* As a sink does it: 0, or which of the two failed. */
static int open_one(struct ends *e)
{
	uint8_t prefix[SEAL_PREFIX_BYTES];

	memcpy(prefix, e->block.payload - SEAL_PREFIX_BYTES, sizeof prefix);
	if (seal_open_prefix(e->sink, prefix, &e->block))
		return 1;
	memcpy(e->block.payload - BLOCK_PREFIX_BYTES, prefix + SEAL_BYTES, BLOCK_PREFIX_BYTES);
	return seal_open_payload(e->sink, &e->block) ? 2 : 0;
}

static bool is_what_it_was(const struct ends *e)
{
	return !memcmp(e->copy, e->block.payload - BLOCK_PREFIX_BYTES,
		BLOCK_PREFIX_BYTES + e->block.length);
}

static void there_and_back(void)
{
	uint64_t rng = harness_seed();

	for (enum seal_level level = SEAL_SAFE; level <= SEAL_PRIVATE; level++) {
		struct ends e;

		ends_open(&e, level, 1);
		for (unsigned i = 0; i < 300; i++) {
			uint32_t length = 1 + (uint32_t)(harness_random(&rng) % (CAPACITY - 100));
			bool hidden;

			seal_one(&e, &rng, length);
			hidden = memcmp(e.copy + BLOCK_PREFIX_BYTES, e.block.payload, length);
			CHECK_EQ(hidden || length < 8, level == SEAL_PRIVATE || length < 8);
			/* the sum tells of the payload, and is never shown */
			CHECK(memcmp(e.copy + 24, e.block.payload - 8, 8));
			CHECK_EQ(open_one(&e), 0);
			CHECK(is_what_it_was(&e));
		}
		ends_close(&e);
	}
}

static void any_change_is_noticed(void)
{
	uint64_t rng = harness_seed();

	for (enum seal_level level = SEAL_SAFE; level <= SEAL_PRIVATE; level++) {
		struct ends e;

		ends_open(&e, level, 1);
		for (unsigned bit = 0; bit < 8 * (SEAL_PREFIX_BYTES + 100); bit++) {
			uint8_t *first = e.block.payload - SEAL_PREFIX_BYTES;
			int r;

			seal_one(&e, &rng, 100);
			first[bit / 8] ^= (uint8_t)(1u << bit % 8);
			r = open_one(&e);
			CHECK_EQ(r, bit / 8 < SEAL_PREFIX_BYTES ? 1 : 2);
		}
		/* a payload that is shorter, or another block's */
		seal_one(&e, &rng, 100);
		e.block.length = 99;
		CHECK_EQ(open_one(&e), 2);
		seal_one(&e, &rng, 100);
		memcpy(e.copy, e.block.payload, 100);
		seal_one(&e, &rng, 100);
		e.copy[0] ^= level == SEAL_SAFE; /* in the clear it is the same kind of change */
		memcpy(e.block.payload, e.copy, 100);
		CHECK_EQ(open_one(&e), 2);
		ends_close(&e);
	}
}

/* The peer's key must be the same: secret and level. */
static void other_keys(void)
{
	uint64_t rng = harness_seed();
	struct ends e, other;

	ends_open(&e, SEAL_PRIVATE, 1);
	ends_open(&other, SEAL_PRIVATE, 2);
	seal_one(&e, &rng, 1000);
	e.block.error = 0;
	struct seal *right = e.sink;

	e.sink = other.sink;
	CHECK_EQ(open_one(&e), 1);
	e.sink = right;
	CHECK_EQ(open_one(&e), 0);
	ends_close(&other);
	ends_close(&e);
}

/* Over the change of keys, and with blocks of both keys mixed at the sink. */
static void keys_change(void)
{
	uint8_t prefixes[2][SEAL_PREFIX_BYTES], payloads[2][64];
	uint64_t rng = harness_seed();
	struct ends e;

	ends_open(&e, SEAL_PRIVATE, 1);
	for (unsigned i = 0; i < SEAL_KEY_BLOCKS - 1; i++)
		seal_one(&e, &rng, 64);
	for (unsigned i = 0; i < 2; i++) { /* the last of one key and the first of the next */
		seal_one(&e, &rng, 64);
		memcpy(prefixes[i], e.block.payload - SEAL_PREFIX_BYTES, SEAL_PREFIX_BYTES);
		memcpy(payloads[i], e.block.payload, 64);
	}
	CHECK_EQ(prefixes[0][6], 0x0f);
	CHECK_EQ(prefixes[1][6], 0x10);
	for (unsigned i = 0; i < 10; i++) {
		memcpy(e.block.payload - SEAL_PREFIX_BYTES, prefixes[i % 2], SEAL_PREFIX_BYTES);
		memcpy(e.block.payload, payloads[i % 2], 64);
		CHECK_EQ(open_one(&e), 0);
	}
	CHECK(is_what_it_was(&e));
	/* the same bytes under the other key's number */
	memcpy(e.block.payload - SEAL_PREFIX_BYTES, prefixes[0], SEAL_PREFIX_BYTES);
	e.block.payload[6 - (int)SEAL_PREFIX_BYTES] = 0x10;
	CHECK_EQ(open_one(&e), 1);
	ends_close(&e);
}

/* No two blocks have a counter in common, whichever threads seal them. */
static void counters(void)
{
	uint64_t rng = harness_seed();
	struct seal *second;
	struct ends e;

	ends_open(&e, SEAL_SAFE, 1);
	CHECK_EQ(seal_new(e.source_key, &second), 0);
	for (unsigned i = 0; i < 100; i++) {
		struct seal *first = e.source;

		e.source = i % 2 ? second : first;
		seal_one(&e, &rng, 10);
		e.source = first;
		CHECK_EQ(e.block.payload[7 - (int)SEAL_PREFIX_BYTES], i);
		CHECK_EQ(open_one(&e), 0);
	}
	seal_free(second);
	ends_close(&e);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"there and back", there_and_back},
		{"any change is noticed", any_change_is_noticed},
		{"other keys", other_keys},
		{"keys change", keys_change},
		{"counters", counters},
		{NULL, NULL},
	};

	return harness_run(cases, argc, argv);
}
