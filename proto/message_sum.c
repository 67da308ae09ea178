/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_sum.c: SUM: the sums of files, computed where they lie.
 */
#include "proto/message_sum.h"

#include <errno.h>

static bool message_sum_request_ok(const struct message_sum_request *m)
{
	struct wire_bytes paths = m->paths, path;
	unsigned count = 0;

	if (m->algorithm < MESSAGE_SUM_XXH128 || m->algorithm > MESSAGE_SUM_MD5 || !m->count ||
		m->count > MESSAGE_PATHS_MAX)
		return false;
	for (; message_next_path(&paths, &path); count++)
		if (!message_path_ok(path))
			return false;
	return !paths.len && count == m->count;
}

int message_get_sum_request(struct message_sum_request *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->algorithm = wire_get_u8(&w);
	m->count = wire_get_u16(&w);
	if (w.error)
		return w.error;
	m->paths = (struct wire_bytes){w.at, wire_left(&w)};
	return message_sum_request_ok(m) ? 0 : -EBADMSG;
}

ssize_t message_put_sum_request(const struct message_sum_request *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_u8(&w, m->algorithm);
	wire_put_u16(&w, m->count);
	wire_put_raw(&w, m->paths.data, m->paths.len);
	wire_require(&w, message_sum_request_ok(m));
	return wire_put_end(&w);
}

/* ---- replies ---- */

#define SUM_COUNT_AT 9u /* in a reply: behind `more` and `bytes` */

void message_sum_begin(struct message_sum_writer *w, void *buf, size_t size)
{
	w->count = 0;
	wire_init_put(&w->wire, buf, size);
	wire_put_u8(&w->wire, 0);
	wire_put_u64(&w->wire, 0);
	wire_put_u16(&w->wire, 0);
}

static bool message_sum_ok(const struct message_sum *m)
{
	return m->status ? !m->size && !m->sum.len : m->size <= INT64_MAX && m->sum.len;
}

int message_sum_add(struct message_sum_writer *w, const struct message_sum *m)
{
	struct wire before = w->wire;
	int err;

	if (w->count == MESSAGE_SUMS_MAX)
		return -EMSGSIZE;
	wire_put_u16(&w->wire, m->index);
	wire_put_u16(&w->wire, m->status);
	wire_put_u64(&w->wire, m->size);
	wire_put_bytes(&w->wire, m->sum, MESSAGE_SUM_MAX);
	wire_require(&w->wire, message_sum_ok(m));
	err = w->wire.error;
	if (err)
		w->wire = before;
	else
		w->count++;
	return err;
}

ssize_t message_sum_end(struct message_sum_writer *w, bool more, uint64_t bytes)
{
	struct wire head;

	if (w->wire.error)
		return w->wire.error;
	wire_init_put(&head, w->wire.start, SUM_COUNT_AT + 2);
	wire_put_u8(&head, more);
	wire_put_u64(&head, bytes);
	wire_put_u16(&head, w->count);
	return wire_put_end(&w->wire);
}

int message_get_sum_head(struct message_sum_reply *m, struct wire *w, const void *buf, size_t len)
{
	wire_init_get(w, buf, len);
	m->more = wire_get_u8(w);
	m->bytes = wire_get_u64(w);
	m->count = wire_get_u16(w);
	wire_require(w, m->more <= 1 && m->count <= MESSAGE_SUMS_MAX);
	return w->error;
}

int message_get_sum(struct message_sum *m, struct wire *w)
{
	m->index = wire_get_u16(w);
	m->status = wire_get_u16(w);
	m->size = wire_get_u64(w);
	m->sum = wire_get_bytes(w, MESSAGE_SUM_MAX);
	wire_require(w, message_sum_ok(m));
	return w->error;
}
