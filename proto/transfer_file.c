/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/transfer_file.c: codecs of what the two sides of a transfer say of one file, from FILE to
 * RESULT.
 *
 * Owns the layout and the limits of each, with one *_ok function that get and put share.
 */
#include "proto/transfer.h"

#include "proto/message_fields.h"
#include "proto/transfer_has.h"

#include <string.h>

#define TRANSFER_MODE_MAX 07777u
#define TRANSFER_NS_MAX 999999999u

static bool transfer_component_ok(const uint8_t *data, size_t len)
{
	struct wire_bytes component = {data, len};

	return message_name_ok(component);
}

bool transfer_name_ok(struct wire_bytes name)
{
	const uint8_t *at = name.data, *slash;
	size_t left = name.len;

	if (left == 0)
		return true;
	if (left > TRANSFER_NAME_MAX)
		return false;
	while ((slash = memchr(at, '/', left))) {
		size_t len = (size_t)(slash - at);
		if (!transfer_component_ok(at, len))
			return false;
		at += len + 1;
		left -= len + 1;
		if (left == 0) /* a trailing slash: an empty component */
			return false;
	}
	return transfer_component_ok(at, left);
}

bool transfer_is_bare(const struct transfer_file *m)
{
	return m->kind == TRANSFER_FILE_DIRECTORY || m->kind == TRANSFER_FILE_DIRECTORY_END ||
	       m->kind == TRANSFER_FILE_LINK || m->kind == TRANSFER_FILE_SPECIAL ||
	       m->kind == TRANSFER_FILE_HARD_LINK || m->kind == TRANSFER_FILE_ATTRIBUTES;
}

bool transfer_counts(const struct transfer_file *m)
{
	return m->kind != TRANSFER_FILE_DIRECTORY && m->kind != TRANSFER_FILE_DIRECTORY_END &&
	       m->kind != TRANSFER_FILE_SPECIAL && m->kind != TRANSFER_FILE_ATTRIBUTES;
}

static bool transfer_file_ok(const struct transfer_file *m)
{
	if (m->file == 0 || m->mode > TRANSFER_MODE_MAX || m->mtime_ns > TRANSFER_NS_MAX)
		return false;
	if (!transfer_name_ok(m->name) || !transfer_has_ok(m))
		return false;
	switch (m->kind) {
	case TRANSFER_FILE_STREAM:
		return m->size <= TRANSFER_SIZE_MAX || m->size == MESSAGE_UNKNOWN;
	case TRANSFER_FILE_REGULAR:
	case TRANSFER_FILE_DIRECTORY:
	case TRANSFER_FILE_DIRECTORY_END:
	case TRANSFER_FILE_NULL:
		return m->size <= TRANSFER_SIZE_MAX;
	case TRANSFER_FILE_SPECIAL:
		return m->size == 0 && m->name.len;
	case TRANSFER_FILE_ATTRIBUTES:
		return m->size == 0 && m->name.len && m->there.size <= TRANSFER_SIZE_MAX;
	case TRANSFER_FILE_HARD_LINK:
		return m->size == 0 && m->name.len && m->target.len &&
		       transfer_name_ok(m->target) && m->first && m->first < m->file;
	case TRANSFER_FILE_LINK:
		return m->size == 0 && m->name.len && m->target.len &&
		       !memchr(m->target.data, 0, m->target.len);
	default:
		return false;
	}
}

static void transfer_get_there(struct transfer_file *m, struct wire *w)
{
	const uint8_t seen = wire_get_u8(w);

	wire_require(w, seen <= 1);
	m->seen = seen;
	if (m->seen)
		message_get_seen_fields(w, &m->there);
	else
		m->there.size = wire_get_u64(w);
}

static void transfer_put_there(const struct transfer_file *m, struct wire *w)
{
	wire_put_u8(w, m->seen);
	if (m->seen)
		message_put_seen_fields(w, &m->there);
	else
		wire_put_u64(w, m->there.size);
}

int transfer_get_file(struct transfer_file *m, const void *buf, size_t len)
{
	struct wire w;
	bool has;

	*m = (struct transfer_file){0};
	wire_init_get(&w, buf, len);
	m->file = wire_get_u32(&w);
	m->kind = wire_get_u8(&w);
	has = m->kind & TRANSFER_FILE_HAS;
	m->kind &= (uint8_t)~TRANSFER_FILE_HAS;
	m->mode = wire_get_u32(&w);
	m->mtime_s = (int64_t)wire_get_u64(&w);
	m->mtime_ns = wire_get_u32(&w);
	m->size = wire_get_u64(&w);
	m->name = wire_get_bytes(&w, TRANSFER_NAME_MAX);
	if (m->kind == TRANSFER_FILE_LINK)
		m->target = wire_get_bytes(&w, TRANSFER_TARGET_MAX);
	if (m->kind == TRANSFER_FILE_HARD_LINK) {
		m->first = wire_get_u32(&w);
		m->target = wire_get_bytes(&w, TRANSFER_NAME_MAX);
	}
	if (m->kind == TRANSFER_FILE_ATTRIBUTES)
		transfer_get_there(m, &w);
	if (has)
		transfer_has_get(m, &w);
	wire_require(&w, transfer_file_ok(m));
	return wire_finish(&w);
}

