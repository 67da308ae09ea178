/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_names: requests about names: STAT, MKDIR, RMDIR, REMOVE,
 * REMOVE_TREE, RENAME, STATFS.
 *
 * Each is a task: the session's place does the work (tree/place), which may take its time.
 */
#include "proto/status.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_limits.h"
#include "rftpd/serve/session_task.h"
#include "tree/beneath.h"
#include "tree/removal.h"
#include "tree/space.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* What a client may set: a daemon hands no set-user-id bits out. */
#define MODE_ALLOWED 01777

/* Of removing a tree for one request: the client asks for the rest. */
#define REMOVAL_NS (NS_PER_S / 2)

struct asked {
	uint16_t type;
	void (*work)(struct session_task *);
	int (*answer)(struct session_task *);
	void (*forget)(struct session_task *); /* NULL: the usual */
	struct wire_bytes path, to;            /* to: RENAME */
	mode_t mode;
	bool flag; /* MKDIR: parents; RENAME: replace */
};

struct name_task {
	struct session_task base; /* first */
	uint16_t type;
	char path[MESSAGE_PATH_MAX + 1], to[MESSAGE_PATH_MAX + 1];
	/* where they lead */
	const struct place *place;
	const char *export_name, *beneath, *to_beneath;
	int found; /* 0, -errno, or VIEW_TOP */
	mode_t mode;
	bool flag;
	/* found */
	int error;
	bool to_is_at_fault; /* RENAME */
	struct stat st;
	struct statvfs fs;
	struct removal removal;
};

static struct name_task *of(struct session_task *t)
{
	return (struct name_task *)t;
}

static void forget(struct session_task *t)
{
	free(of(t));
}

/* Where the names lead.  Both of a RENAME lie in one export, or it is as between file systems. */
static void find(struct name_task *t, struct daemon_session *s)
{
	const struct view_entry *entry, *other;

	t->found = session_limits_find(s, t->path, &entry, &t->beneath);
	t->place = &entry->place;
	t->export_name = entry->name;
	t->to_beneath = NULL;
	if (t->found || t->type != MESSAGE_RENAME)
		return;
	t->found = session_limits_find(s, t->to, &other, &t->to_beneath);
	if (!t->found && other != entry)
		t->found = -EREMOTE;
}

/* What a request is refused with for where it leads: 0 or -errno. */
static int misplaced(const struct name_task *t)
{
	return t->found == VIEW_TOP ? -EACCES : t->found;
}

static int begin(struct daemon_session *s, const struct asked *asked)
{
	struct name_task *t = malloc(sizeof *t);

	if (!t)
		return -ENOMEM;
	t->base = (struct session_task){.session = s,
		.work = asked->work,
		.answer = asked->answer,
		.forget = asked->forget ? asked->forget : forget};
	t->type = asked->type;
	t->mode = asked->mode;
	t->flag = asked->flag;
	t->error = 0;
	t->removal = (struct removal){0};
	handle_path(t->path, asked->path);
	handle_path(t->to, asked->to);
	find(t, s);
	return session_task_start(&t->base, t->type);
}

/* A request that has a path and nothing else. */
static int begin_path(struct daemon_session *s, struct asked asked, const uint8_t *data, size_t len)
{
	struct message_path m;
	int err = message_get_path(&m, data, len);

	asked.path = m.path;
	return err ? err : begin(s, &asked);
}

/* The answer to a request that has no result but that it was done.  The calls' -EINVAL says that
 * the path has no last component of its own. */
static int answer_done(struct session_task *task)
{
	struct name_task *t = of(task);
	struct daemon_session *s = task->session;
	int err = t->error ? handle_refuse_path(s, t->type,
				     t->error == -EINVAL ? -ENAMETOOLONG : t->error, t->path)
			   : daemon_session_reply(s, t->type, NULL, 0);

	free(t);
	return err;
}

/* What changes names is noted, also what was refused. */
static void audit(const struct name_task *t, const char *event)
{
	const struct daemon_session *s = t->base.session;
	const bool named = !t->found && t->export_name;
	const struct audit_event e = {
		.event = event,
		.session = s->number,
		.peer = s->peer,
		.user = daemon_session_user(s),
		.export_name = named ? t->export_name : NULL,
		.path = named ? t->beneath : t->path,
		.to = t->type != MESSAGE_RENAME ? NULL
		      : named                   ? t->to_beneath
						: t->to,
		.removed = t->removal.removed,
		.status = status_from_errno(t->error),
		.text = t->removal.fault,
	};

	audit_write(&s->daemon->audit, &e);
}

