/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of fabric/soft/crc32c: published values, the instruction against the tables, continuation.
 */
#include "fabric/soft/crc32c.h"

#include "tests/harness.h"

#define BUFFER_BYTES (64 * 1024)

static uint8_t buffer[BUFFER_BYTES];

static void fill(uint64_t *seed)
{
	for (size_t i = 0; i < sizeof(buffer); i++)
		buffer[i] = (uint8_t)harness_random(seed);
}

/* The examples of RFC 3720 B.4 and the usual check value. */
static void test_published(void)
{
	uint8_t data[32];

	CHECK_EQ(crc32c(0, "123456789", 9), 0xe3069283);
	CHECK_EQ(crc32c(0, "", 0), 0);
	memset(data, 0, sizeof(data));
	CHECK_EQ(crc32c(0, data, sizeof(data)), 0x8a9136aa);
	memset(data, 0xff, sizeof(data));
	CHECK_EQ(crc32c(0, data, sizeof(data)), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		data[i] = (uint8_t)i;
	CHECK_EQ(crc32c(0, data, sizeof(data)), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		data[i] = (uint8_t)(31 - i);
	CHECK_EQ(crc32c(0, data, sizeof(data)), 0x113fdb5c);
	CHECK_EQ(crc32c_table(0, data, sizeof(data)), 0x113fdb5c);
}

/* One bit at a time, by the definition. */
static uint32_t by_bits(const uint8_t *p, size_t bytes)
{
	uint32_t crc = ~0u;

	while (bytes--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
	}
	return ~crc;
}

static void test_ways_agree(void)
{
	uint64_t seed = harness_seed();

	fill(&seed);
	printf("# %s\n", crc32c_is_fast() ? "by instruction" : "by tables");
	for (int i = 0; i < 400; i++) {
		const size_t at = harness_random(&seed) % 64;
		size_t bytes = harness_random(&seed) % 10000;
		uint32_t want;

		if (i < 80)
			bytes = (size_t)i;
		want = by_bits(buffer + at, bytes);
		CHECK_EQ(crc32c(0, buffer + at, bytes), want);
		CHECK_EQ(crc32c_table(0, buffer + at, bytes), want);
	}
	CHECK_EQ(crc32c(0, buffer, BUFFER_BYTES), by_bits(buffer, BUFFER_BYTES));
}

static void test_continues(void)
{
	uint64_t seed = harness_seed();

	fill(&seed);
	for (int i = 0; i < 200; i++) {
		const uint32_t want = crc32c(0, buffer, BUFFER_BYTES);
		size_t at = 0;
		uint32_t crc = 0;

		while (at < BUFFER_BYTES) {
			size_t part = 1 + harness_random(&seed) % 9000;

			if (part > BUFFER_BYTES - at)
				part = BUFFER_BYTES - at;
			crc = i & 1 ? crc32c(crc, buffer + at, part)
				    : crc32c_table(crc, buffer + at, part);
			at += part;
		}
		CHECK_EQ(crc, want);
	}
}

HARNESS_MAIN({"published", test_published}, {"ways-agree", test_ways_agree},
	{"continues", test_continues})
