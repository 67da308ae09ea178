/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of fabric/soft/mpa: exact bytes of frames, every prefix and every wrong field, FPDU
 * arithmetic.
 */
#include "fabric/soft/mpa.h"

#include "tests/harness.h"

static void test_request_revision_1(void)
{
	static const uint8_t want[] = "MPA ID Req Frame\x00\x01\x00\x03"
				      "abc";
	const struct mpa_frame frame = {
		.kind = MPA_REQUEST, .revision = 1, .priv = (const uint8_t *)"abc", .priv_len = 3};
	uint8_t out[MPA_FRAME_MAX];
	struct mpa_frame in;
	size_t need;

	CHECK_EQ(mpa_frame_put(out, &frame), sizeof(want) - 1);
	CHECK(!memcmp(out, want, sizeof(want) - 1));
	CHECK_EQ(mpa_frame_get(out, sizeof(want) - 1, MPA_REQUEST, &in, &need), sizeof(want) - 1);
	CHECK_EQ(in.revision, 1);
	CHECK(!in.crc && !in.markers && !in.enhanced && !in.reject);
	CHECK_EQ(in.priv_len, 3);
	CHECK(!memcmp(in.priv, "abc", 3));
}

static void test_reply_enhanced(void)
{
	/* flags C, R, S; IRD 16 with A; ORD 5 with C */
	static const uint8_t want[] = "MPA ID Rep Frame\x70\x02\x00\x06\x80\x10\x80\x05xy";
	const struct mpa_frame frame = {.kind = MPA_REPLY,
		.revision = 2,
		.crc = true,
		.reject = true,
		.enhanced = true,
		.ird = 16,
		.ord = 5,
		.peer_to_peer = true,
		.rtr_write = true,
		.priv = (const uint8_t *)"xy",
		.priv_len = 2};
	uint8_t out[MPA_FRAME_MAX];
	struct mpa_frame in;
	size_t need;

	CHECK_EQ(mpa_frame_put(out, &frame), 26);
	CHECK(!memcmp(out, want, 26));
	CHECK_EQ(mpa_frame_get(out, 26, MPA_REPLY, &in, &need), 26);
	CHECK(in.crc && in.reject && in.enhanced && !in.markers);
	CHECK_EQ(in.ird, 16);
	CHECK_EQ(in.ord, 5);
	CHECK(in.peer_to_peer && in.rtr_write && !in.rtr_fpdu && !in.rtr_read);
	CHECK_EQ(in.priv_len, 2);
	CHECK(!memcmp(in.priv, "xy", 2));
}

static void test_all_flags(void)
{
	for (unsigned bits = 0; bits < 256; bits++) {
		const struct mpa_frame frame = {.kind = MPA_REPLY,
			.revision = 2,
			.markers = bits & 1,
			.crc = bits & 2,
			.reject = bits & 4,
			.enhanced = true,
			.ird = (uint16_t)(bits * 60),
			.ord = (uint16_t)bits,
			.peer_to_peer = bits & 8,
			.rtr_fpdu = bits & 16,
			.rtr_write = bits & 32,
			.rtr_read = bits & 64};
		uint8_t out[MPA_FRAME_MAX];
		struct mpa_frame in;
		size_t need;

		CHECK_EQ(mpa_frame_put(out, &frame), 24);
		CHECK_EQ(mpa_frame_get(out, 24, MPA_REPLY, &in, &need), 24);
		CHECK(in.markers == frame.markers && in.crc == frame.crc &&
			in.reject == frame.reject);
		CHECK(in.peer_to_peer == frame.peer_to_peer && in.rtr_fpdu == frame.rtr_fpdu);
		CHECK(in.rtr_write == frame.rtr_write && in.rtr_read == frame.rtr_read);
		CHECK(in.ird == frame.ird && in.ord == frame.ord);
	}
}

