/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_squeeze: a payload that a peer says is compressed.
 *
 * Input: the length it is to have (16 bits and 1), then the bytes that crossed.  Property: it makes
 * exactly so many bytes or is refused, and nothing outside of the block is touched; what was made
 * of it is packed and unpacked to the same.
 */
#include "block/squeeze.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#define CAPACITY 65536u
#define GUARD 64u

static void guarded(const uint8_t *memory)
{
	for (unsigned i = 0; i < GUARD; i++)
		must(memory[i] == 0xa5 && memory[GUARD + CAPACITY + i] == 0xa5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t memory[GUARD + CAPACITY + GUARD], copy[CAPACITY];
	struct block b = {.payload = memory + GUARD, .capacity = CAPACITY};
	struct fuzz_input in = {data, size};
	struct squeeze *s;
	size_t got;
	const uint8_t *bytes;
	int err;

	must(!squeeze_new(1 + (unsigned)size % SQUEEZE_LEVEL_MAX, &s));
	memset(memory, 0xa5, sizeof memory);
	b.length = fuzz_u16(&in) + 1u;
	bytes = fuzz_bytes(&in, b.length - 1, &got);
	/* the header's check lets no other through */
	if (got) {
		b.stored = (uint32_t)got;
		memcpy(b.payload, bytes, got);
		err = squeeze_unpack(s, &b);
		must(!err || err == -EILSEQ);
		guarded(memory);
		for (unsigned i = 0; b.length + i < CAPACITY && i < GUARD; i++)
			must(b.payload[b.length + i] == 0xa5);
		memcpy(copy, b.payload, b.length);
		squeeze_pack(s, &b);
		must(b.stored < b.length);
		if (b.stored)
			must(!squeeze_unpack(s, &b));
		must(!memcmp(copy, b.payload, b.length));
	}
	squeeze_free(s);
	return 0;
}
