/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_tree.c: see message_tree.h.
 */
#include "proto/message_tree.h"

#include "proto/message_fields.h"
#include "proto/transfer.h"

#include <errno.h>
#include <string.h>

_Static_assert(MESSAGE_TREE_NAME_MAX == TRANSFER_NAME_MAX, "what is listed can be sent");
_Static_assert(MESSAGE_TREE_TARGET_MAX == TRANSFER_TARGET_MAX, "what is listed can be sent");

#define MESSAGE_TREE_ENTRY_MIN 41u

static bool message_tree_ok(const struct message_tree *m)
{
	const uint32_t links = MESSAGE_TREE_FOLLOW_LINKS | MESSAGE_TREE_SKIP_LINKS;

	const uint32_t named = MESSAGE_TREE_OWNERS | MESSAGE_TREE_ACLS;

	return !(m->flags & ~(links | named | MESSAGE_TREE_TOP | MESSAGE_TREE_XATTRS |
				    MESSAGE_TREE_NUMERIC | MESSAGE_TREE_INODES |
				    MESSAGE_TREE_CHANGES)) &&
	       (m->flags & links) != links &&
	       !(m->flags & MESSAGE_TREE_NUMERIC && !(m->flags & named)) &&
	       message_path_ok(m->path) && message_rules_ok(m->rules, m->rule_count);
}

int message_get_tree(struct message_tree *m, const void *buf, size_t len)
{
	struct wire w;

	wire_init_get(&w, buf, len);
	m->flags = wire_get_u32(&w);
	m->path = wire_get_bytes(&w, MESSAGE_PATH_MAX);
	message_get_rules(&w, &m->rules, &m->rule_count);
	wire_require(&w, message_tree_ok(m));
	return wire_finish(&w);
}

ssize_t message_put_tree(const struct message_tree *m, void *buf, size_t size)
{
	struct wire w;

	wire_init_put(&w, buf, size);
	wire_require(&w, message_tree_ok(m));
	wire_put_u32(&w, m->flags);
	wire_put_bytes(&w, m->path, MESSAGE_PATH_MAX);
	wire_put_u16(&w, m->rule_count);
	wire_put_raw(&w, m->rules.data, m->rules.len);
	return wire_put_end(&w);
}

static bool message_tree_account_ok(struct wire_bytes name)
{
	return name.len <= MESSAGE_NAME_MAX && (!name.len || !memchr(name.data, '\0', name.len));
}

static bool message_tree_has_ok(const struct message_tree_entry *e)
{
	return !(e->has & ~MESSAGE_TREE_HAS_ALL) && !(e->status && e->has) &&
	       (e->has & MESSAGE_TREE_HAS_OWNERS || !(e->user.len || e->group.len)) &&
	       message_tree_account_ok(e->user) && message_tree_account_ok(e->group) &&
	       (e->has & MESSAGE_TREE_HAS_EXTRA || !e->extra) &&
	       !(e->has & MESSAGE_TREE_HAS_INODE) == !e->inode &&
	       !(e->has & MESSAGE_TREE_HAS_CHANGE) == !e->change &&
	       (e->attr.type == MESSAGE_FILE || !(e->inode || e->change));
}

static void message_tree_put_has(struct wire *w, const struct message_tree_entry *e)
{
	wire_put_u8(w, e->has);
	if (e->has & MESSAGE_TREE_HAS_OWNERS) {
		wire_put_bytes(w, e->user, MESSAGE_NAME_MAX);
		wire_put_bytes(w, e->group, MESSAGE_NAME_MAX);
	}
	if (e->has & MESSAGE_TREE_HAS_EXTRA)
		wire_put_u64(w, e->extra);
	if (e->has & MESSAGE_TREE_HAS_INODE)
		wire_put_u64(w, e->inode);
	if (e->has & MESSAGE_TREE_HAS_CHANGE)
		wire_put_u64(w, e->change);
}

static void message_tree_get_has(struct wire *w, struct message_tree_entry *e)
{
	e->has = wire_get_u8(w);
	wire_require(w, e->has != 0);
	if (e->has & MESSAGE_TREE_HAS_OWNERS) {
		e->user = wire_get_bytes(w, MESSAGE_NAME_MAX);
		e->group = wire_get_bytes(w, MESSAGE_NAME_MAX);
	}
	if (e->has & MESSAGE_TREE_HAS_EXTRA)
		e->extra = wire_get_u64(w);
	if (e->has & MESSAGE_TREE_HAS_INODE)
		e->inode = wire_get_u64(w);
	if (e->has & MESSAGE_TREE_HAS_CHANGE)
		e->change = wire_get_u64(w);
}

