/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/ddp: see the header.
 *
 * The two control octets: DDP [tagged 1][last 1][reserved 4][version 2], RDMAP [version 2]
 * [reserved 2][opcode 4].  Reserved bits are sent as zero and not looked at.
 */
#include "fabric/soft/ddp.h"

#include <errno.h>
#include <string.h>

#include "fabric/bytes.h"

#define CONTROL_TAGGED 0x80
#define CONTROL_LAST 0x40
#define CONTROL_VERSION_MASK 0x03
#define DDP_VERSION_1 0x01
#define RDMAP_VERSION_MASK 0xc0
#define RDMAP_VERSION_1 0x40
#define RDMAP_OPCODE_MASK 0x0f

/* Terminate control: what follows the first four octets. */
#define TERMINATE_LENGTH 0x80
#define TERMINATE_DDP 0x40
#define TERMINATE_RDMAP 0x20
#define TERMINATE_RESERVED 0x1f
#define TERMINATE_FIXED_BYTES 4

size_t ddp_header_put(uint8_t *out, const struct ddp_header *header)
{
	out[0] = (uint8_t)(DDP_VERSION_1 | (header->tagged ? CONTROL_TAGGED : 0) |
			   (header->last ? CONTROL_LAST : 0));
	out[1] = RDMAP_VERSION_1 | (header->opcode & RDMAP_OPCODE_MASK);
	bytes_put32(out + 2, header->stag);
	if (header->tagged) {
		bytes_put64(out + 6, header->offset);
		return DDP_TAGGED_BYTES;
	}
	bytes_put32(out + 6, header->queue);
	bytes_put32(out + 10, header->msn);
	bytes_put32(out + 14, header->mo);
	return DDP_UNTAGGED_BYTES;
}

static bool opcode_is_tagged(uint8_t opcode)
{
	return opcode == DDP_WRITE || opcode == DDP_READ_RESPONSE;
}

static uint32_t opcode_queue(uint8_t opcode)
{
	if (opcode == DDP_READ_REQUEST)
		return DDP_QUEUE_READ;
	return opcode == DDP_TERMINATE ? DDP_QUEUE_TERMINATE : DDP_QUEUE_SEND;
}

int ddp_header_get(
	const uint8_t *in, size_t bytes, struct ddp_header *header, struct ddp_error *error)
{
	if (bytes < 2)
		return 0;
	*header = (struct ddp_header){
		.tagged = in[0] & CONTROL_TAGGED,
		.last = in[0] & CONTROL_LAST,
		.opcode = in[1] & RDMAP_OPCODE_MASK,
	};
	if ((in[0] & CONTROL_VERSION_MASK) != DDP_VERSION_1) {
		*error = header->tagged ? DDP_TAGGED_VERSION : DDP_UNTAGGED_VERSION;
		return -EPROTO;
	}
	if ((in[1] & RDMAP_VERSION_MASK) != RDMAP_VERSION_1) {
		*error = RDMAP_VERSION;
		return -EPROTO;
	}
	if (header->opcode > DDP_TERMINATE || header->tagged != opcode_is_tagged(header->opcode)) {
		*error = RDMAP_OPCODE;
		return -EPROTO;
	}
	if (bytes < (header->tagged ? DDP_TAGGED_BYTES : DDP_UNTAGGED_BYTES))
		return 0;
	header->stag = bytes_get32(in + 2);
	if (header->tagged) {
		header->offset = bytes_get64(in + 6);
		return DDP_TAGGED_BYTES;
	}
	header->queue = bytes_get32(in + 6);
	header->msn = bytes_get32(in + 10);
	header->mo = bytes_get32(in + 14);
	if (header->queue != opcode_queue(header->opcode)) {
		*error = DDP_INVALID_QUEUE;
		return -EPROTO;
	}
	return DDP_UNTAGGED_BYTES;
}

void ddp_read_put(uint8_t *out, const struct ddp_read *read)
{
	bytes_put32(out, read->sink_stag);
	bytes_put64(out + 4, read->sink_offset);
	bytes_put32(out + 12, read->bytes);
	bytes_put32(out + 16, read->source_stag);
	bytes_put64(out + 20, read->source_offset);
}

void ddp_read_get(const uint8_t *in, struct ddp_read *read)
{
	read->sink_stag = bytes_get32(in);
	read->sink_offset = bytes_get64(in + 4);
	read->bytes = bytes_get32(in + 12);
	read->source_stag = bytes_get32(in + 16);
	read->source_offset = bytes_get64(in + 20);
}

size_t ddp_terminate_put(uint8_t *out, const struct ddp_terminate *term)
{
	uint8_t *p = out + TERMINATE_FIXED_BYTES;

	memset(out, 0, TERMINATE_FIXED_BYTES);
	out[0] = (uint8_t)(term->error.layer << 4 | (term->error.type & 0x0f));
	out[1] = term->error.code;
	if (!term->has_segment)
		return TERMINATE_FIXED_BYTES;
	out[2] = TERMINATE_LENGTH | TERMINATE_DDP | (term->has_read ? TERMINATE_RDMAP : 0);
	bytes_put16(p, term->segment_bytes);
	p += 2;
	p += ddp_header_put(p, &term->header);
	if (term->has_read) {
		ddp_read_put(p, &term->read);
		p += DDP_READ_BYTES;
	}
	return (size_t)(p - out);
}

