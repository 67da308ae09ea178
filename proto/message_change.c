/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_change.c: see message_change.h.
 */
#include "proto/message_change.h"

#include "proto/message_fields.h"

#include <errno.h>
#include <string.h>

#define CHANGE_MODE_MAX 07777u
#define CHANGE_NS_MAX 999999999u
#define CHANGE_FLAGS                                                                               \
	(MESSAGE_CHANGE_MODE | MESSAGE_CHANGE_MTIME | MESSAGE_CHANGE_NOW | MESSAGE_CHANGE_CREATE | \
		MESSAGE_CHANGE_LINK | MESSAGE_CHANGE_OWNER | MESSAGE_CHANGE_GROUP |                \
		MESSAGE_CHANGE_SEEN)
#define CHANGE_WHAT                                                                                \
	(MESSAGE_CHANGE_MODE | MESSAGE_CHANGE_MTIME | MESSAGE_CHANGE_NOW | MESSAGE_CHANGE_OWNER |  \
		MESSAGE_CHANGE_GROUP)

/* ---- one change ---- */

/* A user or group: a number, a name, or both. */
static bool change_id_ok(bool given, uint32_t id, struct wire_bytes name)
{
	if (!given)
		return !id && !name.len;
	return (id != MESSAGE_CHANGE_NO_ID || name.len) && name.len <= MESSAGE_NAME_MAX &&
	       (!name.len || !memchr(name.data, '\0', name.len));
}

static bool message_change_ok(const struct message_change *m)
{
	const bool mode = m->flags & MESSAGE_CHANGE_MODE, time = m->flags & MESSAGE_CHANGE_MTIME,
		   now = m->flags & MESSAGE_CHANGE_NOW, link = m->flags & MESSAGE_CHANGE_LINK,
		   create = m->flags & MESSAGE_CHANGE_CREATE;

	return !(m->flags & ~CHANGE_FLAGS) && m->flags & CHANGE_WHAT && !(time && now) &&
	       change_id_ok(m->flags & MESSAGE_CHANGE_OWNER, m->uid, m->user) &&
	       change_id_ok(m->flags & MESSAGE_CHANGE_GROUP, m->gid, m->group) &&
	       !(link && create) &&
	       !(m->flags & MESSAGE_CHANGE_SEEN && (!time || link || create)) &&
	       (mode ? m->mode <= CHANGE_MODE_MAX : !m->mode) &&
	       (time ? m->mtime_ns <= CHANGE_NS_MAX : !m->mtime_s && !m->mtime_ns) &&
	       message_path_ok(m->path);
}

static void message_get_change_fields(struct wire *w, struct message_change *m)
{
	m->flags = wire_get_u8(w);
	m->mode = wire_get_u32(w);
	m->mtime_s = (int64_t)wire_get_u64(w);
	m->mtime_ns = wire_get_u32(w);
	m->uid = m->gid = 0;
	m->user = m->group = (struct wire_bytes){0};
	m->seen = (struct message_seen){0};
	if (m->flags & MESSAGE_CHANGE_OWNER) {
		m->uid = wire_get_u32(w);
		m->user = wire_get_bytes(w, MESSAGE_NAME_MAX);
	}
	if (m->flags & MESSAGE_CHANGE_GROUP) {
		m->gid = wire_get_u32(w);
		m->group = wire_get_bytes(w, MESSAGE_NAME_MAX);
	}
	if (m->flags & MESSAGE_CHANGE_SEEN)
		message_get_seen_fields(w, &m->seen);
	m->path = wire_get_bytes(w, MESSAGE_PATH_MAX);
	wire_require(w, message_change_ok(m));
}

int message_add_change(void *list, size_t size, size_t *len, const struct message_change *m)
{
	struct wire w;

	wire_init_put(&w, (uint8_t *)list + *len, size - *len);
	wire_require(&w, message_change_ok(m));
	wire_put_u8(&w, m->flags);
	wire_put_u32(&w, m->mode);
	wire_put_u64(&w, (uint64_t)m->mtime_s);
	wire_put_u32(&w, m->mtime_ns);
	if (m->flags & MESSAGE_CHANGE_OWNER) {
		wire_put_u32(&w, m->uid);
		wire_put_bytes(&w, m->user, MESSAGE_NAME_MAX);
	}
	if (m->flags & MESSAGE_CHANGE_GROUP) {
		wire_put_u32(&w, m->gid);
		wire_put_bytes(&w, m->group, MESSAGE_NAME_MAX);
	}
	if (m->flags & MESSAGE_CHANGE_SEEN)
		message_put_seen_fields(&w, &m->seen);
	wire_put_bytes(&w, m->path, MESSAGE_PATH_MAX);
	if (!w.error)
		*len += wire_put_length(&w);
	return w.error;
}

bool message_next_change(struct wire_bytes *list, struct message_change *m)
{
	struct wire w;

	if (!list->len)
		return false;
	wire_init_get(&w, list->data, list->len);
	message_get_change_fields(&w, m);
	if (w.error)
		return false;
	*list = (struct wire_bytes){w.at, wire_left(&w)};
	return true;
}

/* ---- SETATTR ---- */

static bool message_set_attr_ok(const struct message_set_attr *m)
{
	struct wire_bytes changes = m->changes;
	struct message_change change;
	unsigned count = 0;

	while (count < m->count && message_next_change(&changes, &change))
		count++;
	return m->count && m->count <= MESSAGE_CHANGES_MAX && count == m->count && !changes.len;
}

int message_get_set_attr(struct message_set_attr *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->count = wire_get_u16(&w);
	if (w.error)
		return w.error;
	m->changes = (struct wire_bytes){w.at, wire_left(&w)};
	return message_set_attr_ok(m) ? 0 : -EBADMSG;
}

ssize_t message_put_set_attr(const struct message_set_attr *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_u16(&w, m->count);
	wire_put_raw(&w, m->changes.data, m->changes.len);
	wire_require(&w, message_set_attr_ok(m));
	return wire_put_end(&w);
}

uint16_t message_change_status(const struct message_set_attr_reply *m, unsigned i)
{
	return (uint16_t)(m->statuses[2 * i] << 8 | m->statuses[2 * i + 1]);
}

int message_get_set_attr_reply(struct message_set_attr_reply *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->count = wire_get_u16(&w);
	m->statuses = w.at;
	wire_require(&w, m->count && m->count <= MESSAGE_CHANGES_MAX);
	for (unsigned i = 0; i < m->count && !w.error; i++)
		wire_get_u16(&w);
	return wire_finish(&w);
}

ssize_t message_put_set_attr_reply(
	const struct message_set_attr_reply *m, const uint16_t *statuses, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, m->count && m->count <= MESSAGE_CHANGES_MAX);
	wire_put_u16(&w, m->count);
	for (unsigned i = 0; i < m->count && !w.error; i++)
		wire_put_u16(&w, statuses[i]);
	return wire_put_end(&w);
}

/* ---- MAKE_LINK ---- */

static bool message_make_link_ok(const struct message_make_link *m)
{
	return !m->flags && message_path_ok(m->target) && message_path_ok(m->path);
}

int message_get_make_link(struct message_make_link *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->flags = wire_get_u32(&w);
	m->target = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	m->path = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	wire_require(&w, message_make_link_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_make_link(const struct message_make_link *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_make_link_ok(m));
	wire_put_u32(&w, m->flags);
	wire_put_bytes(&w, m->target, MESSAGE_PATH_MAX);
	wire_put_bytes(&w, m->path, MESSAGE_PATH_MAX);
	return wire_put_end(&w);
}
