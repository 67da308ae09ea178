/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_change: SETATTR and MAKE_LINK: modes, times, owners, symbolic links.
 *
 * Each request is one task; of a SETATTR each name is a change and an outcome of its own.
 */
#include "proto/message_change.h"
#include "proto/status.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_limits.h"
#include "rftpd/serve/session_task.h"
#include "tree/owners.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct change_task {
	struct session_task base; /* first */
	uint16_t count;
	uint16_t statuses[MESSAGE_CHANGES_MAX];
	struct owners *owners;  /* once a name was asked about */
	struct wire_bytes data; /* the request's */
	uint8_t bytes[];
};

static struct change_task *of(struct session_task *t)
{
	return (struct change_task *)t;
}

static void change_free(struct change_task *t)
{
	owners_free(t->owners);
	free(t);
}

static void forget(struct session_task *t)
{
	change_free(of(t));
}

static int begin(struct daemon_session *s, struct session_task base, uint16_t type,
	const uint8_t *data, size_t len)
{
	struct change_task *t = malloc(sizeof *t + len);

	if (!t)
		return -ENOMEM;
	t->base = base;
	t->base.session = s;
	t->owners = NULL;
	t->base.forget = forget;
	memcpy(t->bytes, data, len);
	t->data = (struct wire_bytes){t->bytes, len};
	return session_task_start(&t->base, type);
}

/* Where a path leads: 0 or -errno. */
static int find(const struct daemon_session *s, const char *path, const struct view_entry **entry,
	const char **beneath)
{
	int found = view_find(s->view, path, entry, beneath);

	return found == VIEW_TOP ? -EACCES : found;
}

/* Before the task, in the loop: whether the export may be used. */
static int enter(struct daemon_session *s, const char *path)
{
	const struct view_entry *entry;
	const char *beneath;

	return session_limits_find(s, path, &entry, &beneath);
}

static void audit(const struct daemon_session *s, struct audit_event e)
{
	e.session = s->number;
	e.peer = s->peer;
	e.user = daemon_session_user(s);
	audit_write(&s->daemon->audit, &e);
}

/* ---- SETATTR ---- */

/* The number of a user or group.  0; -EINVAL: none of that name is known; -ENOMEM. */
static int change_find_id(struct change_task *t, enum owners_kind kind, struct wire_bytes name,
	uint32_t id, uint32_t *out)
{
	char text[OWNERS_NAME_MAX + 1];

	*out = id;
	if (!name.len)
		return 0;
	if (!t->owners && owners_new(&t->owners))
		return -ENOMEM;
	memcpy(text, name.data, name.len);
	text[name.len] = '\0';
	/* who is root everywhere, also where nobody can be asked any more */
	*out = strcmp(text, "root") ? owners_id(t->owners, kind, text, id) : 0;
	return *out == MESSAGE_CHANGE_NO_ID ? -EINVAL : 0;
}

static int change_owners(
	struct change_task *t, const struct message_change *m, struct change *change)
{
	uint32_t uid = 0, gid = 0;
	int err = 0;

	change->has_owner = m->flags & MESSAGE_CHANGE_OWNER;
	change->has_group = m->flags & MESSAGE_CHANGE_GROUP;
	if (change->has_owner)
		err = change_find_id(t, OWNERS_USER, m->user, m->uid, &uid);
	if (!err && change->has_group)
		err = change_find_id(t, OWNERS_GROUP, m->group, m->gid, &gid);
	change->uid = uid;
	change->gid = gid;
	return err;
}

/* "USER:GROUP", what is not changed left out: names where the client has any, or numbers. */
static void describe_owners(const struct message_change *m, char *text, size_t size)
{
	char user[OWNERS_NAME_MAX + 1] = "", group[OWNERS_NAME_MAX + 1] = "";

	if (m->flags & MESSAGE_CHANGE_OWNER) {
		if (m->user.len)
			memcpy(user, m->user.data, m->user.len);
		else
			snprintf(user, sizeof user, "%" PRIu32, m->uid);
	}
	if (m->flags & MESSAGE_CHANGE_GROUP) {
		if (m->group.len)
			memcpy(group, m->group.data, m->group.len);
		else
			snprintf(group, sizeof group, "%" PRIu32, m->gid);
	}
	snprintf(text, size, "%s%s%s", user, *group ? ":" : "", group);
}