/* ---- STAT ---- */

static void work_stat(struct session_task *t)
{
	/* the directory of the exports is nobody's, and as old as time */
	if (of(t)->found == VIEW_TOP)
		of(t)->st = (struct stat){.st_mode = S_IFDIR | 0555};
	else
		of(t)->error = of(t)->found
				       ? of(t)->found
				       : place_stat(of(t)->place, of(t)->beneath, true, &of(t)->st);
}

static int answer_stat(struct session_task *task)
{
	struct name_task *t = of(task);
	struct message_attr attr;
	uint8_t reply[33];
	int err;

	if (t->error)
		return answer_done(task);
	handle_attr(&attr, &t->st);
	err = daemon_session_reply(
		task->session, MESSAGE_STAT, reply, message_put_attr(&attr, reply, sizeof reply));
	free(t);
	return err;
}

int handle_stat(struct daemon_session *s, const uint8_t *data, size_t len)
{
	return begin_path(s,
		(struct asked){.type = MESSAGE_STAT, .work = work_stat, .answer = answer_stat},
		data, len);
}

static void work_lstat(struct session_task *task)
{
	struct name_task *t = of(task);
	int top = -1;

	if (t->found) {
		work_stat(task);
		return;
	}
	t->error = place_stat(t->place, t->beneath, false, &t->st);
	if (t->error || !S_ISLNK(t->st.st_mode))
		return;
	/* what it says has the room of the path that a RENAME leads to */
	if (place_top(t->place, PLACE_LIST, &top) ||
		beneath_read_link(top, t->beneath, t->to, sizeof t->to) < 0)
		*t->to = '\0';
}

static int answer_lstat(struct session_task *task)
{
	struct name_task *t = of(task);
	struct message_link_attr m;
	uint8_t reply[64 + MESSAGE_PATH_MAX];
	int err;

	if (t->error)
		return answer_done(task);
	handle_attr(&m.attr, &t->st);
	m.target = (struct wire_bytes){(const uint8_t *)t->to, strlen(t->to)};
	err = daemon_session_reply(task->session, MESSAGE_LSTAT, reply,
		message_put_link_attr(&m, reply, sizeof reply));
	free(t);
	return err;
}

int handle_lstat(struct daemon_session *s, const uint8_t *data, size_t len)
{
	return begin_path(s,
		(struct asked){.type = MESSAGE_LSTAT, .work = work_lstat, .answer = answer_lstat},
		data, len);
}

/* ---- MKDIR, RMDIR, REMOVE ---- */

static void work_mkdir(struct session_task *t)
{
	if (of(t)->found != VIEW_TOP || !of(t)->flag)
		of(t)->error = misplaced(of(t));
	if (!of(t)->found)
		of(t)->error = place_mkdir(of(t)->place, of(t)->beneath, of(t)->mode, of(t)->flag);
	audit(of(t), "mkdir");
}

int handle_mkdir(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_mkdir m;
	int err = message_get_mkdir(&m, data, len);
	struct asked asked = {.type = MESSAGE_MKDIR, .work = work_mkdir, .answer = answer_done};

	if (err)
		return err;
	asked.mode = m.mode & MODE_ALLOWED;
	asked.flag = m.flags & MESSAGE_MKDIR_PARENTS;
	asked.path = m.path;
	return begin(s, &asked);
}

static void work_rmdir(struct session_task *t)
{
	of(t)->error = misplaced(of(t));
	if (!of(t)->error)
		of(t)->error = place_rmdir(of(t)->place, of(t)->beneath);
	audit(of(t), "rmdir");
}

int handle_rmdir(struct daemon_session *s, const uint8_t *data, size_t len)
{
	return begin_path(s,
		(struct asked){.type = MESSAGE_RMDIR, .work = work_rmdir, .answer = answer_done},
		data, len);
}

static void work_remove(struct session_task *t)
{
	of(t)->error = misplaced(of(t));
	if (!of(t)->error)
		of(t)->error = place_remove(of(t)->place, of(t)->beneath);
	audit(of(t), "rm");
}

int handle_remove(struct daemon_session *s, const uint8_t *data, size_t len)
{
	return begin_path(s,
		(struct asked){.type = MESSAGE_REMOVE, .work = work_remove, .answer = answer_done},
		data, len);
}

/* ---- REMOVE_TREE ---- */

static void forget_removal(struct session_task *t)
{
	free(of(t)->removal.fault);
	free(of(t));
}

