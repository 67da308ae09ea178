/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_copy.c: see message_copy.h.
 */
#include "proto/message_copy.h"

#include "proto/message_login.h"
#include "proto/transfer.h"

#include <errno.h>
#include <string.h>

/* Printable and without blanks: it goes into messages and logs. */
static bool message_copy_word_ok(struct wire_bytes word, size_t max)
{
	for (size_t i = 0; i < word.len; i++)
		if (word.data[i] <= ' ' || word.data[i] >= 0x7f)
			return false;
	return word.len && word.len <= max;
}

static bool message_grant_ok(struct wire_bytes grant)
{
	return grant.len && grant.len <= MESSAGE_GRANT_MAX;
}

/* ---- GRANT_COPY ---- */

static bool message_grant_copy_ok(const struct message_grant_copy *m)
{
	return !(m->flags & ~MESSAGE_COPY_BOUND) && message_path_ok(m->path);
}

int message_get_grant_copy(struct message_grant_copy *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->flags = wire_get_u32(&w);
	m->path = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	wire_require(&w, message_grant_copy_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_grant_copy(const struct message_grant_copy *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_grant_copy_ok(m));
	wire_put_u32(&w, m->flags);
	wire_put_bytes(&w, m->path, MESSAGE_PATH_MAX);
	return wire_put_end(&w);
}

int message_get_grant_copy_reply(struct message_grant_copy_reply *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->expires_s = wire_get_u64(&w);
	m->grant = wire_get_bytes(&w, MESSAGE_GRANT_MAX);
	wire_require(&w, message_grant_ok(m->grant));
	return wire_finish(&w);
}

ssize_t message_put_grant_copy_reply(
	const struct message_grant_copy_reply *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_grant_ok(m->grant));
	wire_put_u64(&w, m->expires_s);
	wire_put_bytes(&w, m->grant, MESSAGE_GRANT_MAX);
	return wire_put_end(&w);
}

/* ---- SEND_COPY ---- */

static bool message_send_copy_ok(const struct message_send_copy *m)
{
	const uint32_t fsync = m->to_flags & MESSAGE_DATA_FSYNC;

	if (fsync & (fsync - 1)) /* one of them, or none */
		return false;
	return message_copy_word_ok(m->host, MESSAGE_COPY_HOST_MAX) && m->port &&
	       message_copy_word_ok(m->key, MESSAGE_COPY_KEY_MAX) &&
	       m->protect <= MESSAGE_PROTECT_PRIVATE && m->rate <= TRANSFER_SIZE_MAX &&
	       message_grant_ok(m->grant) && !(m->to_flags & ~MESSAGE_COPY_FLAGS) &&
	       message_path_ok(m->to) && m->request.kind == MESSAGE_DATA_FILES &&
	       !(m->request.flags & (MESSAGE_DATA_SELECTED | MESSAGE_DATA_STREAM |
					    MESSAGE_DATA_IN_PLACE | MESSAGE_DATA_EARLY)) &&
	       !m->request.size;
}

int message_get_send_copy(struct message_send_copy *m, const void *buf, size_t len)
{
	struct wire w;
	int err;

	wire_init_get(&w, buf, len);
	m->host = wire_get_bytes(&w, MESSAGE_COPY_HOST_MAX);
	m->port = wire_get_u16(&w);
	m->key = wire_get_bytes(&w, MESSAGE_COPY_KEY_MAX);
	m->protect = wire_get_u8(&w);
	m->rate = wire_get_u64(&w);
	m->grant = wire_get_bytes(&w, MESSAGE_GRANT_MAX);
	m->to_flags = wire_get_u32(&w);
	m->to = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	if (w.error)
		return w.error;
	err = message_get_data_request(&m->request, w.at, wire_left(&w));
	if (err)
		return err;
	return message_send_copy_ok(m) ? 0 : -EBADMSG;
}

ssize_t message_put_send_copy(const struct message_send_copy *m, void *buf, size_t size)
{
	struct wire w;
	ssize_t head, rest;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_send_copy_ok(m));
	wire_put_bytes(&w, m->host, MESSAGE_COPY_HOST_MAX);
	wire_put_u16(&w, m->port);
	wire_put_bytes(&w, m->key, MESSAGE_COPY_KEY_MAX);
	wire_put_u8(&w, m->protect);
	wire_put_u64(&w, m->rate);
	wire_put_bytes(&w, m->grant, MESSAGE_GRANT_MAX);
	wire_put_u32(&w, m->to_flags);
	wire_put_bytes(&w, m->to, MESSAGE_PATH_MAX);
	head = wire_put_end(&w);
	if (head < 0)
		return head;
	rest = message_put_data_request(&m->request, (uint8_t *)buf + head, size - (size_t)head);
	return rest < 0 ? rest : head + rest;
}

static bool message_outcome_ok(const struct message_copy_outcome *m)
{
	const uint8_t flags = MESSAGE_COPY_DIRECTORY | MESSAGE_COPY_SPECIAL | MESSAGE_COPY_THERE;

	return !(m->flags & ~flags) && (!m->status || !m->bytes) &&
	       (!m->name.len || transfer_name_ok(m->name));
}

