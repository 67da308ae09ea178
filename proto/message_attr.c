/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_attr.c: what messages say of a file: its attributes, what a link says, and what was
 * seen of a file that is to be the same still.
 */
#include "proto/message_fields.h"

#include <string.h>

#define MESSAGE_MODE_MAX 07777u
#define MESSAGE_MODE_HOLES 0x80000000u /* of attributes: bit 31 of the mode */
#define MESSAGE_NS_MAX 999999999u

static bool message_attr_ok(const struct message_attr *m)
{
	return m->type >= MESSAGE_FILE && m->type <= MESSAGE_OTHER && m->mode <= MESSAGE_MODE_MAX &&
	       m->mtime_ns <= MESSAGE_NS_MAX && (!m->holes || m->type == MESSAGE_FILE);
}

void message_put_attr_fields(struct wire *w, const struct message_attr *m)
{
	wire_require(w, message_attr_ok(m));
	wire_put_u8(w, m->type);
	wire_put_u32(w, m->mode | (m->holes ? MESSAGE_MODE_HOLES : 0));
	wire_put_u32(w, m->uid);
	wire_put_u32(w, m->gid);
	wire_put_u64(w, m->size);
	wire_put_u64(w, (uint64_t)m->mtime_s);
	wire_put_u32(w, m->mtime_ns);
}

void message_get_attr_fields(struct wire *w, struct message_attr *m)
{
	m->type = wire_get_u8(w);
	m->mode = wire_get_u32(w);
	m->holes = m->mode & MESSAGE_MODE_HOLES;
	m->mode &= ~MESSAGE_MODE_HOLES;
	m->uid = wire_get_u32(w);
	m->gid = wire_get_u32(w);
	m->size = wire_get_u64(w);
	m->mtime_s = (int64_t)wire_get_u64(w);
	m->mtime_ns = wire_get_u32(w);
	wire_require(w, message_attr_ok(m));
}

static bool message_seen_ok(const struct message_seen *m)
{
	return m->size <= INT64_MAX && m->mtime_ns <= MESSAGE_NS_MAX;
}

void message_put_seen_fields(struct wire *w, const struct message_seen *m)
{
	wire_require(w, message_seen_ok(m));
	wire_put_u64(w, m->size);
	wire_put_u64(w, (uint64_t)m->mtime_s);
	wire_put_u32(w, m->mtime_ns);
	wire_put_u64(w, m->change);
}

void message_get_seen_fields(struct wire *w, struct message_seen *m)
{
	m->size = wire_get_u64(w);
	m->mtime_s = (int64_t)wire_get_u64(w);
	m->mtime_ns = wire_get_u32(w);
	m->change = wire_get_u64(w);
	wire_require(w, message_seen_ok(m));
}

int message_get_attr(struct message_attr *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	message_get_attr_fields(&w, m);
	return wire_finish(&w);
}

static bool message_link_attr_ok(const struct message_link_attr *m)
{
	return !m->target.len ||
	       (m->attr.type == MESSAGE_SYMLINK && m->target.len <= MESSAGE_PATH_MAX &&
		       !memchr(m->target.data, '\0', m->target.len));
}

int message_get_link_attr(struct message_link_attr *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	message_get_attr_fields(&w, &m->attr);
	m->target = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	wire_require(&w, message_link_attr_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_link_attr(const struct message_link_attr *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_link_attr_ok(m));
	message_put_attr_fields(&w, &m->attr);
	wire_put_bytes(&w, m->target, MESSAGE_PATH_MAX);
	return wire_put_end(&w);
}

ssize_t message_put_attr(const struct message_attr *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	message_put_attr_fields(&w, m);
	return wire_put_end(&w);
}
