/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_names.c: owns the encoding of the requests.  It does not know who asks.
 */
#include "session/calls_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_REQUEST_MAX (2 * MESSAGE_PATH_MAX + 64)
#define CALLS_UNDER_WAY 64u /* requests at once */

static struct wire_bytes calls_bytes(const char *path)
{
	return (struct wire_bytes){(const uint8_t *)path, strlen(path)};
}

/* A request that is one path. */
static int calls_path(
	struct calls *c, uint16_t type, const char *path, const uint8_t **reply, size_t *len)
{
	struct message_path request = {.path = calls_bytes(path)};
	uint8_t data[CALLS_REQUEST_MAX];

	return calls_ask(c, type, data, message_put_path(&request, data, sizeof data), reply, len);
}

int calls_stat(struct calls *c, const char *path, struct message_attr *attr)
{
	const uint8_t *reply;
	size_t len;
	int err = calls_path(c, MESSAGE_STAT, path, &reply, &len);

	if (err)
		return err;
	return message_get_attr(attr, reply, len) ? calls_bad_reply(c, MESSAGE_STAT) : 0;
}

void calls_stat_ahead(struct calls *c, const char *path)
{
	const struct message_path request = {.path = calls_bytes(path)};
	uint8_t data[CALLS_REQUEST_MAX];

	calls_ahead(c, 0, MESSAGE_STAT, data, message_put_path(&request, data, sizeof data));
}

int calls_statfs(struct calls *c, const char *path, struct message_statfs_reply *out)
{
	const uint8_t *reply;
	size_t len;
	int err = calls_path(c, MESSAGE_STATFS, path, &reply, &len);

	if (err)
		return err;
	return message_get_statfs_reply(out, reply, len) ? calls_bad_reply(c, MESSAGE_STATFS) : 0;
}

int calls_rmdir(struct calls *c, const char *path)
{
	return calls_path(c, MESSAGE_RMDIR, path, NULL, NULL);
}

/* Many requests of one kind, several under way. */
struct calls_many {
	uint16_t type;
	size_t count;
	ssize_t (*put)(void *ctx, size_t index, void *buf, size_t size);
	/* A reply that is no error: 0, or -EPROTO as of calls_bad_reply.  NULL: there is nothing in
	 * it. */
	int (*take)(void *ctx, const uint8_t *reply, size_t len);
	void (*done)(void *ctx, size_t index, int err);
	void *ctx;
};

static int calls_many_send(struct calls *c, const struct calls_many *m, size_t index)
{
	uint8_t data[CALLS_REQUEST_MAX];

	return calls_send(c, m->type, data, m->put(m->ctx, index, data, sizeof data));
}

static int calls_many(struct calls *c, const struct calls_many *m)
{
	size_t sent = 0, done = 0;
	bool lost;
	const uint8_t *reply;
	size_t len;

	while (done < m->count) {
		int err = 0;

		while (!err && sent < m->count && sent - done < CALLS_UNDER_WAY)
			err = calls_many_send(c, m, sent++);
		if (err && !calls_lost(c) && --sent > done)
			err = 0; /* a name that cannot be sent has its turn: it fails again then */
		if (!err) {
			err = calls_reply(c, m->type, &reply, &len);
			if (!err && m->take)
				err = m->take(m->ctx, reply, len);
		} else if (!calls_lost(c)) {
			sent++;
		}
		lost = calls_lost(c); /* who is told may end it */
		m->done(m->ctx, done++, err);
		if (lost)
			return err;
	}
	return 0;
}

static ssize_t calls_put_path(const char *path, void *buf, size_t size)
{
	const struct message_path request = {.path = calls_bytes(path)};

	return message_put_path(&request, buf, size);
}

static ssize_t calls_put_removal(void *ctx, size_t index, void *buf, size_t size)
{
	const struct calls_removal *r = ctx;

	return calls_put_path(r->path(r->ctx, index), buf, size);
}

static void calls_removed(void *ctx, size_t index, int err)
{
	const struct calls_removal *r = ctx;

	r->done(r->ctx, index, err);
}