ssize_t transfer_put_file(const struct transfer_file *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_u32(&w, m->file);
	wire_put_u8(&w, (uint8_t)(m->kind | (m->has ? TRANSFER_FILE_HAS : 0)));
	wire_put_u32(&w, m->mode);
	wire_put_u64(&w, (uint64_t)m->mtime_s);
	wire_put_u32(&w, m->mtime_ns);
	wire_put_u64(&w, m->size);
	wire_put_bytes(&w, m->name, TRANSFER_NAME_MAX);
	if (m->kind == TRANSFER_FILE_LINK)
		wire_put_bytes(&w, m->target, TRANSFER_TARGET_MAX);
	if (m->kind == TRANSFER_FILE_HARD_LINK) {
		wire_put_u32(&w, m->first);
		wire_put_bytes(&w, m->target, TRANSFER_NAME_MAX);
	}
	if (m->kind == TRANSFER_FILE_ATTRIBUTES)
		transfer_put_there(m, &w);
	if (m->has)
		transfer_has_put(m, &w);
	wire_require(&w, transfer_file_ok(m));
	return wire_put_end(&w);
}

static bool transfer_have_ok(const struct transfer_have *m)
{
	return m->file != 0 && m->count != 0 && m->count <= TRANSFER_HAVE_MAX &&
	       m->first <= TRANSFER_BLOCKS_MAX - m->count;
}

int transfer_get_have(struct transfer_have *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->file = wire_get_u32(&w);
	m->first = wire_get_u64(&w);
	m->count = wire_get_u16(&w);
	wire_require(&w, transfer_have_ok(m));
	m->leaves = w.at;
	for (unsigned i = 0; i < m->count && !w.error; i++)
		(void)wire_get_u64(&w);
	return wire_finish(&w);
}

ssize_t transfer_put_have(
	const struct transfer_have *m, const uint64_t *leaves, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, transfer_have_ok(m));
	wire_put_u32(&w, m->file);
	wire_put_u64(&w, m->first);
	wire_put_u16(&w, m->count);
	for (unsigned i = 0; i < m->count && !w.error; i++)
		wire_put_u64(&w, leaves[i]);
	return wire_put_end(&w);
}

uint64_t transfer_have_leaf(const struct transfer_have *m, unsigned i)
{
	uint64_t leaf = 0;

	for (unsigned k = 0; k < 8; k++)
		leaf = leaf << 8 | m->leaves[8u * i + k];
	return leaf;
}

int transfer_get_ready(struct transfer_ready *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->file = wire_get_u32(&w);
	m->bytes = wire_get_u64(&w);
	wire_require(&w, m->file != 0 && m->bytes <= TRANSFER_SIZE_MAX);
	return wire_finish(&w);
}

ssize_t transfer_put_ready(const struct transfer_ready *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, m->file != 0 && m->bytes <= TRANSFER_SIZE_MAX);
	wire_put_u32(&w, m->file);
	wire_put_u64(&w, m->bytes);
	return wire_put_end(&w);
}

static bool transfer_hole_ok(const struct transfer_hole *m)
{
	return m->file != 0 && m->length != 0 && m->length <= TRANSFER_SIZE_MAX &&
	       m->offset <= TRANSFER_SIZE_MAX - m->length;
}

int transfer_get_hole(struct transfer_hole *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->file = wire_get_u32(&w);
	m->offset = wire_get_u64(&w);
	m->length = wire_get_u64(&w);
	wire_require(&w, transfer_hole_ok(m));
	return wire_finish(&w);
}

ssize_t transfer_put_hole(const struct transfer_hole *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, transfer_hole_ok(m));
	wire_put_u32(&w, m->file);
	wire_put_u64(&w, m->offset);
	wire_put_u64(&w, m->length);
	return wire_put_end(&w);
}

static bool transfer_file_end_ok(const struct transfer_file_end *m)
{
	return m->file != 0 && m->size <= TRANSFER_SIZE_MAX && m->blocks <= TRANSFER_BLOCKS_MAX;
}

int transfer_get_file_end(struct transfer_file_end *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->file = wire_get_u32(&w);
	m->status = wire_get_u16(&w);
	m->size = wire_get_u64(&w);
	m->blocks = wire_get_u64(&w);
	m->digest = wire_get_u64(&w);
	wire_require(&w, transfer_file_end_ok(m));
	return wire_finish(&w);
}

ssize_t transfer_put_file_end(const struct transfer_file_end *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, transfer_file_end_ok(m));
	wire_put_u32(&w, m->file);
	wire_put_u16(&w, m->status);
	wire_put_u64(&w, m->size);
	wire_put_u64(&w, m->blocks);
	wire_put_u64(&w, m->digest);
	return wire_put_end(&w);
}

static bool transfer_result_ok(const struct transfer_result *m)
{
	return m->file != 0 && m->size <= TRANSFER_SIZE_MAX;
}

int transfer_get_result(struct transfer_result *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->file = wire_get_u32(&w);
	m->status = wire_get_u16(&w);
	m->size = wire_get_u64(&w);
	m->digest = wire_get_u64(&w);
	m->text = wire_get_bytes(&w, MESSAGE_TEXT_MAX);
	wire_require(&w, transfer_result_ok(m));
	return wire_finish(&w);
}

ssize_t transfer_put_result(const struct transfer_result *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, transfer_result_ok(m));
	wire_put_u32(&w, m->file);
	wire_put_u16(&w, m->status);
	wire_put_u64(&w, m->size);
	wire_put_u64(&w, m->digest);
	wire_put_bytes(&w, m->text, MESSAGE_TEXT_MAX);
	return wire_put_end(&w);
}

static void terminate(struct wire_bytes bytes)
{
	if (bytes.data)
		((uint8_t *)(uintptr_t)bytes.data)[bytes.len] = '\0';
}

void transfer_file_terminate(struct transfer_file *m)
{
	terminate(m->name);
	terminate(m->target);
	terminate(m->user);
	terminate(m->group);
	terminate(m->acl);
	terminate(m->default_acl);
}
