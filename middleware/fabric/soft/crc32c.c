/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/crc32c: see the header.
 *
 * The instruction gives a result after three cycles but can start every cycle, so long runs are cut
 * into three lanes that advance together.  Lanes are joined with a table that moves a CRC over
 * LANE_BYTES zero bytes: CRC(a|b) = shift(CRC(a)) ^ CRC(b).
 */
#include "fabric/soft/crc32c.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41 with its bits reversed */
#define LANE_BYTES 1024

static struct {
	pthread_once_t once;
	bool fast;
	uint32_t slice[8][256]; /* slice[k][b]: byte b followed by k zero bytes */
	uint32_t shift[4][256]; /* byte k of a CRC, moved over LANE_BYTES zero bytes */
} tables = {.once = PTHREAD_ONCE_INIT};

static uint32_t shift_zeros(uint32_t crc, size_t bytes)
{
	while (bytes--)
		crc = tables.slice[0][crc & 0xff] ^ (crc >> 8);
	return crc;
}

static void tables_make(void)
{
	for (unsigned b = 0; b < 256; b++) {
		uint32_t crc = b;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL : crc >> 1;
		tables.slice[0][b] = crc;
	}
	for (unsigned b = 0; b < 256; b++)
		for (int k = 1; k < 8; k++)
			tables.slice[k][b] = shift_zeros(tables.slice[k - 1][b], 1);
	/* The shift is linear: eight single bits of each byte make its 256 values. */
	for (int k = 0; k < 4; k++) {
		for (int bit = 0; bit < 8; bit++)
			tables.shift[k][1u << bit] = shift_zeros(1u << (8 * k + bit), LANE_BYTES);
		for (unsigned b = 1; b < 256; b++)
			tables.shift[k][b] =
				tables.shift[k][b & (b - 1)] ^ tables.shift[k][b & (0u - b)];
	}
#if defined(__x86_64__)
	tables.fast = __builtin_cpu_supports("sse4.2");
#endif
}

static uint32_t step_table(uint32_t crc, const uint8_t *p, size_t bytes)
{
	for (; bytes >= 8; bytes -= 8, p += 8) {
		crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		       (uint32_t)p[3] << 24;
		crc = tables.slice[7][crc & 0xff] ^ tables.slice[6][crc >> 8 & 0xff] ^
		      tables.slice[5][crc >> 16 & 0xff] ^ tables.slice[4][crc >> 24] ^
		      tables.slice[3][p[4]] ^ tables.slice[2][p[5]] ^ tables.slice[1][p[6]] ^
		      tables.slice[0][p[7]];
	}
	while (bytes--)
		crc = tables.slice[0][(crc ^ *p++) & 0xff] ^ (crc >> 8);
	return crc;
}

#if defined(__x86_64__)
static uint32_t shift_lane(uint32_t crc)
{
	return tables.shift[0][crc & 0xff] ^ tables.shift[1][crc >> 8 & 0xff] ^
	       tables.shift[2][crc >> 16 & 0xff] ^ tables.shift[3][crc >> 24];
}

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

__attribute__((target("sse4.2"))) static uint32_t step_fast(
	uint32_t crc, const uint8_t *p, size_t bytes)
{
	for (; bytes >= 3 * LANE_BYTES; bytes -= 3 * LANE_BYTES, p += 3 * LANE_BYTES) {
		uint64_t a = crc, b = 0, c = 0;

		for (size_t i = 0; i < LANE_BYTES; i += 8) {
			a = _mm_crc32_u64(a, load64(p + i));
			b = _mm_crc32_u64(b, load64(p + LANE_BYTES + i));
			c = _mm_crc32_u64(c, load64(p + 2 * LANE_BYTES + i));
		}
		crc = shift_lane(shift_lane((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
	}
	for (; bytes >= 8; bytes -= 8, p += 8)
		crc = (uint32_t)_mm_crc32_u64(crc, load64(p));
	while (bytes--)
		crc = _mm_crc32_u8(crc, *p++);
	return crc;
}
#else
static uint32_t step_fast(uint32_t crc, const uint8_t *p, size_t bytes)
{
	return step_table(crc, p, bytes);
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
	pthread_once(&tables.once, tables_make);
	return ~(tables.fast ? step_fast(~crc, data, bytes) : step_table(~crc, data, bytes));
}

uint32_t crc32c_table(uint32_t crc, const void *data, size_t bytes)
{
	pthread_once(&tables.once, tables_make);
	return ~step_table(~crc, data, bytes);
}

bool crc32c_is_fast(void)
{
	pthread_once(&tables.once, tables_make);
	return tables.fast;
}
