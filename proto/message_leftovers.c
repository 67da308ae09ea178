/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_leftovers: see message_leftovers.h.
 */
#include "proto/message_leftovers.h"

#include "proto/transfer.h"

#include <errno.h>
#include <string.h>

_Static_assert(MESSAGE_LEFTOVERS_NAME_MAX == TRANSFER_NAME_MAX, "what was sent can be listed");

#define LEFTOVER_MIN 40u /* bytes of an entry */

static bool message_leftovers_ok(const struct message_leftovers *m)
{
	return !(m->flags & ~MESSAGE_LEFTOVERS_REMOVE) && m->age_s <= INT64_MAX &&
	       (m->flags || !m->age_s) && message_path_ok(m->path);
}

int message_get_leftovers(struct message_leftovers *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->flags = wire_get_u32(&w);
	m->age_s = wire_get_u64(&w);
	m->path = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	wire_require(&w, message_leftovers_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_leftovers(const struct message_leftovers *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_leftovers_ok(m));
	wire_put_u32(&w, m->flags);
	wire_put_u64(&w, m->age_s);
	wire_put_bytes(&w, m->path, MESSAGE_PATH_MAX);
	return wire_put_end(&w);
}

/* ---- replies ---- */

/* One name of a directory, or none. */
static bool leftover_name_ok(struct wire_bytes name)
{
	return !name.len || (transfer_name_ok(name) && !memchr(name.data, '/', name.len));
}

static bool message_leftover_ok(const struct message_leftover *m)
{
	const bool file = m->kind == MESSAGE_LEFTOVER_FILE;

	if (m->kind < MESSAGE_LEFTOVER_DIRECTORY || m->kind > MESSAGE_LEFTOVER_TREE ||
		m->state < MESSAGE_LEFTOVER_IDLE || m->state > MESSAGE_LEFTOVER_REMOVED ||
		m->disk_bytes > INT64_MAX || m->size > INT64_MAX || m->verified_bytes > m->size ||
		!m->path.len || !transfer_name_ok(m->path) || !leftover_name_ok(m->name))
		return false;
	if (m->kind == MESSAGE_LEFTOVER_DIRECTORY)
		return m->status && m->state == MESSAGE_LEFTOVER_UNSURE && !m->name.len &&
		       !m->disk_bytes && !m->size;
	return (file || !m->size) && (m->state != MESSAGE_LEFTOVER_REMOVED || !m->status);
}

static void leftovers_head(struct wire *w, bool more, uint16_t count)
{
	wire_put_u8(w, more);
	wire_put_u16(w, count);
}

void message_leftovers_begin(struct message_leftovers_writer *w, void *buf, size_t size)
{
	w->count = 0;
	wire_init_put(&w->wire, buf, size);
	leftovers_head(&w->wire, false, 0);
}

int message_leftovers_add(struct message_leftovers_writer *writer, const struct message_leftover *m)
{
	struct wire w = writer->wire;

	if (writer->count == MESSAGE_LIST_MAX)
		return -EMSGSIZE;
	wire_put_u8(&w, m->kind);
	wire_put_u8(&w, m->state);
	wire_put_u16(&w, m->status);
	wire_put_u64(&w, (uint64_t)m->changed_s);
	wire_put_u64(&w, m->disk_bytes);
	wire_put_u64(&w, m->verified_bytes);
	wire_put_u64(&w, m->size);
	wire_put_bytes(&w, m->path, MESSAGE_LEFTOVERS_NAME_MAX);
	wire_put_bytes(&w, m->name, MESSAGE_NAME_MAX);
	wire_require(&w, message_leftover_ok(m));
	if (w.error)
		return w.error;
	writer->wire = w;
	writer->count++;
	return 0;
}

ssize_t message_leftovers_end(struct message_leftovers_writer *w, bool more)
{
	struct wire head;

	if (w->wire.error)
		return w->wire.error;
	wire_init_put(&head, w->wire.start, 3);
	leftovers_head(&head, more, w->count);
	return wire_put_end(&w->wire);
}

int message_get_leftovers_head(
	struct message_list_reply *head, struct wire *w, const void *buf, size_t len)
{
	wire_init_get(w, buf, len);
	head->more = wire_get_u8(w);
	head->count = wire_get_u16(w);
	wire_require(w, head->more <= 1 && head->count <= MESSAGE_LIST_MAX);
	if (!w->error && wire_left(w) < (size_t)head->count * LEFTOVER_MIN)
		w->error = -EMSGSIZE;
	return w->error;
}

int message_get_leftover(struct message_leftover *m, struct wire *w)
{
	m->kind = wire_get_u8(w);
	m->state = wire_get_u8(w);
	m->status = wire_get_u16(w);
	m->changed_s = (int64_t)wire_get_u64(w);
	m->disk_bytes = wire_get_u64(w);
	m->verified_bytes = wire_get_u64(w);
	m->size = wire_get_u64(w);
	m->path = wire_get_bytes(w, MESSAGE_LEFTOVERS_NAME_MAX);
	m->name = wire_get_bytes(w, MESSAGE_NAME_MAX);
	wire_require(w, message_leftover_ok(m));
	return w->error;
}