int calls_remove_all(struct calls *c, const struct calls_removal *r)
{
	struct calls_removal all = *r;

	return calls_many(c, &(struct calls_many){.type = MESSAGE_REMOVE,
				     .count = r->count,
				     .put = calls_put_removal,
				     .done = calls_removed,
				     .ctx = &all});
}

struct calls_looking {
	struct calls *calls;
	const struct calls_look *look;
	struct message_attr attr;
	char target[MESSAGE_PATH_MAX + 1];
};

static ssize_t calls_put_look(void *ctx, size_t index, void *buf, size_t size)
{
	const struct calls_look *look = ((struct calls_looking *)ctx)->look;

	return calls_put_path(look->path(look->ctx, index), buf, size);
}

static int calls_take_look(void *ctx, const uint8_t *reply, size_t len)
{
	struct calls_looking *l = ctx;
	struct message_link_attr found;

	if (message_get_link_attr(&found, reply, len))
		return calls_bad_reply(l->calls, MESSAGE_LSTAT);
	l->attr = found.attr;
	if (found.target.len)
		memcpy(l->target, found.target.data, found.target.len);
	l->target[found.target.len] = '\0';
	return 0;
}

static void calls_looked(void *ctx, size_t index, int err)
{
	const struct calls_looking *l = ctx;

	l->look->done(l->look->ctx, index, err, err ? NULL : &l->attr,
		err || !*l->target ? NULL : l->target);
}

int calls_look_all(struct calls *c, const struct calls_look *look)
{
	struct calls_looking looking = {.calls = c, .look = look};

	return calls_many(c, &(struct calls_many){.type = MESSAGE_LSTAT,
				     .count = look->count,
				     .put = calls_put_look,
				     .take = calls_take_look,
				     .done = calls_looked,
				     .ctx = &looking});
}

static ssize_t calls_put_renaming(void *ctx, size_t index, void *buf, size_t size)
{
	const struct calls_renaming *r = ctx;
	const struct message_rename request = {
		.flags = r->replace ? MESSAGE_RENAME_REPLACE : 0,
		.from = calls_bytes(r->from[index]),
		.to = calls_bytes(r->to[index]),
	};

	return message_put_rename(&request, buf, size);
}

static void calls_renamed(void *ctx, size_t index, int err)
{
	const struct calls_renaming *r = ctx;

	r->done(r->ctx, index, err);
}

int calls_rename_all(struct calls *c, const struct calls_renaming *r)
{
	struct calls_renaming all = *r;

	return calls_many(c, &(struct calls_many){.type = MESSAGE_RENAME,
				     .count = r->count,
				     .put = calls_put_renaming,
				     .done = calls_renamed,
				     .ctx = &all});
}

int calls_remove_tree(struct calls *c, const char *path, struct message_removed *out)
{
	const uint8_t *reply;
	size_t len;
	int err = calls_path(c, MESSAGE_REMOVE_TREE, path, &reply, &len);

	if (err)
		return err;
	return message_get_removed(out, reply, len) ? calls_bad_reply(c, MESSAGE_REMOVE_TREE) : 0;
}

int calls_mkdir(struct calls *c, const char *path, bool parents)
{
	struct message_mkdir request = {
		.mode = 0777, /* the daemon's umask narrows it */
		.flags = parents ? MESSAGE_MKDIR_PARENTS : 0,
		.path = calls_bytes(path),
	};
	uint8_t data[CALLS_REQUEST_MAX];

	return calls_ask(
		c, MESSAGE_MKDIR, data, message_put_mkdir(&request, data, sizeof data), NULL, NULL);
}

int calls_rename(struct calls *c, const char *from, const char *to, bool replace)
{
	struct message_rename request = {
		.flags = replace ? MESSAGE_RENAME_REPLACE : 0,
		.from = calls_bytes(from),
		.to = calls_bytes(to),
	};
	uint8_t data[CALLS_REQUEST_MAX];

	return calls_ask(c, MESSAGE_RENAME, data, message_put_rename(&request, data, sizeof data),
		NULL, NULL);
}

