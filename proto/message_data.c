/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_data.c: the requests that begin a transfer, and what may precede their replies.
 */
#include "proto/message.h"

#include "proto/message_fields.h"
#include "proto/transfer.h"

#include <errno.h>
#include <string.h>

#define MESSAGE_BLOCK_MULTIPLE 4096u

/* ---- STORE and RETRIEVE ---- */

int message_add_path(void *list, size_t size, size_t *len, struct wire_bytes path)
{
	struct wire w;

	wire_init_put(&w, (uint8_t *)list + *len, size - *len);
	wire_require(&w, message_path_ok(path));
	wire_put_bytes(&w, path, MESSAGE_PATH_MAX);
	if (!w.error)
		*len += wire_put_length(&w);
	return w.error;
}

bool message_next_path(struct wire_bytes *more, struct wire_bytes *path)
{
	struct wire w;

	if (!more->len)
		return false;
	wire_init_get(&w, more->data, more->len);
	*path = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	if (w.error)
		return false;
	*more = (struct wire_bytes){w.at, wire_left(&w)};
	return true;
}

static bool message_rule_ok(const struct message_rule *rule)
{
	return rule->include <= 1 && rule->pattern.len &&
	       !memchr(rule->pattern.data, '\0', rule->pattern.len);
}

int message_add_rule(void *list, size_t size, size_t *len, const struct message_rule *rule)
{
	struct wire w;

	wire_init_put(&w, (uint8_t *)list + *len, size - *len);
	wire_require(&w, message_rule_ok(rule));
	wire_put_u8(&w, rule->include);
	wire_put_bytes(&w, rule->pattern, MESSAGE_PATH_MAX);
	if (!w.error)
		*len += wire_put_length(&w);
	return w.error;
}

bool message_next_rule(struct wire_bytes *rules, struct message_rule *rule)
{
	struct wire w;

	if (!rules->len)
		return false;
	wire_init_get(&w, rules->data, rules->len);
	rule->include = wire_get_u8(&w);
	rule->pattern = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	if (w.error)
		return false;
	*rules = (struct wire_bytes){w.at, wire_left(&w)};
	return true;
}

void message_get_rules(struct wire *w, struct wire_bytes *rules, uint16_t *count)
{
	*count = wire_get_u16(w);
	rules->data = w->at;
	for (unsigned i = 0; i < *count && !w->error; i++) {
		wire_get_u8(w);
		wire_get_bytes(w, MESSAGE_PATH_MAX);
	}
	rules->len = (size_t)(w->at - rules->data);
}

bool message_rules_ok(struct wire_bytes rules, uint16_t count)
{
	struct message_rule rule;
	unsigned n = 0;

	while (message_next_rule(&rules, &rule) && message_rule_ok(&rule))
		n++;
	return !rules.len && n == count && n <= MESSAGE_RULES_MAX;
}

/* A name beneath a directory; with a '/' behind it is a directory alone. */
static bool message_selected_ok(struct wire_bytes name)
{
	if (name.len == 1 && *name.data == '/')
		return true; /* the directory itself */
	if (name.len > 1 && name.data[name.len - 1] == '/')
		name.len--;
	return name.len && transfer_name_ok(name);
}

/* The other paths are as many as is said, and each may cross. */
static bool message_more_ok(const struct message_data_request *m)
{
	struct wire_bytes more = m->more, path;
	unsigned count = 0;

	bool selected = m->flags & MESSAGE_DATA_SELECTED;

	while (message_next_path(&more, &path) &&
		(selected ? message_selected_ok(path) : message_path_ok(path)))
		count++;
	if (more.len || count != m->more_count || count >= MESSAGE_PATHS_MAX)
		return false;
	if (selected)
		return count && m->kind == MESSAGE_DATA_FILES && !(m->flags & MESSAGE_DATA_INTO);
	return !count || (m->kind == MESSAGE_DATA_FILES && m->flags & MESSAGE_DATA_INTO);
}

