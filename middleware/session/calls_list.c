/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_list: see calls_list.h.
 */
#include "session/calls_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIST_UNDER_WAY 64u                  /* requests at once */
#define CALLS_LIST_BYTES_MAX (512ull << 20) /* of a listing: what a client should hold */
#define LIST_REQUEST_MAX (MESSAGE_PATH_MAX + 64)

static ssize_t calls_list_request(const char *path, void *data, size_t size)
{
	const struct message_path request = {.path = {(const uint8_t *)path, strlen(path)}};

	return message_put_path(&request, data, size);
}

void calls_list_ahead(struct calls *c, const char *path)
{
	uint8_t data[LIST_REQUEST_MAX];

	calls_ahead(c, 0, MESSAGE_LIST, data, calls_list_request(path, data, sizeof data));
}

static int calls_list_send(struct calls *c, const char *path)
{
	uint8_t data[LIST_REQUEST_MAX];

	return calls_send(c, MESSAGE_LIST, data, calls_list_request(path, data, sizeof data));
}

static int calls_entry_cmp(const void *a, const void *b)
{
	return strcmp(((const struct calls_entry *)a)->name, ((const struct calls_entry *)b)->name);
}

/* The entries of one frame.  1: more frames follow. */
static int calls_list_frame(
	struct calls *c, struct calls_list *list, const uint8_t *reply, size_t len)
{
	struct message_list_reply head;
	struct calls_entry *entries = list->entries;
	struct wire wire;

	if (message_get_list_head(&head, &wire, reply, len))
		return calls_bad_reply(c, MESSAGE_LIST);
	list->bytes += len + head.count * sizeof *entries;
	if (list->bytes > CALLS_LIST_BYTES_MAX)
		return calls_too_long(c, MESSAGE_LIST);
	if (list->room < list->count + head.count) {
		list->room = list->room * 2 + head.count;
		entries = realloc(entries, list->room * sizeof *entries);
		if (!entries)
			return -ENOMEM;
		list->entries = entries;
	}
	for (unsigned i = 0; i < head.count; i++) {
		struct message_entry entry;
		struct calls_entry *e = &entries[list->count];

		if (message_get_list_entry(&entry, &wire))
			return calls_bad_reply(c, MESSAGE_LIST);
		e->attr = entry.attr;
		e->name = strndup((const char *)entry.name.data, entry.name.len);
		e->target = entry.target.len
				    ? strndup((const char *)entry.target.data, entry.target.len)
				    : NULL;
		if (!e->name || (entry.target.len && !e->target)) {
			free(e->name);
			free(e->target);
			return -ENOMEM;
		}
		list->count++;
	}
	return wire_finish(&wire) ? calls_bad_reply(c, MESSAGE_LIST) : head.more;
}

/* All frames of the oldest reply. */
static int calls_list_take(struct calls *c, struct calls_list *list)
{
	const uint8_t *reply;
	size_t len;
	int err;

	*list = (struct calls_list){0};
	do {
		err = calls_reply(c, MESSAGE_LIST, &reply, &len);
		if (!err)
			err = calls_list_frame(c, list, reply, len);
	} while (err > 0);
	if (err) {
		if (err ==
			-ENOMEM) /* the frames that still come would be taken for other replies */
			calls_bad_reply(c, MESSAGE_LIST);
		calls_list_free(list);
		return err;
	}
	if (list->count)
		qsort(list->entries, list->count, sizeof *list->entries, calls_entry_cmp);
	return 0;
}

int calls_list(struct calls *c, const char *path, struct calls_list *list)
{
	int err = calls_list_send(c, path);

	*list = (struct calls_list){0};
	return err ? err : calls_list_take(c, list);
}

int calls_list_all(struct calls *c, const struct calls_listing *l)
{
	const char *path = NULL; /* that is not sent yet */
	size_t under_way = 0;

	for (;;) {
		struct calls_list list = {0};
		int err = 0;
		bool lost;

		while (!err && under_way < LIST_UNDER_WAY &&
			(path || (path = l->next(l->ctx)) != NULL)) {
			err = calls_list_send(c, path);
			if (!err) {
				path = NULL;
				under_way++;
			}
		}
		if (!err && !under_way)
			return 0;
		if (err && !under_way) /* it cannot be sent, and this is its turn */
			path = NULL;
		if (under_way && !(err && calls_lost(c))) {
			err = calls_list_take(c, &list);
			under_way--;
		}
		lost = calls_lost(c); /* who is told may end it */
		l->done(l->ctx, err, &list);
		if (lost)
			return err;
	}
}

void calls_list_free(struct calls_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->entries[i].name);
		free(list->entries[i].target);
	}
	free(list->entries);
	*list = (struct calls_list){0};
}
