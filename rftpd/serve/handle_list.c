/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_list: LIST.
 *
 * A listing is read as fast as the client takes it: a frame is made when the ones before have left,
 * so a directory of any size costs one frame of memory.
 */
#include "proto/status.h"
#include "rftpd/serve/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_BYTES 16384u /* some two hundred entries: the loop serves others in between */

struct listing {
	DIR *dir;
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
	closedir(l->dir);
	free(l);
}

/* The next entry into l->attr and l->name: 1, 0 (no more), -errno. */
static int next_entry(struct listing *l)
{
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

int handle_list(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct message_path m;
	struct listing *l;
	int r = message_get_path(&m, data, len);

	if (r)
		return r;
	handle_path(path, m.path);
	l = calloc(1, sizeof *l);
	r = l ? place_list(s->place, path, &l->dir) : -ENOMEM;
	if (r) {
		free(l);
		return handle_refuse_path(s, MESSAGE_LIST, r, path);
	}
	memcpy(l->path, path, sizeof path);
	s->listing = l;
	return handle_list_more(s);
}

int handle_list_more(struct daemon_session *s)
{
	struct listing *l = s->listing;
	struct message_list_writer writer;
	uint8_t frame[FRAME_BYTES];
	ssize_t n;
	int r = 1;

	message_list_begin(&writer, frame, sizeof frame);
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
		if (message_list_add(&writer, &entry) == -EMSGSIZE && writer.count)
			break;
		l->has_entry = false;
	}
	if (r < 0) { /* what was sent before it is void: a refusal ends the listing as `more` 0 does
		      */
		r = handle_refuse_path(s, MESSAGE_LIST, r, l->path);
		handle_list_free(l);
		s->listing = NULL;
		return r;
	}
	n = message_list_end(&writer, r == 1);
	if (r == 0) {
		handle_list_free(l);
		s->listing = NULL;
	}
	return daemon_session_reply(s, MESSAGE_LIST, frame, n);
}