static bool message_tree_entry_ok(const struct message_tree_entry *e)
{
	bool link = e->attr.type == MESSAGE_SYMLINK && !e->status;

	return (e->name.len || e->attr.type == MESSAGE_DIRECTORY) && transfer_name_ok(e->name) &&
	       (link ? e->target.len > 0 : !e->target.len) && message_tree_has_ok(e) &&
	       (!e->target.len || !memchr(e->target.data, '\0', e->target.len));
}

void message_tree_begin(struct message_tree_writer *writer, void *buf, size_t size)
{
	message_list_begin(&writer->list, buf, size);
	writer->len = 0;
}

int message_tree_add(struct message_tree_writer *writer, const struct message_tree_entry *e)
{
	struct wire w = writer->list.wire;
	size_t shared = 0;

	if (writer->list.count == MESSAGE_LIST_MAX)
		return -EMSGSIZE;
	while (shared < writer->len && shared < e->name.len &&
		writer->name[shared] == e->name.data[shared])
		shared++;
	wire_require(&w, message_tree_entry_ok(e));
	message_put_attr_fields(&w, &e->attr);
	wire_put_u16(&w, e->status);
	wire_put_u16(&w, (uint16_t)(shared | (e->has ? MESSAGE_TREE_HAS : 0)));
	wire_put_bytes(&w, (struct wire_bytes){e->name.data + shared, e->name.len - shared},
		MESSAGE_TREE_NAME_MAX);
	wire_put_bytes(&w, e->target, MESSAGE_TREE_TARGET_MAX);
	if (e->has)
		message_tree_put_has(&w, e);
	if (w.error)
		return w.error;
	memcpy(writer->name + shared, e->name.data + shared, e->name.len - shared);
	writer->len = e->name.len;
	writer->list.wire = w;
	writer->list.count++;
	return 0;
}

ssize_t message_tree_end(struct message_tree_writer *writer, bool more)
{
	return message_list_end(&writer->list, more);
}

int message_tree_read(struct message_tree_reader *reader, struct message_list_reply *head,
	const void *buf, size_t len)
{
	struct wire *w = &reader->wire;

	reader->len = 0;
	wire_init_get(w, buf, len);
	head->more = wire_get_u8(w);
	head->count = wire_get_u16(w);
	wire_require(w, head->more <= (head->count ? 1 : 0) && head->count <= MESSAGE_LIST_MAX);
	if (!w->error && wire_left(w) < (size_t)head->count * MESSAGE_TREE_ENTRY_MIN)
		w->error = -EMSGSIZE;
	return w->error;
}

int message_tree_next(struct message_tree_reader *reader, struct message_tree_entry *e)
{
	struct wire *w = &reader->wire;
	struct wire_bytes rest;
	size_t shared;
	bool has;

	*e = (struct message_tree_entry){0};
	message_get_attr_fields(w, &e->attr);
	e->status = wire_get_u16(w);
	shared = wire_get_u16(w);
	has = shared & MESSAGE_TREE_HAS;
	shared &= ~(size_t)MESSAGE_TREE_HAS;
	rest = wire_get_bytes(w, MESSAGE_TREE_NAME_MAX);
	e->target = wire_get_bytes(w, MESSAGE_TREE_TARGET_MAX);
	if (has)
		message_tree_get_has(w, e);
	/* one way to write it: as much is shared as can be */
	wire_require(w, shared <= reader->len && shared + rest.len <= sizeof reader->name &&
				!(rest.len && shared < reader->len &&
					rest.data[0] == reader->name[shared]));
	if (w->error)
		return w->error;
	if (rest.len)
		memcpy(reader->name + shared, rest.data, rest.len);
	reader->len = shared + rest.len;
	e->name = (struct wire_bytes){reader->name, reader->len};
	wire_require(w, message_tree_entry_ok(e));
	return w->error;
}

int message_tree_finish(struct message_tree_reader *reader)
{
	return wire_finish(&reader->wire);
}
