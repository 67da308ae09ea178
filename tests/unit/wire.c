/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of proto/wire: byte order, bounds, the sticky error. */
#include "tests/harness.h"
#include "proto/wire.h"

static void byte_order(void)
{
	static const uint8_t want[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc,
		0xba, 0x98, 0x76, 0x54, 0x32, 'r', 'a', 'w', 0, 2, 'o', 'k'};
	uint8_t buf[sizeof(want)], raw[3];
	struct wire_bytes bytes = {(const uint8_t *)"ok", 2};
	struct wire w;

	wire_init_put(&w, buf, sizeof(buf));
	wire_put_u8(&w, 0x01);
	wire_put_u16(&w, 0x2345);
	wire_put_u32(&w, 0x6789abcd);
	wire_put_u64(&w, 0xeffedcba98765432);
	wire_put_raw(&w, "raw", 3);
	wire_put_bytes(&w, bytes, 2);
	CHECK_EQ(wire_finish(&w), 0);
	CHECK_EQ(wire_put_end(&w), sizeof(want));
	CHECK_EQ(wire_put_length(&w), sizeof(want));
	CHECK(!memcmp(buf, want, sizeof(want)));

	wire_init_get(&w, want, sizeof(want));
	CHECK_EQ(wire_get_u8(&w), 0x01);
	CHECK_EQ(wire_get_u16(&w), 0x2345);
	CHECK_EQ(wire_get_u32(&w), 0x6789abcd);
	CHECK(wire_get_u64(&w) == 0xeffedcba98765432);
	wire_get_raw(&w, raw, 3);
	CHECK(!memcmp(raw, "raw", 3));
	bytes = wire_get_bytes(&w, 2);
	CHECK_EQ(bytes.len, 2);
	CHECK(bytes.data == want + sizeof(want) - 2);
	CHECK_EQ(wire_left(&w), 0);
	CHECK_EQ(wire_finish(&w), 0);
}

static void short_put(void)
{
	uint8_t buf[8];

	for (size_t size = 0; size < 8; size++) {
		struct wire w;
		memset(buf, 0xee, sizeof(buf));
		wire_init_put(&w, buf, size);
		wire_put_u64(&w, 0);
		CHECK_EQ(wire_finish(&w), -EMSGSIZE);
		CHECK_EQ(wire_put_end(&w), -EMSGSIZE);
		for (size_t i = 0; i < sizeof(buf); i++)
			CHECK_EQ(buf[i], 0xee);
		/* sticky: room for one byte does not help any more */
		wire_put_u8(&w, 1);
		CHECK_EQ(wire_put_length(&w), 0);
	}
}