static void work_remove_tree(struct session_task *t)
{
	of(t)->error = misplaced(of(t));
	if (!of(t)->error)
		of(t)->error = place_remove_tree(
			of(t)->place, of(t)->beneath, clock_now_ns() + REMOVAL_NS, &of(t)->removal);
	audit(of(t), "rmtree");
}

static int answer_remove_tree(struct session_task *task)
{
	struct name_task *t = of(task);
	struct message_removed m = {.removed = t->removal.removed, .more = t->removal.more};
	uint8_t reply[16];
	int err;

	if (t->error)
		err = handle_refuse_path(task->session, t->type,
			t->error == -EINVAL ? -ENAMETOOLONG : t->error,
			t->removal.fault ? t->removal.fault : t->path);
	else
		err = daemon_session_reply(task->session, t->type, reply,
			message_put_removed(&m, reply, sizeof reply));
	forget_removal(task);
	return err;
}

int handle_remove_tree(struct daemon_session *s, const uint8_t *data, size_t len)
{
	return begin_path(s,
		(struct asked){.type = MESSAGE_REMOVE_TREE,
			.work = work_remove_tree,
			.answer = answer_remove_tree,
			.forget = forget_removal},
		data, len);
}

/* ---- RENAME ---- */

static void work_rename(struct session_task *task)
{
	struct name_task *t = of(task);

	t->error = misplaced(t);
	if (!t->error)
		t->error = place_rename(t->place, t->beneath, t->to_beneath, t->flag);
	audit(t, "mv");
	t->to_is_at_fault =
		t->error && t->to_beneath && !place_stat(t->place, t->beneath, false, &t->st);
}

static int answer_rename(struct session_task *task)
{
	struct name_task *t = of(task);
	int err;

	if (t->error == -EINVAL)
		err = daemon_session_refuse(task->session, MESSAGE_RENAME, STATUS_INVALID,
			"%.240s to %.240s: a directory cannot go beneath itself, nor the top be "
			"renamed",
			t->path, t->to);
	else if (t->error)
		err = handle_refuse_path(task->session, MESSAGE_RENAME, t->error,
			t->to_is_at_fault ? t->to : t->path);
	else
		err = daemon_session_reply(task->session, MESSAGE_RENAME, NULL, 0);
	free(t);
	return err;
}

int handle_rename(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_rename m;
	int err = message_get_rename(&m, data, len);
	struct asked asked = {.type = MESSAGE_RENAME, .work = work_rename, .answer = answer_rename};

	if (err)
		return err;
	asked.flag = m.flags & MESSAGE_RENAME_REPLACE;
	asked.path = m.from;
	asked.to = m.to;
	return begin(s, &asked);
}

/* ---- STATFS ---- */

static void work_statfs(struct session_task *t)
{
	of(t)->error = misplaced(of(t));
	if (!of(t)->error)
		of(t)->error = place_statfs(of(t)->place, of(t)->beneath, &of(t)->fs);
}

/* As with a quota of the file system's: what is left of it is what is free. */
static void within_quota(const struct place *place, struct message_statfs_reply *m)
{
	uint64_t bytes, files;

	space_left(place->space, &bytes, &files);
	if (bytes != SPACE_NO_MAX) {
		m->total_bytes = MIN(m->total_bytes, atomic_load(&place->space->max_bytes));
		m->free_bytes = MIN(m->free_bytes, bytes);
		m->available_bytes = MIN(m->available_bytes, bytes);
	}
	if (files != SPACE_NO_MAX) {
		m->total_files = MIN(m->total_files, atomic_load(&place->space->max_files));
		m->free_files = MIN(m->free_files, files);
	}
}

static int answer_statfs(struct session_task *task)
{
	struct name_task *t = of(task);
	const struct statvfs *fs = &t->fs;
	struct message_statfs_reply m;
	uint8_t reply[40];
	int err;

	if (t->error)
		return answer_done(task);
	m = (struct message_statfs_reply){
		.total_bytes = (uint64_t)fs->f_blocks * fs->f_frsize,
		.free_bytes = (uint64_t)fs->f_bfree * fs->f_frsize,
		.available_bytes = (uint64_t)fs->f_bavail * fs->f_frsize,
		.total_files = fs->f_files,
		.free_files = fs->f_ffree,
	};
	within_quota(t->place, &m);
	err = daemon_session_reply(task->session, MESSAGE_STATFS, reply,
		message_put_statfs_reply(&m, reply, sizeof reply));
	free(t);
	return err;
}

int handle_statfs(struct daemon_session *s, const uint8_t *data, size_t len)
{
	return begin_path(s,
		(struct asked){
			.type = MESSAGE_STATFS, .work = work_statfs, .answer = answer_statfs},
		data, len);
}