int message_add_outcome(void *list, size_t size, size_t *len, const struct message_copy_outcome *m)
{
	struct wire w;
	ssize_t n;

	wire_init_put(&w, (uint8_t *)list + *len, size - *len);
	wire_require(&w, message_outcome_ok(m));
	wire_put_u8(&w, m->flags);
	wire_put_u16(&w, m->status);
	wire_put_u64(&w, m->bytes);
	wire_put_bytes(&w, m->name, TRANSFER_NAME_MAX);
	wire_put_bytes(&w, m->text, MESSAGE_TEXT_MAX);
	n = wire_put_end(&w);
	if (n < 0)
		return (int)n;
	*len += (size_t)n;
	return 0;
}

bool message_next_outcome(struct wire_bytes *outcomes, struct message_copy_outcome *m)
{
	struct wire w;
	size_t used;

	wire_init_get(&w, outcomes->data, outcomes->len);
	m->flags = wire_get_u8(&w);
	m->status = wire_get_u16(&w);
	m->bytes = wire_get_u64(&w);
	m->name = wire_get_bytes(&w, TRANSFER_NAME_MAX);
	m->text = wire_get_bytes(&w, MESSAGE_TEXT_MAX);
	if (w.error || !message_outcome_ok(m))
		return false;
	used = outcomes->len - wire_left(&w);
	outcomes->data += used;
	outcomes->len -= used;
	return true;
}

static bool message_copy_reply_ok(const struct message_copy_reply *m)
{
	struct wire_bytes outcomes = m->outcomes;
	struct message_copy_outcome one;
	unsigned count = 0;

	if (m->more > 1 || m->side > MESSAGE_COPY_BETWEEN || m->engine > MESSAGE_ENGINE_PULL ||
		m->protect > MESSAGE_PROTECT_PRIVATE || m->direct > 1)
		return false;
	/* what runs has not failed, and what failed has done so somewhere */
	if ((m->more && m->status) || !m->side != !m->status)
		return false;
	if (m->fabric.len && !message_copy_word_ok(m->fabric, MESSAGE_COPY_FABRIC_MAX))
		return false;
	while (message_next_outcome(&outcomes, &one))
		count++;
	return !outcomes.len && count == m->count;
}

int message_get_copy_reply(struct message_copy_reply *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->more = wire_get_u8(&w);
	m->side = wire_get_u8(&w);
	m->status = wire_get_u16(&w);
	m->text = wire_get_bytes(&w, MESSAGE_TEXT_MAX);
	m->bytes = wire_get_u64(&w);
	m->verified_bytes = wire_get_u64(&w);
	m->had_bytes = wire_get_u64(&w);
	m->hole_bytes = wire_get_u64(&w);
	m->crossed_bytes = wire_get_u64(&w);
	m->total_bytes = wire_get_u64(&w);
	m->files = wire_get_u64(&w);
	m->errors = wire_get_u64(&w);
	m->total_files = wire_get_u64(&w);
	m->ns = wire_get_u64(&w);
	m->current = wire_get_bytes(&w, MESSAGE_NAME_MAX);
	m->engine = wire_get_u8(&w);
	m->protect = wire_get_u8(&w);
	m->direct = wire_get_u8(&w);
	m->channels = wire_get_u16(&w);
	m->block = wire_get_u32(&w);
	m->depth = wire_get_u32(&w);
	m->fabric = wire_get_bytes(&w, MESSAGE_COPY_FABRIC_MAX);
	m->count = wire_get_u16(&w);
	if (w.error)
		return w.error;
	m->outcomes = (struct wire_bytes){w.at, wire_left(&w)};
	return message_copy_reply_ok(m) ? 0 : -EBADMSG;
}

ssize_t message_put_copy_reply(const struct message_copy_reply *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_copy_reply_ok(m));
	wire_put_u8(&w, m->more);
	wire_put_u8(&w, m->side);
	wire_put_u16(&w, m->status);
	wire_put_bytes(&w, m->text, MESSAGE_TEXT_MAX);
	wire_put_u64(&w, m->bytes);
	wire_put_u64(&w, m->verified_bytes);
	wire_put_u64(&w, m->had_bytes);
	wire_put_u64(&w, m->hole_bytes);
	wire_put_u64(&w, m->crossed_bytes);
	wire_put_u64(&w, m->total_bytes);
	wire_put_u64(&w, m->files);
	wire_put_u64(&w, m->errors);
	wire_put_u64(&w, m->total_files);
	wire_put_u64(&w, m->ns);
	wire_put_bytes(&w, m->current, MESSAGE_NAME_MAX);
	wire_put_u8(&w, m->engine);
	wire_put_u8(&w, m->protect);
	wire_put_u8(&w, m->direct);
	wire_put_u16(&w, m->channels);
	wire_put_u32(&w, m->block);
	wire_put_u32(&w, m->depth);
	wire_put_bytes(&w, m->fabric, MESSAGE_COPY_FABRIC_MAX);
	wire_put_u16(&w, m->count);
	wire_put_raw(&w, m->outcomes.data, m->outcomes.len);
	return wire_put_end(&w);
}
