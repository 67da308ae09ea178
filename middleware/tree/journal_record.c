/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal_record: see journal_record.h.
 */
#include "tree/journal_record.h"

#include "block/digest.h"
#include "proto/transfer.h"

#include <errno.h>

#define NS_MAX 999999999u

static bool journal_file_ok(const struct journal_file *f)
{
	return f->version == JOURNAL_VERSION && f->block >= TRANSFER_BLOCK_MIN &&
	       f->block <= TRANSFER_BLOCK_MAX && f->size && f->size <= TRANSFER_SIZE_MAX &&
	       f->mtime_ns <= NS_MAX && f->name.len && f->name.len <= JOURNAL_NAME_MAX;
}

static int journal_get_file(struct journal_file *f, const void *data, size_t len)
{
	struct wire w;

	wire_init_get(&w, data, len);
	f->version = wire_get_u16(&w);
	f->block = wire_get_u32(&w);
	f->size = wire_get_u64(&w);
	f->mtime_s = (int64_t)wire_get_u64(&w);
	f->mtime_ns = wire_get_u32(&w);
	f->identity = wire_get_u64(&w);
	f->name = wire_get_bytes(&w, JOURNAL_NAME_MAX);
	wire_require(&w, journal_file_ok(f));
	return wire_finish(&w);
}

ssize_t journal_record_get(struct journal_record *r, const void *buf, size_t size)
{
	const uint8_t *data = (const uint8_t *)buf + JOURNAL_RECORD_HEADER;
	uint32_t length;
	uint16_t zero;
	uint64_t sum;
	struct wire w;

	*r = (struct journal_record){0};
	if (size < JOURNAL_RECORD_MORE)
		return 0;
	wire_init_get(&w, buf, JOURNAL_RECORD_HEADER);
	length = wire_get_u32(&w);
	r->type = wire_get_u16(&w);
	zero = wire_get_u16(&w);
	if (length > JOURNAL_DATA_MAX || length > size - JOURNAL_RECORD_MORE)
		return 0;
	wire_init_get(&w, data + length, sizeof(sum));
	sum = wire_get_u64(&w);
	if (sum != digest_leaf(buf, JOURNAL_RECORD_HEADER + length))
		return 0;
	if (zero)
		return -EBADMSG;
	switch (r->type) {
	case JOURNAL_FILE:
		if (journal_get_file(&r->file, data, length))
			return -EBADMSG;
		break;
	case JOURNAL_BLOCKS:
		if (!length || length % sizeof(struct journal_block))
			return -EBADMSG;
		r->count = length / (unsigned)sizeof(struct journal_block);
		r->blocks = data;
		break;
	case JOURNAL_TREE:
		wire_init_get(&w, data, length);
		wire_require(&w, wire_get_u16(&w) == JOURNAL_VERSION);
		r->name = wire_get_bytes(&w, JOURNAL_NAME_MAX);
		if (wire_finish(&w))
			return -EBADMSG;
		break;
	default:
		return -EBADMSG;
	}
	return (ssize_t)(length + JOURNAL_RECORD_MORE);
}

struct journal_block journal_record_block(const struct journal_record *r, unsigned i)
{
	struct journal_block block;
	struct wire w;

	wire_init_get(&w, r->blocks + i * sizeof(block), sizeof(block));
	block.index = wire_get_u64(&w);
	block.leaf = wire_get_u64(&w);
	return block;
}

/* The data are in their place: header and checksum around them. */
static ssize_t journal_put_around(struct wire *data, uint16_t type, void *buf, size_t size)
{
	size_t length = wire_put_length(data);
	struct wire w;

	if (data->error)
		return data->error;
	wire_init_put(&w, buf, JOURNAL_RECORD_HEADER);
	wire_put_u32(&w, (uint32_t)length);
	wire_put_u16(&w, type);
	wire_put_u16(&w, 0);
	wire_init_put(&w, (uint8_t *)buf + JOURNAL_RECORD_HEADER + length,
		size - JOURNAL_RECORD_HEADER - length);
	wire_put_u64(&w, digest_leaf(buf, JOURNAL_RECORD_HEADER + length));
	return w.error ? w.error : (ssize_t)(length + JOURNAL_RECORD_MORE);
}

ssize_t journal_record_put_file(const struct journal_file *f, void *buf, size_t size)
{
	struct wire w;

	if (size < JOURNAL_RECORD_MORE)
		return -EMSGSIZE;
	wire_init_put(&w, (uint8_t *)buf + JOURNAL_RECORD_HEADER, size - JOURNAL_RECORD_HEADER);
	wire_require(&w, journal_file_ok(f));
	wire_put_u16(&w, f->version);
	wire_put_u32(&w, f->block);
	wire_put_u64(&w, f->size);
	wire_put_u64(&w, (uint64_t)f->mtime_s);
	wire_put_u32(&w, f->mtime_ns);
	wire_put_u64(&w, f->identity);
	wire_put_bytes(&w, f->name, JOURNAL_NAME_MAX);
	return journal_put_around(&w, JOURNAL_FILE, buf, size);
}

ssize_t journal_record_put_blocks(
	const struct journal_block *blocks, unsigned count, void *buf, size_t size)
{
	struct wire w;

	if (size < JOURNAL_RECORD_MORE)
		return -EMSGSIZE;
	wire_init_put(&w, (uint8_t *)buf + JOURNAL_RECORD_HEADER, size - JOURNAL_RECORD_HEADER);
	wire_require(&w, count && count <= JOURNAL_BLOCKS_MAX);
	for (unsigned i = 0; i < count && !w.error; i++) {
		wire_put_u64(&w, blocks[i].index);
		wire_put_u64(&w, blocks[i].leaf);
	}
	return journal_put_around(&w, JOURNAL_BLOCKS, buf, size);
}

ssize_t journal_record_put_tree(struct wire_bytes name, void *buf, size_t size)
{
	struct wire w;

	if (size < JOURNAL_RECORD_MORE)
		return -EMSGSIZE;
	wire_init_put(&w, (uint8_t *)buf + JOURNAL_RECORD_HEADER, size - JOURNAL_RECORD_HEADER);
	wire_put_u16(&w, JOURNAL_VERSION);
	wire_put_bytes(&w, name, JOURNAL_NAME_MAX);
	return journal_put_around(&w, JOURNAL_TREE, buf, size);
}
