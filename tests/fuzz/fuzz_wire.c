/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_wire: a program of gets over the input, mirrored by puts.
 *
 * Input: one byte n, n operations, then the bytes to read.  What the gets took, the puts must have
 * written again; a failed get must leave zeros and stick.
 */
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static void step(struct wire *in, struct wire *out, uint8_t op)
{
	struct wire_bytes bytes;
	uint8_t raw[32];
	size_t n = op >> 3;

	switch (op & 7) {
	case 0:
		wire_put_u8(out, wire_get_u8(in));
		break;
	case 1:
		wire_put_u16(out, wire_get_u16(in));
		break;
	case 2:
		wire_put_u32(out, wire_get_u32(in));
		break;
	case 3:
		wire_put_u64(out, wire_get_u64(in));
		break;
	case 4:
		wire_get_raw(in, raw, n);
		wire_put_raw(out, raw, n);
		break;
	case 5:
		bytes = wire_get_bytes(in, n * 8);
		wire_put_bytes(out, bytes, n * 8);
		break;
	case 6:
		wire_put_bytes(out, wire_get_bytes(in, UINT16_MAX), UINT16_MAX);
		break;
	default:
		wire_require(in, n != 31);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t written[1 << 16];
	const uint8_t *stream;
	struct wire in, out, narrow;
	size_t ops, len;

	if (size < 1 || size > sizeof(written) || size - 1 < data[0])
		return 0;
	ops = data[0];
	stream = data + 1 + ops;
	len = size - 1 - ops;
	wire_init_get(&in, stream, len);
	wire_init_put(&out, written, sizeof(written));
	for (size_t i = 0; i < ops; i++) {
		step(&in, &out, data[1 + i]);
		if (in.error)
			break;
		must(out.error == 0);
		must(wire_put_length(&out) == len - wire_left(&in));
	}
	must(in.error == 0 || in.error == -EMSGSIZE || in.error == -EBADMSG);
	if (in.error) {
		int error = in.error;
		must(wire_get_u64(&in) == 0 && wire_get_bytes(&in, 9).len == 0);
		must(wire_finish(&in) == error);
		return 0;
	}
	must(wire_finish(&in) == (wire_left(&in) ? -EBADMSG : 0));
	must(!memcmp(written, stream, wire_put_length(&out)));

	/* the same puts with one byte too little */
	if (wire_put_length(&out) > 0) {
		size_t room = wire_put_length(&out) - 1;
		uint8_t *exact = malloc(room ? room : 1);
		must(exact != NULL);
		wire_init_get(&in, stream, len);
		wire_init_put(&narrow, exact, room);
		for (size_t i = 0; i < ops; i++)
			step(&in, &narrow, data[1 + i]);
		must(wire_put_end(&narrow) == -EMSGSIZE);
		free(exact);
	}
	return 0;
}
