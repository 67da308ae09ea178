/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message.c: codecs of the session messages.
 *
 * Owns the layout and the limits of each.  One *_ok function a message states which values may
 * cross; its get and its put both ask it, so neither accepts what the other refuses.
 */
#include "proto/message.h"

#include "proto/message_fields.h"
#include "proto/transfer.h" /* limits of a block */

#include <errno.h>
#include <string.h>

#define MESSAGE_MODE_MAX 07777u
#define MESSAGE_LIST_HEAD_BYTES 3u
#define MESSAGE_ENTRY_MIN 36u /* attributes 33, length 16, one byte of name */

/* ---- names ---- */

static bool message_has_nul(struct wire_bytes bytes)
{
	return bytes.len && memchr(bytes.data, 0, bytes.len);
}

bool message_path_ok(struct wire_bytes path)
{
	return path.len >= 1 && path.len <= MESSAGE_PATH_MAX && !message_has_nul(path);
}

bool message_name_ok(struct wire_bytes name)
{
	if (name.len < 1 || name.len > MESSAGE_NAME_MAX || message_has_nul(name))
		return false;
	if (memchr(name.data, '/', name.len))
		return false;
	if (name.data[0] != '.')
		return true;
	return !(name.len == 1 || (name.len == 2 && name.data[1] == '.'));
}

static void message_put_path_field(struct wire *w, struct wire_bytes path)
{
	wire_put_bytes(w, path, MESSAGE_PATH_MAX);
	wire_require(w, message_path_ok(path));
}

static struct wire_bytes message_get_path_field(struct wire *w)
{
	struct wire_bytes path = wire_get_bytes(w, MESSAGE_PATH_MAX);

	wire_require(w, message_path_ok(path));
	return path;
}

/* ---- the session ---- */

/* Unknown bits of engines and flags pass: a newer peer says hello too, and is told the version. */
static bool message_hello_ok(const struct message_hello *m)
{
	return m->version != 0 && m->max_channels >= 1 && m->max_channels <= MESSAGE_CHANNELS_MAX &&
	       m->max_block >= TRANSFER_BLOCK_MIN && m->max_block <= TRANSFER_BLOCK_MAX &&
	       m->max_depth >= 2 && m->max_depth <= TRANSFER_DEPTH_MAX && m->max_transfers >= 1 &&
	       m->max_transfers <= MESSAGE_TRANSFERS_MAX;
}

int message_get_hello(struct message_hello *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->version = wire_get_u16(&w);
	m->max_channels = wire_get_u16(&w);
	m->max_block = wire_get_u32(&w);
	m->max_depth = wire_get_u32(&w);
	m->max_transfers = wire_get_u16(&w);
	m->engines = wire_get_u32(&w);
	m->session = wire_get_u32(&w);
	m->flags = wire_get_u32(&w);
	m->agent = wire_get_bytes(&w, MESSAGE_NAME_MAX);
	wire_require(&w, message_hello_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_hello(const struct message_hello *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_hello_ok(m));
	wire_put_u16(&w, m->version);
	wire_put_u16(&w, m->max_channels);
	wire_put_u32(&w, m->max_block);
	wire_put_u32(&w, m->max_depth);
	wire_put_u16(&w, m->max_transfers);
	wire_put_u32(&w, m->engines);
	wire_put_u32(&w, m->session);
	wire_put_u32(&w, m->flags);
	wire_put_bytes(&w, m->agent, MESSAGE_NAME_MAX);
	return wire_put_end(&w);
}

int message_get_ping(struct message_ping *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->cookie = wire_get_u64(&w);
	return wire_finish(&w);
}

ssize_t message_put_ping(const struct message_ping *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_u64(&w, m->cookie);
	return wire_put_end(&w);
}

static bool message_channels_ok(unsigned first, unsigned count)
{
	return count >= 1 && count <= MESSAGE_CHANNELS_MAX && first % MESSAGE_CHANNELS_MAX == 0 &&
	       first / MESSAGE_CHANNELS_MAX < MESSAGE_TRANSFERS_MAX;
}

int message_get_channels(struct message_channels *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->count = wire_get_u16(&w);
	wire_require(&w, message_channels_ok(0, m->count));
	return wire_finish(&w);
}

ssize_t message_put_channels(const struct message_channels *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_channels_ok(0, m->count));
	wire_put_u16(&w, m->count);
	return wire_put_end(&w);
}

