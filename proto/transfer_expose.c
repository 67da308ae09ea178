/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/transfer_expose: see transfer_expose.h.
 */
#include "proto/transfer_expose.h"

#include <string.h>

#define RECORD_LENGTH_BITS 25
#define RECORD_CHECK_BITS 7

uint32_t transfer_records_bytes(uint32_t blocks)
{
	uint32_t bytes = blocks * TRANSFER_RECORD_BYTES;

	return bytes < TRANSFER_STATUS_BYTES_MIN ? TRANSFER_STATUS_BYTES_MIN : bytes;
}

static bool transfer_expose_ok(const struct transfer_expose *m)
{
	return m->blocks >= 1 && m->blocks <= TRANSFER_DEPTH_MAX &&
	       m->stride >= TRANSFER_BLOCK_MIN + TRANSFER_SLOT_OFFSET + TRANSFER_BLOCK_BYTES &&
	       m->base <= UINT64_MAX - (uint64_t)m->blocks * m->stride &&
	       m->records_base <= UINT64_MAX - transfer_records_bytes(m->blocks) &&
	       m->given_base <= UINT64_MAX - m->blocks;
}

int transfer_get_expose(struct transfer_expose *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->blocks = wire_get_u32(&w);
	m->stride = wire_get_u32(&w);
	m->base = wire_get_u64(&w);
	m->key = wire_get_u32(&w);
	m->records_base = wire_get_u64(&w);
	m->records_key = wire_get_u32(&w);
	m->given_base = wire_get_u64(&w);
	m->given_key = wire_get_u32(&w);
	wire_require(&w, transfer_expose_ok(m));
	return wire_finish(&w);
}

ssize_t transfer_put_expose(const struct transfer_expose *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, transfer_expose_ok(m));
	wire_put_u32(&w, m->blocks);
	wire_put_u32(&w, m->stride);
	wire_put_u64(&w, m->base);
	wire_put_u32(&w, m->key);
	wire_put_u64(&w, m->records_base);
	wire_put_u32(&w, m->records_key);
	wire_put_u64(&w, m->given_base);
	wire_put_u32(&w, m->given_key);
	return wire_put_end(&w);
}

static uint32_t transfer_record_check(uint32_t sequence)
{
	uint32_t check = 0;

	for (; sequence; sequence >>= RECORD_CHECK_BITS)
		check ^= sequence;
	return check & ((1u << RECORD_CHECK_BITS) - 1);
}

uint64_t transfer_put_record(const struct transfer_record *m)
{
	uint8_t bytes[TRANSFER_RECORD_BYTES];
	uint64_t word;
	struct wire w;

	wire_init_put(&w, bytes, sizeof bytes);
	wire_put_u32(&w, m->sequence);
	wire_put_u32(&w, transfer_record_check(m->sequence) << RECORD_LENGTH_BITS | m->length);
	memcpy(&word, bytes, sizeof word);
	return word;
}

int transfer_get_record(struct transfer_record *m, uint64_t word)
{
	uint8_t bytes[TRANSFER_RECORD_BYTES];
	struct wire w;

	memcpy(bytes, &word, sizeof bytes);
	wire_init_get(&w, bytes, sizeof bytes);
	m->sequence = wire_get_u32(&w);
	m->length = wire_get_u32(&w);
	wire_require(&w, m->length >> RECORD_LENGTH_BITS == transfer_record_check(m->sequence));
	m->length &= (1u << RECORD_LENGTH_BITS) - 1;
	return wire_finish(&w);
}
