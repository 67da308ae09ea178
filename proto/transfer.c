/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/transfer.c: codecs of the messages that begin and end a transfer, of what goes with its
 * blocks, and of their header.
 *
 * Owns the layout and the limits of each, with one *_ok function that get and put share.  What is
 * said of one file is in proto/transfer_file.c.
 */
#include "proto/transfer.h"

#include "proto/bundle.h"

#include <errno.h>
#include <string.h>

#define TRANSFER_BLOCK_MULTIPLE 4096u

/* ---- set-up ---- */

/* A list of names, none of which is empty. */
static bool transfer_roots_ok(struct wire_bytes roots)
{
	struct wire_bytes name;

	if (roots.len > TRANSFER_OFFER_ROOTS_MAX)
		return false;
	while (message_next_path(&roots, &name))
		if (!name.len || !transfer_name_ok(name))
			return false;
	return !roots.len;
}

static bool transfer_offer_ok(const struct transfer_offer *m)
{
	return m->engine >= MESSAGE_ENGINE_CREDIT && m->engine <= MESSAGE_ENGINE_PULL &&
	       m->notice >= TRANSFER_NOTICE_BEHIND && m->notice <= TRANSFER_NOTICE_GATHERED &&
	       m->channels >= 1 && m->channels <= MESSAGE_CHANNELS_MAX &&
	       m->block % TRANSFER_BLOCK_MULTIPLE == 0 && m->block >= TRANSFER_BLOCK_MIN &&
	       m->block <= TRANSFER_BLOCK_MAX && m->depth >= 1 && m->depth <= TRANSFER_DEPTH_MAX &&
	       !(m->flags & ~(TRANSFER_OFFER_IMM | TRANSFER_OFFER_NET)) &&
	       m->protect <= MESSAGE_PROTECT_PRIVATE && transfer_roots_ok(m->roots);
}

int transfer_get_offer(struct transfer_offer *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->engine = wire_get_u8(&w);
	m->notice = wire_get_u8(&w);
	m->channels = wire_get_u16(&w);
	m->block = wire_get_u32(&w);
	m->depth = wire_get_u32(&w);
	m->flags = wire_get_u32(&w);
	m->files = wire_get_u64(&w);
	m->bytes = wire_get_u64(&w);
	m->protect = wire_get_u8(&w);
	wire_get_raw(&w, m->salt, sizeof m->salt);
	m->disk = wire_get_u64(&w);
	m->roots = wire_get_bytes(&w, TRANSFER_OFFER_ROOTS_MAX);
	wire_require(&w, transfer_offer_ok(m));
	return wire_finish(&w);
}

ssize_t transfer_put_offer(const struct transfer_offer *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, transfer_offer_ok(m));
	wire_put_u8(&w, m->engine);
	wire_put_u8(&w, m->notice);
	wire_put_u16(&w, m->channels);
	wire_put_u32(&w, m->block);
	wire_put_u32(&w, m->depth);
	wire_put_u32(&w, m->flags);
	wire_put_u64(&w, m->files);
	wire_put_u64(&w, m->bytes);
	wire_put_u8(&w, m->protect);
	wire_put_raw(&w, m->salt, sizeof m->salt);
	wire_put_u64(&w, m->disk);
	wire_put_bytes(&w, m->roots, TRANSFER_OFFER_ROOTS_MAX);
	return wire_put_end(&w);
}

uint32_t transfer_status_bytes(uint32_t depth)
{
	return depth < TRANSFER_STATUS_BYTES_MIN ? TRANSFER_STATUS_BYTES_MIN : depth;
}

/* The last slot, and the last byte of the status region, end inside the address space: nothing
 * wraps. */
static bool transfer_accept_ok(const struct transfer_accept *m)
{
	return m->depth >= 1 && m->depth <= TRANSFER_DEPTH_MAX &&
	       m->stride >= TRANSFER_BLOCK_MIN + TRANSFER_SLOT_OFFSET + TRANSFER_BLOCK_BYTES &&
	       m->base <= UINT64_MAX - (uint64_t)m->depth * m->stride &&
	       m->status_base <= UINT64_MAX - transfer_status_bytes(m->depth) &&
	       !(m->flags & ~(TRANSFER_ACCEPT_IMM | TRANSFER_ACCEPT_BUNDLES));
}

int transfer_get_accept(struct transfer_accept *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->depth = wire_get_u32(&w);
	m->stride = wire_get_u32(&w);
	m->base = wire_get_u64(&w);
	m->key = wire_get_u32(&w);
	m->flags = wire_get_u32(&w);
	m->status_base = wire_get_u64(&w);
	m->status_key = wire_get_u32(&w);
	wire_require(&w, transfer_accept_ok(m));
	return wire_finish(&w);
}

ssize_t transfer_put_accept(const struct transfer_accept *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, transfer_accept_ok(m));
	wire_put_u32(&w, m->depth);
	wire_put_u32(&w, m->stride);
	wire_put_u64(&w, m->base);
	wire_put_u32(&w, m->key);
	wire_put_u32(&w, m->flags);
	wire_put_u64(&w, m->status_base);
	wire_put_u32(&w, m->status_key);
	return wire_put_end(&w);
}

/* ---- credits and notices ---- */

static uint32_t transfer_u32_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint32_t transfer_grant_index(const struct transfer_grant *m, unsigned i)
{
	return transfer_u32_at(m->indices + 4 * (size_t)i);
}

int transfer_get_grant(struct transfer_grant *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->count = wire_get_u16(&w);
	wire_require(&w, m->count >= 1 && m->count <= TRANSFER_GRANTS_MAX);
	m->indices = w.at;
	for (unsigned i = 0; i < m->count && !w.error; i++) {
		uint32_t index = wire_get_u32(&w);
		wire_require(&w, index < TRANSFER_DEPTH_MAX);
	}
	return wire_finish(&w);
}