static bool message_area_ok(const struct message_channels_reply *m)
{
	if (!m->area_bytes)
		return !m->area_key && !m->area_base;
	return m->area_bytes <= MESSAGE_AREA_MAX && m->area_base <= UINT64_MAX - m->area_bytes;
}

int message_get_channels_reply(struct message_channels_reply *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->count = wire_get_u16(&w);
	m->first = wire_get_u16(&w);
	wire_get_raw(&w, m->nonce, sizeof(m->nonce));
	m->area_bytes = wire_get_u32(&w);
	m->area_key = wire_get_u32(&w);
	m->area_base = wire_get_u64(&w);
	wire_require(&w, message_channels_ok(m->first, m->count) && message_area_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_channels_reply(const struct message_channels_reply *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_channels_ok(m->first, m->count) && message_area_ok(m));
	wire_put_u16(&w, m->count);
	wire_put_u16(&w, m->first);
	wire_put_raw(&w, m->nonce, sizeof(m->nonce));
	wire_put_u32(&w, m->area_bytes);
	wire_put_u32(&w, m->area_key);
	wire_put_u64(&w, m->area_base);
	return wire_put_end(&w);
}

static bool message_ring_ok(const struct message_ring_reply *m)
{
	return m->bytes >= MESSAGE_RING_MIN && m->bytes <= MESSAGE_RING_MAX &&
	       !(m->bytes & (m->bytes - 1)) && m->base <= UINT64_MAX - m->bytes;
}

int message_get_ring_reply(struct message_ring_reply *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->bytes = wire_get_u32(&w);
	m->key = wire_get_u32(&w);
	m->base = wire_get_u64(&w);
	wire_require(&w, message_ring_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_ring_reply(const struct message_ring_reply *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_ring_ok(m));
	wire_put_u32(&w, m->bytes);
	wire_put_u32(&w, m->key);
	wire_put_u64(&w, m->base);
	return wire_put_end(&w);
}

int message_get_text(struct wire_bytes *text, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	*text = wire_get_bytes(&w, MESSAGE_TEXT_MAX);
	return wire_finish(&w);
}

ssize_t message_put_text(struct wire_bytes text, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_bytes(&w, text, MESSAGE_TEXT_MAX);
	return wire_put_end(&w);
}

/* ---- paths and attributes ---- */

int message_get_path(struct message_path *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->path = message_get_path_field(&w);
	return wire_finish(&w);
}

ssize_t message_put_path(const struct message_path *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	message_put_path_field(&w, m->path);
	return wire_put_end(&w);
}

static bool message_mkdir_ok(const struct message_mkdir *m)
{
	return m->mode <= MESSAGE_MODE_MAX && !(m->flags & ~MESSAGE_MKDIR_PARENTS);
}

int message_get_mkdir(struct message_mkdir *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->mode = wire_get_u32(&w);
	m->flags = wire_get_u32(&w);
	wire_require(&w, message_mkdir_ok(m));
	m->path = message_get_path_field(&w);
	return wire_finish(&w);
}

ssize_t message_put_mkdir(const struct message_mkdir *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_mkdir_ok(m));
	wire_put_u32(&w, m->mode);
	wire_put_u32(&w, m->flags);
	message_put_path_field(&w, m->path);
	return wire_put_end(&w);
}

int message_get_rename(struct message_rename *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->flags = wire_get_u32(&w);
	wire_require(&w, !(m->flags & ~MESSAGE_RENAME_REPLACE));
	m->from = message_get_path_field(&w);
	m->to = message_get_path_field(&w);
	return wire_finish(&w);
}

ssize_t message_put_rename(const struct message_rename *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, !(m->flags & ~MESSAGE_RENAME_REPLACE));
	wire_put_u32(&w, m->flags);
	message_put_path_field(&w, m->from);
	message_put_path_field(&w, m->to);
	return wire_put_end(&w);
}