static bool message_resume_ok(const struct message_data_request *m)
{
	const uint32_t others = MESSAGE_DATA_INTO | MESSAGE_DATA_RECURSIVE |
				MESSAGE_DATA_NO_REPLACE | MESSAGE_DATA_UPDATE |
				MESSAGE_DATA_PREALLOCATE | MESSAGE_DATA_READBACK;

	if (!(m->flags & MESSAGE_DATA_IN_PLACE))
		return m->resume <= TRANSFER_SIZE_MAX;
	return m->kind == MESSAGE_DATA_FILES && !(m->flags & others) &&
	       (m->resume <= TRANSFER_SIZE_MAX || m->resume == MESSAGE_UNKNOWN);
}

static bool message_data_request_ok(const struct message_data_request *m)
{
	const uint32_t flags =
		MESSAGE_DATA_INTO | MESSAGE_DATA_RECURSIVE | MESSAGE_DATA_NO_REPLACE |
		MESSAGE_DATA_STREAM | MESSAGE_DATA_FOLLOW_LINKS | MESSAGE_DATA_SKIP_LINKS |
		MESSAGE_DATA_UPDATE | MESSAGE_DATA_SELECTED | MESSAGE_DATA_OWNER |
		MESSAGE_DATA_GROUP | MESSAGE_DATA_XATTRS | MESSAGE_DATA_ACLS |
		MESSAGE_DATA_NUMERIC | MESSAGE_DATA_HARD_LINKS | MESSAGE_DATA_PREALLOCATE |
		MESSAGE_DATA_SQUEEZE_MASK << MESSAGE_DATA_SQUEEZE_SHIFT | MESSAGE_DATA_FSYNC |
		MESSAGE_DATA_READBACK | MESSAGE_DATA_REREAD | MESSAGE_DATA_EARLY |
		MESSAGE_DATA_IN_PLACE | MESSAGE_DATA_ATTRIBUTES;

	const uint32_t links = MESSAGE_DATA_FOLLOW_LINKS | MESSAGE_DATA_SKIP_LINKS;

	if (message_data_squeeze(m->flags) > MESSAGE_DATA_SQUEEZE_MAX)
		return false;
	if (m->flags & ~flags || (m->flags & links) == links ||
		(m->flags & MESSAGE_DATA_FSYNC & ((m->flags & MESSAGE_DATA_FSYNC) - 1)) ||
		m->engine > MESSAGE_ENGINE_PULL || m->channels > MESSAGE_CHANNELS_MAX ||
		m->depth > TRANSFER_DEPTH_MAX || m->direct > 2 || !message_resume_ok(m) ||
		!message_more_ok(m) || !message_rules_ok(m->rules, m->rule_count) ||
		(m->rule_count && !(m->flags & (MESSAGE_DATA_RECURSIVE | MESSAGE_DATA_SELECTED))) ||
		(m->flags & MESSAGE_DATA_ATTRIBUTES && !(m->flags & MESSAGE_DATA_SELECTED)))
		return false;
	if (m->block != 0 && (m->block % MESSAGE_BLOCK_MULTIPLE || m->block < TRANSFER_BLOCK_MIN ||
				     m->block > TRANSFER_BLOCK_MAX))
		return false;
	switch (m->kind) {
	case MESSAGE_DATA_FILES:
		return m->size <= TRANSFER_SIZE_MAX && message_path_ok(m->path);
	case MESSAGE_DATA_NULL:
		return m->size <= TRANSFER_SIZE_MAX && m->path.len == 0;
	default:
		return false;
	}
}