ssize_t transfer_put_grant(const uint32_t *indices, unsigned count, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, count >= 1 && count <= TRANSFER_GRANTS_MAX);
	wire_put_u16(&w, (uint16_t)count);
	for (unsigned i = 0; i < count && !w.error; i++) {
		wire_require(&w, indices[i] < TRANSFER_DEPTH_MAX);
		wire_put_u32(&w, indices[i]);
	}
	return wire_put_end(&w);
}

int transfer_get_notice(struct transfer_notice_msg *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->index = wire_get_u32(&w);
	wire_require(&w, m->index < TRANSFER_EARLY_FIRST + TRANSFER_EARLY_MAX);
	return wire_finish(&w);
}

ssize_t transfer_put_notice(const struct transfer_notice_msg *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, m->index < TRANSFER_EARLY_FIRST + TRANSFER_EARLY_MAX);
	wire_put_u32(&w, m->index);
	return wire_put_end(&w);
}

uint32_t transfer_gathered_index(const struct transfer_gathered *m, unsigned i)
{
	return transfer_u32_at(m->entries + (size_t)i * TRANSFER_GATHERED_BYTES);
}

const uint8_t *transfer_gathered_header(const struct transfer_gathered *m, unsigned i)
{
	return m->entries + (size_t)i * TRANSFER_GATHERED_BYTES + 4;
}

int transfer_get_gathered(struct transfer_gathered *m, const void *buf, size_t len)
{
	m->count = (unsigned)(len / TRANSFER_GATHERED_BYTES);
	m->entries = buf;
	if (!m->count || m->count > TRANSFER_GATHERED_MAX || len % TRANSFER_GATHERED_BYTES)
		return -EBADMSG;
	for (unsigned i = 0; i < m->count; i++)
		if (transfer_gathered_index(m, i) >= TRANSFER_DEPTH_MAX)
			return -EBADMSG;
	return 0;
}

void transfer_put_gathered(uint32_t index, const uint8_t *header, uint8_t *entry)
{
	entry[0] = (uint8_t)(index >> 24);
	entry[1] = (uint8_t)(index >> 16);
	entry[2] = (uint8_t)(index >> 8);
	entry[3] = (uint8_t)index;
	memcpy(entry + 4, header, TRANSFER_BLOCK_BYTES);
}

/* ---- the end ---- */

static bool transfer_complete_ok(const struct transfer_complete *m)
{
	return m->open <= TRANSFER_OPEN_MAX * BUNDLE_FILES_MAX && (!m->open || !m->errors);
}

int transfer_get_complete(struct transfer_complete *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->files = wire_get_u64(&w);
	m->bytes = wire_get_u64(&w);
	m->errors = wire_get_u64(&w);
	m->open = wire_get_u32(&w);
	wire_require(&w, transfer_complete_ok(m));
	return wire_finish(&w);
}

ssize_t transfer_put_complete(const struct transfer_complete *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, transfer_complete_ok(m));
	wire_put_u64(&w, m->files);
	wire_put_u64(&w, m->bytes);
	wire_put_u64(&w, m->errors);
	wire_put_u32(&w, m->open);
	return wire_put_end(&w);
}

int transfer_get_abort(struct transfer_abort *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->status = wire_get_u16(&w);
	m->text = wire_get_bytes(&w, MESSAGE_TEXT_MAX);
	wire_require(&w, m->status != 0);
	return wire_finish(&w);
}

ssize_t transfer_put_abort(const struct transfer_abort *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, m->status != 0);
	wire_put_u16(&w, m->status);
	wire_put_bytes(&w, m->text, MESSAGE_TEXT_MAX);
	return wire_put_end(&w);
}

/* ---- the block header ---- */

static bool transfer_block_ok(const struct transfer_block *m, uint32_t block_bytes)
{
	if (m->flags & TRANSFER_BLOCK_STORED ? !m->stored || m->stored >= m->length : m->stored)
		return false;
	return m->session != 0 && m->length > 0 && m->length <= block_bytes &&
	       !(m->flags & ~(TRANSFER_BLOCK_LAST | TRANSFER_BLOCK_STORED)) &&
	       m->offset <= TRANSFER_SIZE_MAX - m->length;
}

int transfer_get_block(
	struct transfer_block *m, const uint8_t bytes[TRANSFER_BLOCK_BYTES], uint32_t block_bytes)
{
	struct wire w;
	uint32_t word;

	wire_init_get(&w, bytes, TRANSFER_BLOCK_BYTES);
	m->session = wire_get_u32(&w);
	m->sequence = wire_get_u32(&w);
	m->offset = wire_get_u64(&w);
	m->length = wire_get_u32(&w);
	word = wire_get_u32(&w);
	m->flags = (uint8_t)word;
	m->stored = word >> TRANSFER_BLOCK_STORED_SHIFT;
	m->sum = wire_get_u64(&w);
	wire_require(&w, transfer_block_ok(m, block_bytes));
	return wire_finish(&w);
}

void transfer_put_block(const struct transfer_block *m, uint8_t bytes[TRANSFER_BLOCK_BYTES])
{
	struct wire w;

	wire_init_put(&w, bytes, TRANSFER_BLOCK_BYTES);
	wire_put_u32(&w, m->session);
	wire_put_u32(&w, m->sequence);
	wire_put_u64(&w, m->offset);
	wire_put_u32(&w, m->length);
	wire_put_u32(&w, m->flags | m->stored << TRANSFER_BLOCK_STORED_SHIFT);
	wire_put_u64(&w, m->sum);
}