static int change_one(struct change_task *t, const struct message_change *m)
{
	const struct daemon_session *s = t->base.session;
	struct change change = {
		.has_mode = m->flags & MESSAGE_CHANGE_MODE,
		.has_mtime = m->flags & MESSAGE_CHANGE_MTIME,
		.has_seen = m->flags & MESSAGE_CHANGE_SEEN,
		.seen = m->seen,
		.now = m->flags & MESSAGE_CHANGE_NOW,
		.create = m->flags & MESSAGE_CHANGE_CREATE,
		.link = m->flags & MESSAGE_CHANGE_LINK,
		.mode = m->mode,
		.mtime_s = m->mtime_s,
		.mtime_ns = m->mtime_ns,
	};
	char path[MESSAGE_PATH_MAX + 1], mode[8] = "", owners[2 * OWNERS_NAME_MAX + 2];
	const struct view_entry *entry;
	const char *beneath;
	int found, err;

	handle_path(path, m->path);
	found = find(s, path, &entry, &beneath);
	err = found ? found : change_owners(t, m, &change);
	if (!err)
		err = place_change(&entry->place, beneath, &change);
	if (change.has_mode)
		snprintf(mode, sizeof mode, "%04o", (unsigned)m->mode);
	describe_owners(m, owners, sizeof owners);
	audit(s, (struct audit_event){.event = change.has_owner || change.has_group ? "chown"
					       : change.has_mode                    ? "chmod"
										    : "touch",
			 .export_name = found ? NULL : entry->name,
			 .path = found ? path : beneath,
			 .mode = mode,
			 .owner = owners,
			 .status = status_from_errno(err)});
	return err;
}

static void work_set_attr(struct session_task *task)
{
	struct change_task *t = of(task);
	struct message_set_attr m;
	struct message_change change;

	t->count = 0;
	if (message_get_set_attr(&m, t->data.data, t->data.len))
		return;
	while (t->count < m.count && message_next_change(&m.changes, &change))
		t->statuses[t->count++] = status_from_errno(change_one(t, &change));
}

static int answer_set_attr(struct session_task *task)
{
	struct change_task *t = of(task);
	const struct message_set_attr_reply m = {.count = t->count};
	uint8_t reply[2 + 2 * MESSAGE_CHANGES_MAX];
	int err = daemon_session_reply(task->session, MESSAGE_SETATTR, reply,
		message_put_set_attr_reply(&m, t->statuses, reply, sizeof reply));

	change_free(t);
	return err;
}

int handle_set_attr(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_change change;
	char path[MESSAGE_PATH_MAX + 1];
	struct message_set_attr m;
	int err = message_get_set_attr(&m, data, len);

	if (err)
		return err;
	while (message_next_change(&m.changes, &change)) {
		handle_path(path, change.path);
		if (enter(s, path) == -EUSERS)
			return handle_refuse_path(s, MESSAGE_SETATTR, -EUSERS, path);
	}
	return begin(s, (struct session_task){.work = work_set_attr, .answer = answer_set_attr},
		MESSAGE_SETATTR, data, len);
}

/* ---- MAKE_LINK ---- */

static void work_make_link(struct session_task *task)
{
	const struct daemon_session *s = task->session;
	char path[MESSAGE_PATH_MAX + 1], target[MESSAGE_PATH_MAX + 1];
	struct change_task *t = of(task);
	const struct view_entry *entry;
	struct message_make_link m;
	const char *beneath;
	int found, err;

	if (message_get_make_link(&m, t->data.data, t->data.len)) {
		t->statuses[0] = STATUS_PROTOCOL;
		return;
	}
	handle_path(path, m.path);
	handle_path(target, m.target);
	found = find(s, path, &entry, &beneath);
	err = found ? found : place_make_link(&entry->place, target, beneath);
	audit(s, (struct audit_event){.event = "ln",
			 .export_name = found ? NULL : entry->name,
			 .path = found ? path : beneath,
			 .to = target,
			 .status = status_from_errno(err)});
	t->statuses[0] = status_from_errno(err == -EINVAL ? -ENAMETOOLONG : err);
}

static int answer_make_link(struct session_task *task)
{
	struct change_task *t = of(task);
	struct daemon_session *s = task->session;
	char path[MESSAGE_PATH_MAX + 1] = "";
	struct message_make_link m;
	int err;

	if (!message_get_make_link(&m, t->data.data, t->data.len))
		handle_path(path, m.path);
	err = t->statuses[0] ? handle_refuse_path(
				       s, MESSAGE_MAKE_LINK, status_to_errno(t->statuses[0]), path)
			     : daemon_session_reply(s, MESSAGE_MAKE_LINK, NULL, 0);
	change_free(t);
	return err;
}

int handle_make_link(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct message_make_link m;
	int err = message_get_make_link(&m, data, len);

	if (err)
		return err;
	handle_path(path, m.path);
	if (enter(s, path) == -EUSERS)
		return handle_refuse_path(s, MESSAGE_MAKE_LINK, -EUSERS, path);
	return begin(s, (struct session_task){.work = work_make_link, .answer = answer_make_link},
		MESSAGE_MAKE_LINK, data, len);
}
