/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_inline.c: codecs of PUT and GET.
 *
 * Owns their layout.  What a FILE may say is proto/transfer's.
 */
#include "proto/message_inline.h"

#include <errno.h>

static bool whole_ok(const struct message_whole *m)
{
	if (m->file.kind != TRANSFER_FILE_REGULAR &&
		(!transfer_is_bare(&m->file) || m->file.kind == TRANSFER_FILE_HARD_LINK ||
			m->data.len))
		return false;
	/* what is there already is a transfer's affair */
	return m->file.file == 1 && m->file.kind != TRANSFER_FILE_ATTRIBUTES &&
	       !(m->file.has & (TRANSFER_HAS_NAMES | TRANSFER_HAS_HOLES)) &&
	       m->data.len <= MESSAGE_INLINE_MAX && m->file.size == m->data.len;
}

/* The length is said, and must be that of the rest: what is wrong in between is not taken for a
 * part of the file. */
static void put_whole(struct wire *w, const struct message_whole *m)
{
	struct message_whole said = *m;

	wire_require(w, !transfer_get_file(&said.file, m->file_data.data, m->file_data.len) &&
				whole_ok(&said));
	wire_put_u64(w, m->digest);
	wire_put_bytes(w, m->file_data, UINT16_MAX);
	wire_put_u32(w, (uint32_t)m->data.len);
	wire_put_raw(w, m->data.data, m->data.len);
}

static void get_whole(struct wire *w, struct message_whole *m)
{
	m->digest = wire_get_u64(w);
	m->file_data = wire_get_bytes(w, UINT16_MAX);
	m->data.len = wire_get_u32(w);
	wire_require(w, !w->error && m->data.len == wire_left(w));
	wire_require(w, !w->error &&
				!transfer_get_file(&m->file, m->file_data.data, m->file_data.len) &&
				whole_ok(m));
	m->data.data = w->at;
	if (!w->error)
		w->at = w->end;
}

/* ---- PUT ---- */

static bool put_ok(const struct message_put *m)
{
	const uint32_t fsync = m->flags & MESSAGE_DATA_FSYNC;

	return !(m->flags & ~MESSAGE_PUT_FLAGS) && !(fsync & (fsync - 1)) &&
	       message_path_ok(m->path);
}

/* A name is for what goes beneath a directory; that may be told of itself. */
static bool name_ok(uint32_t flags, const struct transfer_file *file)
{
	if (file->kind != TRANSFER_FILE_REGULAR)
		return flags & MESSAGE_DATA_INTO;
	return flags & MESSAGE_DATA_INTO ? file->name.len != 0 : !file->name.len;
}

int message_get_put(struct message_put *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->flags = wire_get_u32(&w);
	m->path = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	wire_require(&w, !w.error && put_ok(m));
	get_whole(&w, &m->whole);
	wire_require(&w, !w.error && name_ok(m->flags, &m->whole.file));
	return wire_finish(&w);
}

ssize_t message_put_put(const struct message_put *m, void *buf, size_t size)
{
	struct transfer_file file;
	struct wire w;

	wire_init_put(&w, buf, size < MESSAGE_DATA_MAX ? size : MESSAGE_DATA_MAX);
	wire_require(&w, put_ok(m));
	wire_put_u32(&w, m->flags);
	wire_put_bytes(&w, m->path, MESSAGE_PATH_MAX);
	put_whole(&w, &m->whole);
	wire_require(&w, !w.error &&
				 !transfer_get_file(
					 &file, m->whole.file_data.data, m->whole.file_data.len) &&
				 name_ok(m->flags, &file));
	return wire_put_end(&w);
}

static bool put_reply_ok(const struct message_put_reply *m)
{
	return m->into <= 1 && (!m->status || !m->digest);
}

int message_get_put_reply(struct message_put_reply *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->into = wire_get_u8(&w);
	m->status = wire_get_u16(&w);
	m->digest = wire_get_u64(&w);
	m->text = wire_get_bytes(&w, MESSAGE_TEXT_MAX);
	wire_require(&w, put_reply_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_put_reply(const struct message_put_reply *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, put_reply_ok(m));
	wire_put_u8(&w, m->into);
	wire_put_u16(&w, m->status);
	wire_put_u64(&w, m->digest);
	wire_put_bytes(&w, m->text, MESSAGE_TEXT_MAX);
	return wire_put_end(&w);
}

/* ---- GET ---- */

static bool get_ok(const struct message_get *m)
{
	return !(m->flags & ~MESSAGE_GET_FLAGS) && m->most >= 1 && m->most <= MESSAGE_INLINE_MAX &&
	       message_path_ok(m->path);
}

int message_get_get(struct message_get *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->flags = wire_get_u32(&w);
	m->most = wire_get_u32(&w);
	m->path = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	wire_require(&w, !w.error && get_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_get(const struct message_get *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, get_ok(m));
	wire_put_u32(&w, m->flags);
	wire_put_u32(&w, m->most);
	wire_put_bytes(&w, m->path, MESSAGE_PATH_MAX);
	return wire_put_end(&w);
}

static bool reply_file_ok(const struct transfer_file *file)
{
	return file->kind == TRANSFER_FILE_REGULAR && !file->name.len;
}

int message_get_get_reply(struct message_get_reply *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->here = wire_get_u8(&w);
	wire_require(&w, m->here <= 1);
	m->whole = (struct message_whole){0};
	if (m->here) {
		get_whole(&w, &m->whole);
		wire_require(&w, !w.error && reply_file_ok(&m->whole.file));
	}
	return wire_finish(&w);
}

ssize_t message_put_get_reply(const struct message_get_reply *m, void *buf, size_t size)
{
	struct transfer_file file;
	struct wire w;

	wire_init_put(&w, buf, size < MESSAGE_DATA_MAX ? size : MESSAGE_DATA_MAX);
	wire_require(&w, m->here <= 1);
	wire_put_u8(&w, m->here);
	if (m->here) {
		put_whole(&w, &m->whole);
		wire_require(&w, !w.error &&
					 !transfer_get_file(&file, m->whole.file_data.data,
						 m->whole.file_data.len) &&
					 reply_file_ok(&file));
	}
	return wire_put_end(&w);
}
