/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_fpdu: one FPDU at a time, of a posted request or of an answer to a peer's read:
 * its head and tail, and where its payload lies.
 */
#include "fabric/soft/crc32c.h"
#include "fabric/soft/soft_impl.h"

#include <errno.h>
#include <string.h>

#define ATOMIC_BYTES 8192u /* most of a read response that is copied word by word */
#define WORD 8u

/* Payload of the FPDUs of a message: even parts, so that the last one is not a crumb. */
static uint32_t segment_bytes(uint32_t total)
{
	const uint32_t count = (total + SOFT_SEGMENT_MAX - 1) / SOFT_SEGMENT_MAX;

	if (count <= 1)
		return total;
	return ((total + count - 1) / count + 63) & ~63u;
}

unsigned soft_sge_iov(const struct soft_sge *sge, unsigned count, uint32_t skip, uint32_t bytes,
	struct iovec *out)
{
	unsigned used = 0;

	for (unsigned i = 0; i < count && bytes; i++) {
		uint32_t part;

		if (skip >= sge[i].bytes) {
			skip -= sge[i].bytes;
			continue;
		}
		part = sge[i].bytes - skip;
		if (part > bytes)
			part = bytes;
		out[used++] = (struct iovec){sge[i].addr + skip, part};
		bytes -= part;
		skip = 0;
	}
	return used;
}

bool soft_sges_ok(const struct soft_chan *chan, const struct soft_send *send)
{
	for (unsigned i = 0; i < send->sge_count; i++) {
		const struct soft_sge *sge = &send->sge[i];

		if (sge->key != SOFT_KEY_NONE &&
			soft_pd_check(chan->pd, sge->key, (uintptr_t)sge->addr, sge->bytes,
				FABRIC_LOCAL) != SOFT_ACCESS_OK)
			return false;
	}
	return true;
}

bool soft_fpdu_bounces(const struct soft_chan *chan, const struct soft_response *response)
{
	return chan->crc || response->bytes <= ATOMIC_BYTES;
}

/* An aligned word, and with it each of its bytes: in memory that is shared both are ways to hand
 * something over, and a load of one says nothing of stores to the other. */