int message_get_data_request(struct message_data_request *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->kind = wire_get_u8(&w);
	m->flags = wire_get_u32(&w);
	m->engine = wire_get_u8(&w);
	m->channels = wire_get_u16(&w);
	m->block = wire_get_u32(&w);
	m->depth = wire_get_u32(&w);
	m->rtt_us = wire_get_u32(&w);
	m->direct = wire_get_u8(&w);
	m->size = wire_get_u64(&w);
	m->resume = wire_get_u64(&w);
	m->path = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	m->more_count = wire_get_u16(&w);
	m->more.data = w.at;
	for (unsigned i = 0; i < m->more_count && !w.error; i++)
		wire_get_bytes(&w, MESSAGE_PATH_MAX);
	m->more.len = (size_t)(w.at - m->more.data);
	message_get_rules(&w, &m->rules, &m->rule_count);
	wire_require(&w, message_data_request_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_data_request(const struct message_data_request *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_put_u8(&w, m->kind);
	wire_put_u32(&w, m->flags);
	wire_put_u8(&w, m->engine);
	wire_put_u16(&w, m->channels);
	wire_put_u32(&w, m->block);
	wire_put_u32(&w, m->depth);
	wire_put_u32(&w, m->rtt_us);
	wire_put_u8(&w, m->direct);
	wire_put_u64(&w, m->size);
	wire_put_u64(&w, m->resume);
	wire_put_bytes(&w, m->path, MESSAGE_PATH_MAX);
	wire_put_u16(&w, m->more_count);
	wire_put_raw(&w, m->more.data, m->more.len);
	wire_put_u16(&w, m->rule_count);
	wire_put_raw(&w, m->rules.data, m->rules.len);
	wire_require(&w, message_data_request_ok(m));
	return wire_put_end(&w);
}

/* ---- FEED ---- */

static bool message_feed_ok(const struct message_feed *m)
{
	return !m->flags && message_path_ok(m->path) && m->streams &&
	       m->streams <= MESSAGE_STREAMS_MAX &&
	       (!m->segment_bytes || m->segment_bytes >= MESSAGE_SEGMENT_BYTES_MIN) &&
	       m->segment_bytes <= TRANSFER_SIZE_MAX &&
	       (!m->segment_ns || m->segment_ns >= MESSAGE_SEGMENT_NS_MIN) &&
	       m->segment_ns <= TRANSFER_SIZE_MAX;
}

int message_get_feed(struct message_feed *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->flags = wire_get_u32(&w);
	m->streams = wire_get_u16(&w);
	m->segment_bytes = wire_get_u64(&w);
	m->segment_ns = wire_get_u64(&w);
	m->path = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	wire_require(&w, message_feed_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_feed(const struct message_feed *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_feed_ok(m));
	wire_put_u32(&w, m->flags);
	wire_put_u16(&w, m->streams);
	wire_put_u64(&w, m->segment_bytes);
	wire_put_u64(&w, m->segment_ns);
	wire_put_bytes(&w, m->path, MESSAGE_PATH_MAX);
	return wire_put_end(&w);
}

/* ---- ADMIT and QUEUED ---- */

static bool message_is_class_char(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

bool message_class_ok(struct wire_bytes name)
{
	for (size_t i = 0; i < name.len; i++)
		if (!message_is_class_char(name.data[i]))
			return false;
	return name.len && name.len <= MESSAGE_CLASS_MAX;
}

static bool message_admit_ok(const struct message_admit *m)
{
	return !(m->flags & ~MESSAGE_ADMIT_FAIL) &&
	       (m->deadline_ns == MESSAGE_UNKNOWN || m->deadline_ns <= TRANSFER_SIZE_MAX) &&
	       (!m->class.len || message_class_ok(m->class));
}

int message_get_admit(struct message_admit *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->deadline_ns = wire_get_u64(&w);
	m->flags = wire_get_u32(&w);
	m->class = wire_get_bytes(&w, MESSAGE_CLASS_MAX);
	wire_require(&w, message_admit_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_admit(const struct message_admit *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_admit_ok(m));
	wire_put_u64(&w, m->deadline_ns);
	wire_put_u32(&w, m->flags);
	wire_put_bytes(&w, m->class, MESSAGE_CLASS_MAX);
	return wire_put_end(&w);
}

static bool message_queued_ok(const struct message_queued *m)
{
	return !m->class.len || message_class_ok(m->class);
}

int message_get_queued(struct message_queued *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->position = wire_get_u32(&w);
	m->wait_ns = wire_get_u64(&w);
	m->share = wire_get_u64(&w);
	m->class = wire_get_bytes(&w, MESSAGE_CLASS_MAX);
	wire_require(&w, message_queued_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_queued(const struct message_queued *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_queued_ok(m));
	wire_put_u32(&w, m->position);
	wire_put_u64(&w, m->wait_ns);
	wire_put_u64(&w, m->share);
	wire_put_bytes(&w, m->class, MESSAGE_CLASS_MAX);
	return wire_put_end(&w);
}
