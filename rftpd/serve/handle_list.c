/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_list: LIST.
 *
 * A listing is read as fast as the client takes it: a frame is made when the ones before have left,
 * so a directory of any size costs one frame of memory.  Each frame is a task: the directory may
 * take its time.
 */
#include "proto/status.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_BYTES 16384u /* some two hundred entries */

struct listing {
	struct session_task task; /* first: makes a frame */
	/* where it leads: a directory of an export, or the one that lists them */
	const struct place *place;
	const char *beneath;
	int found;       /* 0, -errno, or VIEW_TOP */
	unsigned listed; /* exports that were told of */
	DIR *dir;
	uint8_t frame[FRAME_BYTES];
	ssize_t frame_bytes; /* or what putting it together failed with */
	int result;          /* of the reading: 1 (there is more), 0, -errno */
	/* an entry that did not fit the last frame */
	bool has_entry;
	struct message_attr attr;
	char name[MESSAGE_NAME_MAX + 1];
	char path[MESSAGE_PATH_MAX + 1]; /* for a refusal */
};

void handle_list_free(struct listing *l)
{
	if (!l)
		return;
	if (l->dir)
		closedir(l->dir);
	free(l);
}

/* The next entry into l->attr and l->name: 1, 0 (no more), -errno. */
static int next_export(struct listing *l)
{
	const struct view *v = l->task.session->view;
	const struct view_entry *entry;
	struct stat st;

	if (l->listed == v->count)
		return 0;
	entry = &v->entries[l->listed++];
	if (fstat(entry->place.top, &st))
		return -errno;
	handle_attr(&l->attr, &st);
	snprintf(l->name, sizeof l->name, "%s", entry->name);
	return 1;
}

static int next_entry(struct listing *l)
{
	if (l->found == VIEW_TOP)
		return next_export(l);
	for (;;) {
		struct dirent *e;
		struct stat st;

		errno = 0;
		e = readdir(l->dir);
		if (!e)
			return -errno;
		if (!message_name_ok(
			    (struct wire_bytes){(const uint8_t *)e->d_name, strlen(e->d_name)}))
			continue;
		/* one that has gone since, or may not be looked at, is passed over */
		if (fstatat(dirfd(l->dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		handle_attr(&l->attr, &st);
		snprintf(l->name, sizeof l->name, "%s", e->d_name);
		return 1;
	}
}

/* Opens the directory first; then one frame of what is in it. */
static void work_list(struct session_task *task)
{
	struct listing *l = (struct listing *)task;
	struct message_list_writer writer;
	int r = l->found < 0                     ? l->found
		: l->dir || l->found == VIEW_TOP ? 1
						 : place_list(l->place, l->beneath, &l->dir);

	if (r < 0) {
		l->result = r;
		return;
	}
	message_list_begin(&writer, l->frame, sizeof l->frame);
	for (;;) {
		struct message_entry entry;

		if (!l->has_entry) {
			r = next_entry(l);
			if (r != 1)
				break;
			l->has_entry = true;
		}
		entry = (struct message_entry){
			l->attr, {(const uint8_t *)l->name, strlen(l->name)}};
		r = 1;
		if (message_list_add(&writer, &entry) == -EMSGSIZE && writer.count)
			break;
		l->has_entry = false;
	}
	l->result = r;
	l->frame_bytes = message_list_end(&writer, r == 1);
}

static int answer_list(struct session_task *task)
{
	struct listing *l = (struct listing *)task;
	struct daemon_session *s = task->session;
	int r;

	if (l->result < 0) /* what was sent before it is void: a refusal ends the listing as `more`
			      0 does */
		r = handle_refuse_path(s, MESSAGE_LIST, l->result, l->path);
	else
		r = daemon_session_reply(s, MESSAGE_LIST, l->frame, l->frame_bytes);
	if (l->result != 1) {
		handle_list_free(l);
		s->listing = NULL;
	}
	return r;
}

static void forget_list(struct session_task *task)
{
	task->session->listing = NULL;
	handle_list_free((struct listing *)task);
}

int handle_list(struct daemon_session *s, const uint8_t *data, size_t len)
{
	const struct view_entry *entry;
	struct message_path m;
	struct listing *l;
	int r = message_get_path(&m, data, len);

	if (r)
		return r;
	l = calloc(1, sizeof *l);
	if (!l)
		return -ENOMEM;
	l->task = (struct session_task){
		.session = s, .work = work_list, .answer = answer_list, .forget = forget_list};
	handle_path(l->path, m.path);
	l->found = view_find(s->view, l->path, &entry, &l->beneath);
	l->place = &entry->place;
	s->listing = l;
	return handle_list_more(s);
}

int handle_list_more(struct daemon_session *s)
{
	return session_task_start(&s->listing->task, MESSAGE_LIST);
}
