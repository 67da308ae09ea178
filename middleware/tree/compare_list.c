/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/compare_list.c: the two lists of tree/compare.
 */
#include "tree/compare.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COMPARE_OWNERS_LOOKED 64u

void compare_list_fini(struct compare_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->entries[i].name);
		free(list->entries[i].target);
	}
	free(list->entries);
	free(list->top.name);
	while (list->owners) {
		struct compare_owner *owner = list->owners;

		list->owners = owner->next;
		free(owner->user);
		free(owner->group);
		free(owner);
	}
	*list = (struct compare_list){0};
}

int compare_list_append(struct compare_list *list, const struct compare_entry *entry)
{
	const size_t room = list->room ? list->room * 2 : 256;
	struct compare_entry *grown;

	if (list->count == list->room) {
		grown = realloc(list->entries, room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		list->entries = grown;
		list->room = room;
	}
	list->entries[list->count++] = *entry;
	list->failed += entry->failed != 0;
	return 0;
}

static bool is_text(const char *text, struct wire_bytes bytes)
{
	return strlen(text) == bytes.len && (!bytes.len || !memcmp(text, bytes.data, bytes.len));
}

static char *text_of(struct wire_bytes bytes)
{
	return strndup(bytes.len ? (const char *)bytes.data : "", bytes.len);
}

/* Of an entry, shared with others of the same; of those that were met last, so that a tree of many
 * owners is no search.  0 or -ENOMEM. */
static int find_owner(struct compare_list *list, const struct message_tree_entry *from,
	const struct compare_owner **out)
{
	struct compare_owner *owner = list->owners;
	unsigned looked = 0;

	for (; owner && looked < COMPARE_OWNERS_LOOKED; owner = owner->next, looked++) {
		if (owner->uid != from->attr.uid || owner->gid != from->attr.gid ||
			!is_text(owner->user, from->user) || !is_text(owner->group, from->group))
			continue;
		*out = owner;
		return 0;
	}
	owner = malloc(sizeof *owner);
	if (!owner)
		return -ENOMEM;
	*owner = (struct compare_owner){.next = list->owners,
		.uid = from->attr.uid,
		.gid = from->attr.gid,
		.user = text_of(from->user),
		.group = text_of(from->group)};
	list->owners = owner; /* it is freed with the list */
	*out = owner;
	return owner->user && owner->group ? 0 : -ENOMEM;
}

int compare_list_add(struct compare_list *list, const struct message_tree_entry *from)
{
	struct compare_entry e = {.type = from->attr.type,
		.failed = from->status,
		.has = from->has,
		.extra = from->extra,
		.inode = from->inode,
		.change = from->change,
		.mode = (uint16_t)from->attr.mode,
		.mtime_s = from->attr.mtime_s,
		.mtime_ns = from->attr.mtime_ns,
		.size = from->attr.size,
		.disk = from->attr.holes ? 0 : from->attr.size};

	if (from->has & MESSAGE_TREE_HAS_OWNERS && find_owner(list, from, &e.owner))
		return -ENOMEM;
	e.name = strndup((const char *)from->name.data, from->name.len);
	if (!from->name.len && e.name) {
		if (list->top.name) {
			free(e.name);
			return -EPROTO;
		}
		list->top = e;
		return 0;
	}
	if (from->target.len)
		e.target = strndup((const char *)from->target.data, from->target.len);
	if (!e.name || (from->target.len && !e.target) || compare_list_append(list, &e)) {
		free(e.name);
		free(e.target);
		return -ENOMEM;
	}
	return list->count > 1 && selection_order(list->entries[list->count - 2].name, e.name) >= 0
		       ? -EPROTO
		       : 0;
}

struct compare_entry *compare_list_find(const struct compare_list *list, const char *name)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = selection_order(list->entries[middle].name, name);

		if (!order)
			return &list->entries[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

struct message_seen compare_seen(const struct compare_entry *e)
{
	return (struct message_seen){.size = e->size,
		.mtime_s = e->mtime_s,
		.mtime_ns = e->mtime_ns,
		.change = e->change};
}

bool compare_list_has(
	const struct compare_list *list, const char *name, int64_t mtime_s, uint32_t mtime_ns)
{
	const struct compare_entry *e = compare_list_find(list, name);

	return e && e->mtime_s == mtime_s && e->mtime_ns == mtime_ns;
}