static void test_every_prefix(void)
{
	const struct mpa_frame frame = {.kind = MPA_REQUEST,
		.revision = 2,
		.enhanced = true,
		.priv = (const uint8_t *)"private",
		.priv_len = 7};
	uint8_t out[MPA_FRAME_MAX];
	const size_t len = mpa_frame_put(out, &frame);
	struct mpa_frame in;
	size_t need;

	for (size_t i = 0; i < len; i++) {
		uint8_t *copy = malloc(i ? i : 1); /* so that reading too far is seen */

		memcpy(copy, out, i);
		CHECK_EQ(mpa_frame_get(copy, i, MPA_REQUEST, &in, &need), -EAGAIN);
		CHECK(need > i && need <= len);
		CHECK(need == (i < MPA_FRAME_FIXED_BYTES ? MPA_FRAME_FIXED_BYTES : len));
		free(copy);
	}
}

static void test_wrong_fields(void)
{
	const struct mpa_frame frame = {.kind = MPA_REQUEST, .revision = 2, .enhanced = true};
	uint8_t good[MPA_FRAME_MAX], bad[MPA_FRAME_MAX];
	const size_t len = mpa_frame_put(good, &frame);
	struct mpa_frame in;
	size_t need;

	for (size_t i = 0; i < 16; i++) {
		memcpy(bad, good, len);
		bad[i] ^= 0x20;
		CHECK_EQ(mpa_frame_get(bad, len, MPA_REQUEST, &in, &need), -EPROTO);
		/* and as soon as it is seen */
		CHECK_EQ(mpa_frame_get(bad, i + 1, MPA_REQUEST, &in, &need), -EPROTO);
	}
	CHECK_EQ(mpa_frame_get(good, len, MPA_REPLY, &in, &need), -EPROTO);
	/* private data too long; too short for the enhanced header */
	memcpy(bad, good, len);
	bad[18] = 0x02, bad[19] = 0x01;
	CHECK_EQ(mpa_frame_get(bad, len, MPA_REQUEST, &in, &need), -EPROTO);
	bad[18] = 0xff, bad[19] = 0xff;
	CHECK_EQ(mpa_frame_get(bad, len, MPA_REQUEST, &in, &need), -EPROTO);
	for (uint8_t i = 0; i < MPA_ENHANCED_BYTES; i++) {
		bad[18] = 0, bad[19] = i;
		CHECK_EQ(mpa_frame_get(bad, len, MPA_REQUEST, &in, &need), -EPROTO);
	}
	/* in revision 1 the flag is reserved: the four bytes are private data */
	memcpy(bad, good, len);
	bad[17] = 1;
	CHECK_EQ(mpa_frame_get(bad, len, MPA_REQUEST, &in, &need), len);
	CHECK(!in.enhanced);
	CHECK_EQ(in.priv_len, 4);
	/* a request cannot reject */
	bad[16] |= 0x20;
	CHECK_EQ(mpa_frame_get(bad, len, MPA_REQUEST, &in, &need), len);
	CHECK(!in.reject);
}

static void test_fpdu_arithmetic(void)
{
	for (size_t ulpdu = 0; ulpdu <= MPA_ULPDU_MAX; ulpdu++) {
		const size_t pad = mpa_pad_bytes(ulpdu);

		CHECK(pad < 4);
		CHECK((MPA_LENGTH_BYTES + ulpdu + pad) % 4 == 0);
		CHECK_EQ(mpa_trailer_bytes(ulpdu), pad + 4);
	}
}

static void test_crc_order(void)
{
	uint8_t out[4];

	mpa_crc_put(out, 0x01020304);
	CHECK(!memcmp(out, "\x04\x03\x02\x01", 4));
	CHECK_EQ(mpa_crc_get(out), 0x01020304);
}

HARNESS_MAIN({"request-revision-1", test_request_revision_1},
	{"reply-enhanced", test_reply_enhanced}, {"all-flags", test_all_flags},
	{"every-prefix", test_every_prefix}, {"wrong-fields", test_wrong_fields},
	{"fpdu-arithmetic", test_fpdu_arithmetic}, {"crc-order", test_crc_order})
