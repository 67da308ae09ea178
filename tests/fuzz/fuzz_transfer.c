/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_transfer: transfer messages, block header, names of files.
 *
 * Input: one byte, the type; then the data.  Type 0: 4 bytes of block capacity, then a block
 * header. Type 1: a file's name.
 */
#include "tests/fuzz/recode_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_block(const uint8_t *data, size_t size)
{
	uint8_t again[TRANSFER_BLOCK_BYTES];
	struct transfer_block block;
	uint32_t capacity;
	struct wire w;

	if (size < 4 + TRANSFER_BLOCK_BYTES)
		return;
	wire_init_get(&w, data, 4);
	capacity = wire_get_u32(&w);
	if (transfer_get_block(&block, data + 4, capacity))
		return;
	/* what a sink computes with it must hold */
	recode_must(block.length > 0 && block.length <= capacity);
	recode_must(block.offset + block.length <= INT64_MAX);
	transfer_put_block(&block, again);
	recode_must(!memcmp(again, data + 4, sizeof(again)));
}

/* Walks a name that passed as a sink would, component by component. */
static void fuzz_name(const uint8_t *data, size_t size)
{
	struct wire_bytes name = {data, size};
	size_t start = 0;

	if (!transfer_name_ok(name) || size == 0)
		return;
	for (size_t i = 0; i <= size; i++) {
		if (i < size && data[i] != '/')
			continue;
		struct wire_bytes part = {data + start, i - start};
		recode_must(message_name_ok(part));
		start = i + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message_header header = {0, 0, 0};
	recode_function *run;

	if (size < 1 || size > MESSAGE_DATA_MAX)
		return 0;
	header.type = data[0];
	header.length = (uint32_t)size - 1;
	data++;
	size--;
	if (header.type == 0) {
		fuzz_block(data, size);
	} else if (header.type == 1) {
		fuzz_name(data, size);
	} else if (header.type >= TRANSFER_OFFER) {
		run = recode_find(header.type);
		if (run && recode_fuzz(run, data, size, 0))
			recode_must(message_check(&header) == 0);
	}
	return 0;
}
