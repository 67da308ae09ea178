/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/removal: see removal.h.
 *
 * Owns the one path beneath the tree's directory at which it is: down into the first directory that
 * it finds, and up again once that is empty.
 */
#include "tree/removal.h"

#include "base/clock.h"
#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/space.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMOVAL_TRIES 64 /* of a directory that others fill meanwhile */

struct removal_walk {
	int root;   /* the tree's directory */
	char *path; /* beneath it; "": itself */
	size_t length, room;
	uint64_t until_ns;
	unsigned tries;
	struct space_share *space;
	struct removal *to;
};

/* A name, that is no directory's.  0 or -errno. */
static int removal_unlink(struct space_share *space, int dir, const char *name)
{
	struct space_item old;

	space_look(space, dir, name, &old);
	if (opener_unlinkat(dir, name, 0))
		return -errno;
	space_change(space, &old, &(struct space_item){0});
	return 0;
}

static void removal_count(struct space_share *space)
{
	space_change(space, &(struct space_item){.files = 1}, &(struct space_item){0});
}

static int removal_down(struct removal_walk *w, const char *name)
{
	size_t need = w->length + strlen(name) + 2;
	char *grown;

	if (need > w->room) {
		grown = realloc(w->path, need * 2);
		if (!grown)
			return -ENOMEM;
		w->path = grown;
		w->room = need * 2;
	}
	if (w->length)
		w->path[w->length++] = '/';
	strcpy(w->path + w->length, name);
	w->length += strlen(name);
	return 0;
}

static void removal_up(struct removal_walk *w)
{
	while (w->length && w->path[w->length - 1] != '/')
		w->length--;
	if (w->length)
		w->length--;
	w->path[w->length] = '\0';
}

static bool removal_is_directory(int dir, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return !opener_fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* Removes what is in a directory up to the first directory in it, which the path then leads to.  1:
 * there is none, or the time is over; 0: it is there. */
static int removal_empty(struct removal_walk *w, DIR *dir)
{
	struct dirent *entry;
	int err;

	while (errno = 0, (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (clock_now_ns() >= w->until_ns) {
			w->to->more = true;
			return 1;
		}
		if (removal_is_directory(dirfd(dir), entry))
			return removal_down(w, entry->d_name);
		err = removal_unlink(w->space, dirfd(dir), entry->d_name);
		w->to->removed += !err;
		if (err && err != -ENOENT)
			return removal_down(w, entry->d_name) ? -ENOMEM : err;
	}
	return errno ? -errno : 1;
}

/* The directory of the path is empty, or was a moment ago. */
static int removal_leave(struct removal_walk *w)
{
	int err = beneath_rmdir(w->root, w->path);

	if (err == -ENOTEMPTY && ++w->tries < REMOVAL_TRIES)
		return 0;
	if (err && err != -ENOENT)
		return err;
	w->to->removed += !err;
	if (!err)
		removal_count(w->space);
	w->tries = 0;
	removal_up(w);
	return 0;
}

/* All that is in the tree's directory: 0 when it is empty, or when the time is over. */
static int removal_contents(struct removal_walk *w)
{
	for (;;) {
		DIR *dir;
		int fd = beneath_open(w->root, w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), n;

		if (fd == -ENOENT && w->length) { /* somebody else removes it, too */
			removal_up(w);
			continue;
		}
		if (fd < 0)
			return fd;
		dir = fdopendir(fd);
		if (!dir) {
			close(fd);
			return -ENOMEM;
		}
		n = removal_empty(w, dir);
		closedir(dir);
		if (n < 0)
			return n;
		if (n && (w->to->more || !w->length))
			return 0;
		n = n ? removal_leave(w) : 0;
		if (n)
			return n;
	}
}

static void removal_fault(struct removal *r, const char *path, const char *beneath)
{
	size_t length = strlen(path);

	while (length && path[length - 1] == '/')
		length--;
	r->fault = malloc(length + strlen(beneath) + 2);
	if (!r->fault)
		return;
	memcpy(r->fault, path, length);
	if (*beneath)
		r->fault[length++] = '/';
	strcpy(r->fault + length, beneath);
}

int removal_run(
	int top, const char *path, uint64_t until_ns, struct space_share *space, struct removal *r)
{
	struct removal_walk w = {.root = -1, .until_ns = until_ns, .space = space, .to = r};
	char last[256];
	int parent = beneath_open_parent(top, path, last), err;

	*r = (struct removal){0};
	if (parent < 0)
		return parent;
	err = removal_unlink(space, parent, last);
	if (err != -EISDIR && err != -EPERM) {
		r->removed += !err;
		goto out;
	}
	w.root = opener_openat(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	w.path = calloc(1, w.room = 256);
	if (w.root < 0)
		err = errno == ENOTDIR || errno == ELOOP ? err : -errno;
	else
		err = w.path ? 0 : -ENOMEM;
	while (!err && !r->more) {
		err = removal_contents(&w);
		if (err || r->more)
			break;
		if (!opener_unlinkat(parent, last, AT_REMOVEDIR)) {
			r->removed++;
			removal_count(space);
			break;
		}
		err = errno == ENOTEMPTY && ++w.tries < REMOVAL_TRIES ? 0 : -errno;
	}
	if (err)
		removal_fault(r, path, w.path ? w.path : "");
out:
	if (!r->more && !err)
		err = beneath_sync(parent);
	if (w.root >= 0)
		close(w.root);
	free(w.path);
	close(parent);
	return err;
}