int calls_store(struct calls *c, unsigned transfer, const struct message_data_request *request)
{
	uint8_t data[CALLS_REQUEST_MAX];
	ssize_t len = message_put_data_request(request, data, sizeof data);

	if (request->flags & MESSAGE_DATA_EARLY)
		return calls_begin_early(c, transfer, MESSAGE_STORE, data, len);
	return calls_begin(c, transfer, MESSAGE_STORE, data, len);
}

int calls_retrieve(struct calls *c, unsigned transfer, const struct message_data_request *request)
{
	uint8_t data[MESSAGE_DATA_MAX]; /* of many paths */

	ssize_t len = message_put_data_request(request, data, sizeof data);

	if (request->flags & MESSAGE_DATA_EARLY)
		return calls_begin_early(c, transfer, MESSAGE_RETRIEVE, data, len);
	return calls_begin(c, transfer, MESSAGE_RETRIEVE, data, len);
}

/* The sums of one frame.  1: more frames follow. */
static int calls_sum_frame(struct calls *c, const uint8_t *reply, size_t len,
	int (*found)(void *, const struct message_sum *), void *ctx)
{
	struct message_sum_reply head;
	struct message_sum sum;
	struct wire wire;

	if (message_get_sum_head(&head, &wire, reply, len))
		return calls_bad_reply(c, MESSAGE_SUM);
	for (unsigned i = 0; i < head.count; i++)
		if (message_get_sum(&sum, &wire) || found(ctx, &sum))
			return calls_bad_reply(c, MESSAGE_SUM);
	return wire_finish(&wire) ? calls_bad_reply(c, MESSAGE_SUM) : head.more;
}

int calls_sum(struct calls *c, const struct message_sum_request *request,
	int (*found)(void *ctx, const struct message_sum *), void *ctx)
{
	uint8_t data[MESSAGE_DATA_MAX]; /* of many paths */
	const uint8_t *reply;
	size_t len;
	int err = calls_ask(c, MESSAGE_SUM, data,
		message_put_sum_request(request, data, sizeof data), &reply, &len);

	while (!err) {
		err = calls_sum_frame(c, reply, len, found, ctx);
		if (err <= 0)
			break;
		err = calls_reply(c, MESSAGE_SUM, &reply, &len);
	}
	return err;
}

int calls_feed(struct calls *c, unsigned transfer, const struct message_feed *request)
{
	uint8_t data[CALLS_REQUEST_MAX];

	return calls_begin(
		c, transfer, MESSAGE_FEED, data, message_put_feed(request, data, sizeof data));
}

/* ---- modes, times, links ---- */

int calls_changes(struct calls *c, const struct message_set_attr *request,
	void (*done)(void *ctx, unsigned index, uint16_t status), void *ctx)
{
	uint8_t *data = malloc(MESSAGE_DATA_MAX);
	struct message_set_attr_reply answer;
	const uint8_t *reply;
	size_t len;
	int err;

	if (!data)
		return -ENOMEM;
	err = calls_ask(c, MESSAGE_SETATTR, data,
		message_put_set_attr(request, data, MESSAGE_DATA_MAX), &reply, &len);
	free(data);
	if (err)
		return err;
	if (message_get_set_attr_reply(&answer, reply, len) || answer.count != request->count)
		return calls_bad_reply(c, MESSAGE_SETATTR);
	for (unsigned i = 0; i < answer.count; i++)
		done(ctx, i, message_change_status(&answer, i));
	return 0;
}

int calls_make_link(struct calls *c, const char *target, const char *path)
{
	const struct message_make_link request = {
		.target = calls_bytes(target), .path = calls_bytes(path)};
	uint8_t data[CALLS_REQUEST_MAX];

	return calls_ask(c, MESSAGE_MAKE_LINK, data,
		message_put_make_link(&request, data, sizeof data), NULL, NULL);
}
