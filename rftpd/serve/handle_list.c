/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_list: LIST.
 */
#include "base/opener.h"
#include "proto/status.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct list {
	struct listing listing; /* first */
	unsigned listed;        /* exports that were told of */
	DIR *dir;
	/* an entry that did not fit the last frame */
	bool has_entry;
	struct message_attr attr;
	char name[MESSAGE_NAME_MAX + 1];
	size_t target_len; /* of a link */
	char target[MESSAGE_PATH_MAX + 1];
};

static void list_free(struct listing *listing)
{
	struct list *l = (struct list *)listing;

	if (l->dir)
		closedir(l->dir);
	free(l);
}

/* The next entry into l->attr and l->name: 1, 0 (no more), -errno. */
static int next_export(struct list *l)
{
	const struct view *v = l->listing.task.session->view;
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

/* What it says; one that cannot be read says nothing. */
static void read_target(struct list *l)
{
	ssize_t n = opener_readlinkat(dirfd(l->dir), l->name, l->target, sizeof l->target);

	l->target_len = n > 0 && n <= (ssize_t)MESSAGE_PATH_MAX ? (size_t)n : 0;
}

/* One that has gone since, may not be looked at, or is on a file system that is not there now.  By
 * another error nobody knows what there is: a list without it would be a wrong one. */
static bool is_passed_over(int error)
{
	return error == ENOENT || error == EACCES || error == EPERM || error == ESTALE ||
	       error == ENOTCONN;
}

static int next_entry(struct list *l)
{
	l->target_len = 0;
	if (l->listing.found == VIEW_TOP)
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
		if (opener_fstatat(dirfd(l->dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW)) {
			if (is_passed_over(errno))
				continue;
			return -errno;
		}
		handle_attr(&l->attr, &st);
		snprintf(l->name, sizeof l->name, "%s", e->d_name);
		if (S_ISLNK(st.st_mode))
			read_target(l);
		return 1;
	}
}

/* Opens the directory first; then one frame of what is in it. */
static void list_fill(struct listing *listing)
{
	struct list *l = (struct list *)listing;
	struct message_list_writer writer;
	int err = l->dir || listing->found == VIEW_TOP
			  ? 1
			  : place_list(listing->place, listing->beneath, &l->dir);

	if (err < 0) {
		listing->result = err;
		return;
	}
	message_list_begin(&writer, listing->frame, sizeof listing->frame);
	for (;;) {
		struct message_entry entry;

		if (!l->has_entry) {
			err = next_entry(l);
			if (err != 1)
				break;
			l->has_entry = true;
		}
		entry = (struct message_entry){l->attr, {(const uint8_t *)l->name, strlen(l->name)},
			{(const uint8_t *)l->target, l->target_len}};
		err = 1;
		if (message_list_add(&writer, &entry) == -EMSGSIZE && writer.count)
			break;
		l->has_entry = false;
	}
	listing->result = err;
	listing->frame_bytes = message_list_end(&writer, err == 1);
}

static const struct listing_ops list_ops = {
	.type = MESSAGE_LIST, .fill = list_fill, .free = list_free};

int handle_list(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_path m;
	struct list *l;
	int err = message_get_path(&m, data, len);

	if (err)
		return err;
	l = calloc(1, sizeof *l);
	if (!l)
		return -ENOMEM;
	handle_path(l->listing.path, m.path);
	return listing_start(s, &l->listing, &list_ops);
}