/*
 * The kernel's siw, on hosts that are little-endian, puts the fields of each octet in the opposite
 * order: [type 4][layer 4], and the flags M, D, R from the right on.  Its flags lie where others
 * must have zeros, which tells it.  Without a flag the two cannot be told apart: a local
 * catastrophic error, the usual one, is 0 in both; CRCs and versions are read as others mean them.
 */
static uint8_t terminate_control_get(const uint8_t *in, struct ddp_error *error)
{
	const uint8_t flags = in[2];

	*error = DDP_ERROR(in[0] >> 4, in[0] & 0x0f, in[1]);
	if (!(flags & TERMINATE_RESERVED))
		return flags;
	*error = DDP_ERROR(in[0] & 0x0f, in[0] >> 4, in[1]);
	return (uint8_t)((flags & 1 ? TERMINATE_LENGTH : 0) | (flags & 2 ? TERMINATE_DDP : 0) |
			 (flags & 4 ? TERMINATE_RDMAP : 0));
}

int ddp_terminate_get(const uint8_t *in, size_t bytes, struct ddp_terminate *term)
{
	struct ddp_error ignored;
	uint8_t flags;
	int len;

	memset(term, 0, sizeof(*term));
	if (bytes < TERMINATE_FIXED_BYTES)
		return -EPROTO;
	flags = terminate_control_get(in, &term->error);
	in += TERMINATE_FIXED_BYTES;
	bytes -= TERMINATE_FIXED_BYTES;
	if (flags & TERMINATE_LENGTH) {
		if (bytes < 2)
			return -EPROTO;
		term->segment_bytes = bytes_get16(in);
		in += 2;
		bytes -= 2;
	}
	if (!(flags & TERMINATE_DDP))
		return 0;
	len = ddp_header_get(in, bytes, &term->header, &ignored);
	if (!len)
		return -EPROTO;
	if (len < 0)
		return 0;
	term->has_segment = flags & TERMINATE_LENGTH;
	in += len;
	bytes -= (size_t)len;
	if (!(flags & TERMINATE_RDMAP) || term->header.opcode != DDP_READ_REQUEST)
		return 0;
	if (bytes < DDP_READ_BYTES)
		return -EPROTO;
	term->has_read = true;
	ddp_read_get(in, &term->read);
	return 0;
}

const char *ddp_error_text(struct ddp_error error)
{
	static const struct {
		struct ddp_error error;
		const char *text;
	} texts[] = {
		{{0, 0, 0x00}, "local catastrophic error of RDMAP"},
		{{0, 1, 0x00}, "invalid STag in a read"},
		{{0, 1, 0x01}, "base or bounds violation in a read"},
		{{0, 1, 0x02}, "access rights violation"},
		{{0, 1, 0x03}, "STag of another stream in a read"},
		{{0, 1, 0x04}, "offset wraps in a read"},
		{{0, 1, 0x09}, "STag cannot be invalidated"},
		{{0, 2, 0x05}, "invalid RDMAP version"},
		{{0, 2, 0x06}, "unexpected opcode"},
		{{0, 2, 0x07}, "catastrophic error of the stream"},
		{{0, 2, 0x08}, "catastrophic error"},
		{{0, 2, 0x09}, "STag cannot be invalidated"},
		{{1, 0, 0x00}, "local catastrophic error of DDP"},
		{{1, 1, 0x00}, "invalid STag"},
		{{1, 1, 0x01}, "base or bounds violation"},
		{{1, 1, 0x02}, "STag of another stream"},
		{{1, 1, 0x03}, "offset wraps"},
		{{1, 1, 0x04}, "invalid DDP version (tagged)"},
		{{1, 2, 0x01}, "invalid queue number"},
		{{1, 2, 0x02}, "no receive posted"},
		{{1, 2, 0x03}, "message number out of range"},
		{{1, 2, 0x04}, "invalid message offset"},
		{{1, 2, 0x05}, "message longer than the receive"},
		{{1, 2, 0x06}, "invalid DDP version (untagged)"},
		{{2, 0, 0x01}, "TCP stream lost"},
		{{2, 0, 0x02}, "CRC mismatch"},
		{{2, 0, 0x03}, "FPDU start lost"},
		{{2, 0, 0x04}, "invalid MPA frame"},
		{{2, 0, 0x05}, "local catastrophic error of MPA"},
		{{2, 0, 0x06}, "read depth of the peer too small"},
		{{2, 0, 0x07}, "no common ready-to-receive message"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (ddp_error_is(texts[i].error, error))
			return texts[i].text;
	return "unspecified error";
}