static void short_get(void)
{
	static const uint8_t buf[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	uint8_t raw[8];

	for (size_t len = 0; len < 8; len++) {
		struct wire w;
		wire_init_get(&w, len ? buf : NULL, len);
		CHECK_EQ(wire_get_u64(&w), 0);
		CHECK_EQ(wire_get_u8(&w), 0);
		CHECK_EQ(wire_get_u16(&w), 0);
		CHECK_EQ(wire_get_u32(&w), 0);
		memset(raw, 0xee, sizeof(raw));
		wire_get_raw(&w, raw, sizeof(raw));
		for (size_t i = 0; i < sizeof(raw); i++)
			CHECK_EQ(raw[i], 0);
		CHECK(wire_get_bytes(&w, 9).data == NULL);
		CHECK_EQ(wire_finish(&w), -EMSGSIZE);
	}
}

static void bytes_limits(void)
{
	static uint8_t data[70000], buf[70002];
	struct wire_bytes bytes = {data, 5};
	struct wire w;

	wire_init_put(&w, buf, sizeof(buf));
	wire_put_bytes(&w, bytes, 5);
	CHECK_EQ(wire_put_end(&w), 7);
	wire_init_put(&w, buf, sizeof(buf));
	wire_put_bytes(&w, bytes, 4);
	CHECK_EQ(wire_put_end(&w), -EMSGSIZE);
	wire_init_put(&w, buf, 6);
	wire_put_bytes(&w, bytes, 5);
	CHECK_EQ(wire_put_end(&w), -EMSGSIZE);
	CHECK_EQ(wire_put_length(&w), 0); /* no half field */

	bytes.len = 65535;
	wire_init_put(&w, buf, sizeof(buf));
	wire_put_bytes(&w, bytes, sizeof(data));
	CHECK_EQ(wire_put_end(&w), 65537);
	bytes.len = 65536;
	wire_init_put(&w, buf, sizeof(buf));
	wire_put_bytes(&w, bytes, sizeof(data));
	CHECK_EQ(wire_put_end(&w), -EMSGSIZE);

	wire_init_get(&w, "\0\3abc", 5);
	CHECK_EQ(wire_get_bytes(&w, 3).len, 3);
	CHECK_EQ(wire_finish(&w), 0);
	wire_init_get(&w, "\0\3abc", 5);
	CHECK_EQ(wire_get_bytes(&w, 2).len, 0);
	CHECK_EQ(wire_finish(&w), -EBADMSG);
	for (size_t len = 0; len < 5; len++) {
		wire_init_get(&w, "\0\3abc", len);
		CHECK_EQ(wire_get_bytes(&w, 3).len, 0);
		CHECK_EQ(wire_finish(&w), -EMSGSIZE);
	}
	wire_init_get(&w, "\0\0", 2);
	bytes = wire_get_bytes(&w, 0);
	CHECK_EQ(bytes.len, 0);
	CHECK(bytes.data != NULL);
	CHECK_EQ(wire_finish(&w), 0);
}

static void trailing(void)
{
	uint8_t buf[2] = {0, 1};
	struct wire w;

	wire_init_get(&w, buf, 2);
	wire_get_u8(&w);
	CHECK_EQ(wire_finish(&w), -EBADMSG);
	CHECK_EQ(w.error, 0); /* asking is not the error */
	wire_get_u8(&w);
	CHECK_EQ(wire_finish(&w), 0);
	wire_init_put(&w, buf, 2);
	wire_put_u8(&w, 1);
	CHECK_EQ(wire_finish(&w), 0); /* room left over is no error */
}

static void first_error_stands(void)
{
	uint8_t buf[1] = {7};
	struct wire w;

	wire_init_get(&w, buf, 1);
	wire_get_u16(&w);
	wire_refuse(&w);
	CHECK_EQ(wire_finish(&w), -EMSGSIZE);
	wire_init_get(&w, buf, 1);
	wire_require(&w, true);
	CHECK_EQ(w.error, 0);
	wire_require(&w, false);
	CHECK_EQ(wire_get_u8(&w), 0);
	CHECK_EQ(wire_left(&w), 1);
	wire_get_u16(&w);
	CHECK_EQ(wire_finish(&w), -EBADMSG);
	wire_init_put(&w, buf, 1);
	wire_refuse(&w);
	wire_put_raw(&w, "x", 1);
	CHECK_EQ(buf[0], 7);
	CHECK_EQ(wire_put_end(&w), -EBADMSG);
}

static void nothing_at_all(void)
{
	struct wire_bytes none = {NULL, 0};
	uint8_t buf[2];
	struct wire w;

	wire_init_put(&w, NULL, 0);
	wire_put_raw(&w, NULL, 0);
	CHECK_EQ(wire_put_end(&w), 0);
	wire_put_bytes(&w, none, 9);
	CHECK_EQ(wire_put_end(&w), -EMSGSIZE);
	wire_init_put(&w, buf, 2);
	wire_put_bytes(&w, none, 0);
	CHECK_EQ(wire_put_end(&w), 2);
	wire_init_get(&w, NULL, 0);
	wire_get_raw(&w, NULL, 0);
	CHECK_EQ(wire_finish(&w), 0);
}

HARNESS_MAIN({"integers and bytes are big-endian and in order", byte_order},
	{"a put without room writes nothing and sticks", short_put},
	{"a get without bytes gives zeros and sticks", short_get},
	{"byte strings keep their limit both ways", bytes_limits},
	{"bytes left over are an error of gets only", trailing},
	{"the first error stands", first_error_stands}, {"empty buffers will do", nothing_at_all})