static void bounce_word(uint8_t *to, const uint8_t *from)
{
	uint64_t word;

	do {
		word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
		for (uint32_t i = 0; i < WORD; i++)
			to[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
	} while (memcmp(to, &word, WORD));
}

static void bounce(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	if (bytes > ATOMIC_BYTES) {
		memcpy(to, from, bytes);
		return;
	}
	while (bytes) {
		bool whole = (uintptr_t)from % WORD == 0 && bytes >= WORD;
		uint32_t step = whole ? WORD : 1;

		if (whole)
			bounce_word(to, from);
		else
			*to = __atomic_load_n(from, __ATOMIC_ACQUIRE);
		to += step;
		from += step;
		bytes -= step;
	}
}

/* The payload of a read response.  0, or 1 iovec; -EACCES: the memory is gone. */
static int response_payload(struct soft_chan *chan, const struct soft_response *response,
	uint32_t offset, uint32_t bytes, bool keep, struct iovec *iov)
{
	uint8_t *from = (uint8_t *)(uintptr_t)(response->source + offset);

	if (!bytes)
		return 0;
	if (soft_pd_check(chan->pd, response->source_key, response->source + offset, bytes,
		    FABRIC_REMOTE_READ) != SOFT_ACCESS_OK)
		return -EACCES;
	*iov = (struct iovec){from, bytes};
	if (soft_fpdu_bounces(chan, response)) {
		if (!keep)
			bounce(chan->tx.bounce, from, bytes);
		iov->iov_base = chan->tx.bounce;
	}
	return 1;
}

static void read_request_put(const struct soft_send *send, uint8_t *out)
{
	const struct ddp_read read = {
		.sink_stag = soft_read_stag(send),
		.sink_offset = soft_read_offset(send),
		.bytes = send->bytes,
		.source_stag = send->remote_key,
		.source_offset = send->remote_addr,
	};

	ddp_read_put(out, &read);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Head and tail of an FPDU whose payload is in `iov`. */
static void fpdu_frame(const struct soft_chan *chan, const struct soft_send *send,
	const struct ddp_header *header, struct soft_fpdu *fpdu, uint32_t payload,
	const struct iovec *iov, unsigned count)
{
	uint8_t *p = fpdu->head + MPA_LENGTH_BYTES;
	size_t ulpdu = ddp_header_put(p, header), pad;
	uint32_t crc;

	if (header->opcode == DDP_READ_REQUEST) {
		read_request_put(send, p + ulpdu);
		ulpdu += DDP_READ_BYTES;
	}
	fpdu->head_bytes = (uint8_t)(MPA_LENGTH_BYTES + ulpdu);
	fpdu->payload_bytes = payload;
	ulpdu += payload;
	pad = mpa_pad_bytes(ulpdu);
	bytes_put16(fpdu->head, (uint16_t)ulpdu);
	fpdu->tail_bytes = (uint8_t)(pad + MPA_CRC_BYTES);
	memset(fpdu->tail, 0, sizeof(fpdu->tail));
	if (!chan->crc)
		return;
	crc = crc32c(0, fpdu->head, fpdu->head_bytes);
	for (unsigned i = 0; i < count; i++)
		crc = crc32c(crc, iov[i].iov_base, iov[i].iov_len);
	mpa_crc_put(fpdu->tail + pad, crc32c(crc, fpdu->tail, pad));
}

/* Moves the cursor behind a segment, and to the next message when it was the last of its own. */
static void cursor_pass(struct soft_cursor *at, const struct ddp_header *header, uint32_t payload)
{
	at->offset += payload;
	if (!header->last)
		return;
	if (at->kind == SOFT_TX_RESPONSE) {
		at->response++;
	} else if (at->kind == SOFT_TX_NUDGE) {
		at->nudges++;
	} else {
		at->next++;
		at->send_msn += header->opcode == DDP_SEND;
		at->read_msn += header->opcode == DDP_READ_REQUEST;
		at->reads += header->opcode == DDP_READ_REQUEST;
	}
	at->kind = SOFT_TX_NONE;
}

int soft_fpdu_build(struct soft_chan *chan, struct soft_cursor *at, struct soft_fpdu *fpdu,
	bool keep, struct iovec *iov)
{
	struct ddp_header header = {0};
	struct soft_send *send = NULL;
	uint32_t total, payload;
	int count;

	if (at->kind == SOFT_TX_NUDGE) {
		total = payload = 0;
		header = (struct ddp_header){.tagged = true, .opcode = DDP_WRITE};
		count = 0;
	} else if (at->kind == SOFT_TX_RESPONSE) {
		const struct soft_response *response =
			&chan->tx.responses[at->response % SOFT_READS_MAX];

		total = response->bytes;
		payload = smaller(
			chan->crc ? SOFT_BOUNCE_BYTES : segment_bytes(total), total - at->offset);
		header = (struct ddp_header){.tagged = true,
			.opcode = DDP_READ_RESPONSE,
			.stag = response->sink_stag,
			.offset = response->sink_offset + at->offset};
		count = response_payload(chan, response, at->offset, payload, keep, iov);
		if (count < 0)
			return count;
	} else {
		send = &chan->sends[at->next & chan->send_mask];
		if (!soft_sges_ok(chan, send))
			return -EACCES;
		total = send->opcode == FABRIC_READ ? 0 : send->bytes;
		payload = smaller(segment_bytes(total), total - at->offset);
		if (send->opcode == FABRIC_WRITE)
			header = (struct ddp_header){.tagged = true,
				.opcode = DDP_WRITE,
				.stag = send->remote_key,
				.offset = send->remote_addr + at->offset};
		else if (send->opcode == FABRIC_READ)
			header = (struct ddp_header){.opcode = DDP_READ_REQUEST,
				.queue = DDP_QUEUE_READ,
				.msn = at->read_msn};
		else
			header = (struct ddp_header){.opcode = DDP_SEND,
				.queue = DDP_QUEUE_SEND,
				.msn = at->send_msn,
				.mo = at->offset};
		count = (int)soft_sge_iov(send->sge, send->sge_count, at->offset, payload, iov);
	}
	header.last = at->offset + payload == total;

	if (!keep)
		fpdu_frame(chan, send, &header, fpdu, payload, iov, (unsigned)count);
	cursor_pass(at, &header, payload);
	return count;
}

size_t soft_fpdu_bytes(const struct soft_fpdu *fpdu)
{
	return (size_t)fpdu->head_bytes + fpdu->payload_bytes + fpdu->tail_bytes;
}
