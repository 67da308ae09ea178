/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_names.c: owns the requests' encoding and what a listing gave.  Does not know who
 * asks.
 */
#include "rftp/remote/remote_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REMOTE_REQUEST_MAX (2 * MESSAGE_PATH_MAX + 64)
#define REMOTE_ENTRIES_MAX (16u << 20) /* of a listing: what a client should hold */

static struct wire_bytes remote_bytes(const char *path)
{
	return (struct wire_bytes){(const uint8_t *)path, strlen(path)};
}

/* A request that is one path. */
static int remote_path(
	struct session *s, uint16_t type, const char *path, const uint8_t **reply, size_t *len)
{
	struct message_path request = {.path = remote_bytes(path)};
	uint8_t data[REMOTE_REQUEST_MAX];

	return session_call(
		s, type, data, message_put_path(&request, data, sizeof data), reply, len);
}

int remote_stat(struct session *s, const char *path, struct message_attr *attr)
{
	const uint8_t *reply;
	size_t len;
	int err = remote_path(s, MESSAGE_STAT, path, &reply, &len);

	if (err)
		return err;
	return message_get_attr(attr, reply, len) ? session_bad_reply(s, MESSAGE_STAT) : 0;
}

int remote_statfs(struct session *s, const char *path, struct message_statfs_reply *out)
{
	const uint8_t *reply;
	size_t len;
	int err = remote_path(s, MESSAGE_STATFS, path, &reply, &len);

	if (err)
		return err;
	return message_get_statfs_reply(out, reply, len) ? session_bad_reply(s, MESSAGE_STATFS) : 0;
}

int remote_rmdir(struct session *s, const char *path)
{
	return remote_path(s, MESSAGE_RMDIR, path, NULL, NULL);
}

int remote_remove(struct session *s, const char *path)
{
	return remote_path(s, MESSAGE_REMOVE, path, NULL, NULL);
}

int remote_mkdir(struct session *s, const char *path, bool parents)
{
	struct message_mkdir request = {
		.mode = 0777, /* the daemon's umask narrows it */
		.flags = parents ? MESSAGE_MKDIR_PARENTS : 0,
		.path = remote_bytes(path),
	};
	uint8_t data[REMOTE_REQUEST_MAX];

	return session_call(
		s, MESSAGE_MKDIR, data, message_put_mkdir(&request, data, sizeof data), NULL, NULL);
}

int remote_rename(struct session *s, const char *from, const char *to, bool replace)
{
	struct message_rename request = {
		.flags = replace ? MESSAGE_RENAME_REPLACE : 0,
		.from = remote_bytes(from),
		.to = remote_bytes(to),
	};
	uint8_t data[REMOTE_REQUEST_MAX];

	return session_call(s, MESSAGE_RENAME, data,
		message_put_rename(&request, data, sizeof data), NULL, NULL);
}

int remote_data(struct session *s, uint16_t type, const struct message_data_request *request)
{
	uint8_t data[REMOTE_REQUEST_MAX];

	return session_call(
		s, type, data, message_put_data_request(request, data, sizeof data), NULL, NULL);
}

int remote_feed(struct session *s, const struct message_feed *request)
{
	uint8_t data[REMOTE_REQUEST_MAX];

	return session_call(
		s, MESSAGE_FEED, data, message_put_feed(request, data, sizeof data), NULL, NULL);
}

/* ---- listing ---- */

static int remote_entry_cmp(const void *a, const void *b)
{
	return strcmp(
		((const struct remote_entry *)a)->name, ((const struct remote_entry *)b)->name);
}

/* The entries of one frame.  1: more frames follow. */
static int remote_list_frame(
	struct session *s, struct remote_list *list, const uint8_t *reply, size_t len)
{
	struct message_list_reply head;
	struct remote_entry *entries;
	struct wire wire;

	if (message_get_list_head(&head, &wire, reply, len))
		return session_bad_reply(s, MESSAGE_LIST);
	if (list->count + head.count > REMOTE_ENTRIES_MAX)
		return session_bad_reply(s, MESSAGE_LIST);
	entries = realloc(list->entries, (list->count + head.count + 1) * sizeof *entries);
	if (!entries)
		return -ENOMEM;
	list->entries = entries;
	for (unsigned i = 0; i < head.count; i++) {
		struct message_entry entry;
		struct remote_entry *e = &entries[list->count];

		if (message_get_list_entry(&entry, &wire))
			return session_bad_reply(s, MESSAGE_LIST);
		e->attr = entry.attr;
		e->name = strndup((const char *)entry.name.data, entry.name.len);
		if (!e->name)
			return -ENOMEM;
		list->count++;
	}
	return wire_finish(&wire) ? session_bad_reply(s, MESSAGE_LIST) : head.more;
}

int remote_list(struct session *s, const char *path, struct remote_list *list)
{
	const uint8_t *reply;
	size_t len;
	int err = remote_path(s, MESSAGE_LIST, path, &reply, &len);

	*list = (struct remote_list){0};
	while (!err) {
		err = remote_list_frame(s, list, reply, len);
		if (err <= 0)
			break;
		err = session_reply(s, MESSAGE_LIST, &reply, &len);
	}
	if (err) {
		if (err ==
			-ENOMEM) /* the frames that still come would be taken for other replies */
			session_bad_reply(s, MESSAGE_LIST);
		remote_list_free(list);
		return err;
	}
	if (list->count)
		qsort(list->entries, list->count, sizeof *list->entries, remote_entry_cmp);
	return 0;
}

void remote_list_free(struct remote_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->entries[i].name);
	free(list->entries);
	*list = (struct remote_list){0};
}