int message_get_removed(struct message_removed *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->removed = wire_get_u64(&w);
	m->more = wire_get_u8(&w);
	wire_require(&w, m->more <= 1);
	return wire_finish(&w);
}

ssize_t message_put_removed(const struct message_removed *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_u64(&w, m->removed);
	wire_put_u8(&w, m->more);
	wire_require(&w, m->more <= 1);
	return wire_put_end(&w);
}

int message_get_statfs_reply(struct message_statfs_reply *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->total_bytes = wire_get_u64(&w);
	m->free_bytes = wire_get_u64(&w);
	m->available_bytes = wire_get_u64(&w);
	m->total_files = wire_get_u64(&w);
	m->free_files = wire_get_u64(&w);
	return wire_finish(&w);
}

ssize_t message_put_statfs_reply(const struct message_statfs_reply *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_u64(&w, m->total_bytes);
	wire_put_u64(&w, m->free_bytes);
	wire_put_u64(&w, m->available_bytes);
	wire_put_u64(&w, m->total_files);
	wire_put_u64(&w, m->free_files);
	return wire_put_end(&w);
}

/* ---- LIST ---- */

void message_list_begin(struct message_list_writer *writer, void *buf, size_t size)
{
	wire_init_put(&writer->wire, buf, size < MESSAGE_DATA_MAX ? size : MESSAGE_DATA_MAX);
	writer->count = 0;
	/* the head, written again when `more` and the count are known */
	wire_put_u8(&writer->wire, 0);
	wire_put_u16(&writer->wire, 0);
}

static bool message_entry_ok(const struct message_entry *e)
{
	return message_name_ok(e->name) &&
	       (!e->target.len || (e->attr.type == MESSAGE_SYMLINK && message_path_ok(e->target)));
}

int message_list_add(struct message_list_writer *writer, const struct message_entry *entry)
{
	struct wire w = writer->wire;

	if (writer->count == MESSAGE_LIST_MAX)
		return -EMSGSIZE;
	message_put_attr_fields(&w, &entry->attr);
	wire_require(&w, message_entry_ok(entry));
	wire_put_bytes(&w, entry->name, MESSAGE_NAME_MAX);
	wire_put_bytes(&w, entry->target, MESSAGE_PATH_MAX);
	if (w.error) /* the writer's own cursor stays where it was: nothing was added */
		return w.error;
	writer->wire = w;
	writer->count++;
	return 0;
}

ssize_t message_list_end(struct message_list_writer *writer, bool more)
{
	struct wire head;

	if (writer->wire.error)
		return writer->wire.error;
	if (more && !writer->count)
		return -EBADMSG;
	wire_init_put(&head, writer->wire.start, MESSAGE_LIST_HEAD_BYTES);
	wire_put_u8(&head, more);
	wire_put_u16(&head, writer->count);
	return wire_put_end(&writer->wire);
}

int message_get_list_head(struct message_list_reply *m, struct wire *w, const void *buf, size_t len)
{
	wire_init_get(w, buf, len);
	m->more = wire_get_u8(w);
	m->count = wire_get_u16(w);
	wire_require(w, m->more <= (m->count ? 1 : 0) && m->count <= MESSAGE_LIST_MAX);
	/* a count that its bytes cannot hold is refused before anybody makes room for it */
	if (!w->error && wire_left(w) < (size_t)m->count * MESSAGE_ENTRY_MIN)
		w->error = -EMSGSIZE;
	return w->error;
}

int message_get_list_entry(struct message_entry *entry, struct wire *w)
{
	message_get_attr_fields(w, &entry->attr);
	entry->name = wire_get_bytes(w, MESSAGE_NAME_MAX);
	entry->target = wire_get_bytes(w, MESSAGE_PATH_MAX);
	wire_require(w, message_entry_ok(entry));
	return w->error;
}
