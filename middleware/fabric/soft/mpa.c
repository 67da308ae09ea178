/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/mpa: see the header.
 *
 * A frame is: key (16 bytes), flags (8 bits), revision (8), length of the private data (16), then
 * the private data; with flag S it begins with IRD and ORD, 16 bits each, of which the upper two
 * are the flags A, B and C, D.
 */
#include "fabric/soft/mpa.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fabric/bytes.h"

#define KEY_BYTES 16
#define FLAG_MARKERS 0x80
#define FLAG_CRC 0x40
#define FLAG_REJECT 0x20
#define FLAG_ENHANCED 0x10
#define DEPTH_UPPER 0x8000
#define DEPTH_LOWER 0x4000

static const char *key_of(enum mpa_kind kind)
{
	return kind == MPA_REQUEST ? "MPA ID Req Frame" : "MPA ID Rep Frame";
}

static uint16_t depth_put(uint16_t depth, bool upper, bool lower)
{
	uint16_t value = depth < MPA_DEPTH_MAX ? depth : MPA_DEPTH_MAX;

	if (upper)
		value |= DEPTH_UPPER;
	if (lower)
		value |= DEPTH_LOWER;
	return value;
}

size_t mpa_frame_put(uint8_t *out, const struct mpa_frame *frame)
{
	const size_t extra = frame->enhanced ? MPA_ENHANCED_BYTES : 0;
	uint8_t flags = 0;

	assert(frame->priv_len + extra <= MPA_PRIVATE_MAX);
	if (frame->markers)
		flags |= FLAG_MARKERS;
	if (frame->crc)
		flags |= FLAG_CRC;
	if (frame->reject)
		flags |= FLAG_REJECT;
	if (frame->enhanced)
		flags |= FLAG_ENHANCED;
	memcpy(out, key_of(frame->kind), KEY_BYTES);
	out[16] = flags;
	out[17] = frame->revision;
	bytes_put16(out + 18, (uint16_t)(frame->priv_len + extra));
	out += MPA_FRAME_FIXED_BYTES;
	if (frame->enhanced) {
		bytes_put16(out, depth_put(frame->ird, frame->peer_to_peer, frame->rtr_fpdu));
		bytes_put16(out + 2, depth_put(frame->ord, frame->rtr_write, frame->rtr_read));
	}
	if (frame->priv_len)
		memcpy(out + extra, frame->priv, frame->priv_len);
	return MPA_FRAME_FIXED_BYTES + extra + frame->priv_len;
}

int mpa_frame_get(
	const uint8_t *in, size_t bytes, enum mpa_kind kind, struct mpa_frame *frame, size_t *need)
{
	size_t len;

	/* A stranger is told by his first byte, not after a whole header. */
	if (memcmp(in, key_of(kind), bytes < KEY_BYTES ? bytes : KEY_BYTES) != 0)
		return -EPROTO;
	*need = MPA_FRAME_FIXED_BYTES;
	if (bytes < MPA_FRAME_FIXED_BYTES)
		return -EAGAIN;
	*frame = (struct mpa_frame){
		.kind = kind,
		.revision = in[17],
		.markers = in[16] & FLAG_MARKERS,
		.crc = in[16] & FLAG_CRC,
		.reject = kind == MPA_REPLY && (in[16] & FLAG_REJECT),
		/* In revision 1 the bit is reserved, and not looked at. */
		.enhanced = in[17] >= 2 && (in[16] & FLAG_ENHANCED),
	};
	len = bytes_get16(in + 18);
	if (len > MPA_PRIVATE_MAX || (frame->enhanced && len < MPA_ENHANCED_BYTES))
		return -EPROTO;
	*need = MPA_FRAME_FIXED_BYTES + len;
	if (bytes < *need)
		return -EAGAIN;
	frame->priv = in + MPA_FRAME_FIXED_BYTES;
	frame->priv_len = len;
	if (frame->enhanced) {
		const uint16_t ird = bytes_get16(frame->priv), ord = bytes_get16(frame->priv + 2);

		frame->ird = ird & MPA_DEPTH_MAX;
		frame->ord = ord & MPA_DEPTH_MAX;
		frame->peer_to_peer = ird & DEPTH_UPPER;
		frame->rtr_fpdu = ird & DEPTH_LOWER;
		frame->rtr_write = ord & DEPTH_UPPER;
		frame->rtr_read = ord & DEPTH_LOWER;
		frame->priv += MPA_ENHANCED_BYTES;
		frame->priv_len -= MPA_ENHANCED_BYTES;
	}
	return (int)*need;
}

void mpa_crc_put(uint8_t *out, uint32_t crc)
{
	crc = htole32(crc);
	memcpy(out, &crc, sizeof(crc));
}

uint32_t mpa_crc_get(const uint8_t *in)
{
	uint32_t crc;

	memcpy(&crc, in, sizeof(crc));
	return le32toh(crc);
}
