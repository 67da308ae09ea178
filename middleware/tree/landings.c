/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/landings.c: see landings.h.
 *
 * Files that wait for a flush stay open: the lock on a temporary file says that it is no leftover.
 * On file systems in memory nothing is flushed, and each file gets its name at once.
 */
#include "tree/landings.h"

#include "base/opener.h"

#include "tree/beneath.h"
#include "tree/landing_link.h"
#include "tree/parent.h"
#include "tree/place.h"
#include "tree/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LANDINGS_DIRS 16u     /* open at once, */
#define LANDINGS_DIRS_PART 4u /* and this part of the descriptors */
#define LANDINGS_OPEN 256u    /* files, likewise */
/* Others give descriptors back within so many tries, or a file fails. */
#define LANDINGS_TRIES 1000u
#define LANDINGS_TRY_NS 10000000L

struct landings_dir {
	struct parent parent;
	struct flush_place place;
	unsigned long number; /* of its kind in this run, from 1 */
	bool changed;         /* since it was flushed */
};

/* A file that is written, and has no name yet. */
struct landings_open {
	struct landings_file *file;
	struct landings_dir *dir;
	const char *last; /* in the file's path */
	int fd;
	char temporary[TEMPORARY_NAME_BYTES];
	struct space_item old; /* what bears the name, */
	uint64_t claimed_bytes;
};

struct landings {
	const struct landings_params *params;
	struct landings_file *files;
	unsigned count;
	struct landings_dir dirs[LANDINGS_DIRS];
	unsigned dir_count, dir_max;
	unsigned long dir_number;
	struct landings_open open[LANDINGS_OPEN];
	unsigned open_count, open_max;
};

static void landings_say(struct landings_file *file, int err, const char *what, const char *why)
{
	char text[512];

	file->err = err;
	free(file->text);
	snprintf(text, sizeof(text), "%s%s", what, why);
	file->text = strdup(text);
}

/* ---- directories ---- */

static void landings_close_dirs(struct landings *l)
{
	char text[512];

	for (unsigned i = 0; i < l->dir_count; i++) {
		struct landings_dir *dir = &l->dirs[i];
		int err = dir->changed && !l->params->unsynced ? landing_sync(dir->parent.fd, text)
							       : 0;

		for (unsigned k = 0; err && k < l->count; k++)
			if (l->files[k].dir == dir->number && !l->files[k].err)
				landings_say(&l->files[k], err, text, "");
		dir->changed = false;
		parent_close(&dir->parent);
	}
	l->dir_count = 0;
}

static int landings_make_parents(const struct landings *l, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct place place;
	char *dir;
	int err;

	if (!slash)
		return -ENOENT;
	dir = strndup(path, (size_t)(slash - path));
	if (!dir)
		return -ENOMEM;
	place = (struct place){.top = l->params->top,
		.rights = PLACE_WRITE,
		.space = l->params->space,
		.unsynced = l->params->unsynced};
	err = place_mkdir(&place, dir, 0777, true);
	free(dir);
	return err;
}

static int landings_open_dir(
	struct landings *l, struct landings_dir *dir, const char *path, const char **last)
{
	int fd = parent_open(&dir->parent, l->params->top, path, last), err;

	if (fd == -ENOENT) {
		err = landings_make_parents(l, path);
		fd = err ? err : parent_open(&dir->parent, l->params->top, path, last);
	}
	if (fd < 0)
		return fd;
	flush_look(fd, &dir->place);
	dir->number = ++l->dir_number;
	return 0;
}

/* ---- names ---- */

/* It has its name, or is removed. */
static void landings_name(const struct landings *l, struct landings_open *open)
{
	struct landings_file *file = open->file;
	char note[512];
	struct space_item now;
	struct stat st;
	int dir = open->dir->parent.fd, err = file->err;

	space_look_fd(l->params->space, open->fd, &now);
	if (!err)
		err = metadata_set(open->fd, &file->metadata, note);
	if (!err)
		err = beneath_rename_at(dir, open->temporary, dir, open->last, false);
	if (err == -EEXIST && !opener_fstatat(dir, open->last, &st, AT_SYMLINK_NOFOLLOW) &&
		!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
		err = S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
		file->err = err; /* as if it had not been begun */
	} else if (err == -EEXIST) {
		err = beneath_rename_at(dir, open->temporary, dir, open->last, true);
	}
	if (err)
		opener_unlinkat(dir, open->temporary, 0);
	else
		open->dir->changed = true;
	if (!err)
		space_change(l->params->space, &open->old, &now);
	space_unclaim(l->params->space, open->claimed_bytes, !open->old.files);
	close(open->fd);
	if (err && !file->err)
		landings_say(file, err, "giving it its name: ", strerror(-err));
	else if (!err && *note)
		landings_say(file, 0, note, "");
	file->dir = err ? 0 : open->dir->number;
}

static void landings_name_all(struct landings *l)
{
	for (unsigned i = 0; i < l->open_count; i++)
		landings_name(l, &l->open[i]);
	l->open_count = 0;
}

static void landings_flush(struct landings *l)
{
	const struct flush_place *place = l->open_count ? &l->open[0].dir->place : NULL;
	int fds[LANDINGS_OPEN], errors[LANDINGS_OPEN];
	bool one = true;

	if (l->params->unsynced || (l->open_count == 1 && place->memory)) {
		landings_name_all(l);
		return;
	}
	for (unsigned i = 0; i < l->open_count; i++) {
		fds[i] = l->open[i].fd;
		one = one && l->open[i].dir->place.dev == place->dev;
	}
	/* of several file systems, each file as if it was of another one */
	for (unsigned i = 0; i < l->open_count; i++) {
		if (one && !i)
			flush_files(l->params->costs, place, fds, errors, l->open_count);
		else if (!one)
			flush_files(l->params->costs, place, fds + i, errors + i, 1);
		if (errors[i])
			landings_say(l->open[i].file, errors[i], "fsync: ", strerror(-errors[i]));
	}
	landings_name_all(l);
}

/* ---- files ---- */

static bool landings_lacks(int err)
{
	return err == -EMFILE || err == -ENFILE;
}

/* There is no descriptor: those that are held are given back, or others may do that.  Whether to
 * try again. */
static bool landings_wait(struct landings *l, unsigned *tries)
{
	const struct timespec pause = {.tv_nsec = LANDINGS_TRY_NS};

	if (l->open_count || l->dir_count) {
		landings_flush(l);
		landings_close_dirs(l);
		return true;
	}
	if ((*tries)++ == LANDINGS_TRIES)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

/* The directory that a path is in, opened. */
static int landings_dir(
	struct landings *l, const char *path, struct landings_dir **out, const char **last)
{
	struct landings_dir *dir;
	int err;

	for (unsigned i = l->dir_count; i--;) {
		*out = &l->dirs[i];
		if (parent_has(&(*out)->parent, path)) {
			err = parent_open(&(*out)->parent, l->params->top, path, last);
			return err < 0 ? err : 0;
		}
	}
	if (l->dir_count == l->dir_max) {
		landings_flush(l);
		landings_close_dirs(l);
	}
	dir = &l->dirs[l->dir_count];
	err = landings_open_dir(l, dir, path, last);
	if (err)
		return err;
	l->dir_count++;
	*out = dir;
	return 0;
}

static void landings_say_full(const struct landings *l, struct landings_file *file, int err)
{
	char text[160];

	space_say(l->params->space, text, sizeof(text));
	landings_say(file, err, text, "");
}

/* Makes a file under its temporary name.  0, or -errno: nothing is there. */
static int landings_make_file(struct landings *l, struct landings_file *file)
{
	struct landings_open *open;
	struct landings_dir *dir;
	const char *last;
	int err = landings_dir(l, file->path, &dir, &last);

	if (err)
		return err;
	open = &l->open[l->open_count]; /* now: for the directory all may have been flushed */
	open->file = file;
	open->dir = dir;
	open->last = last;
	space_look(l->params->space, dir->parent.fd, last, &open->old);
	open->claimed_bytes = file->bytes;
	err = space_claim(l->params->space, open->claimed_bytes, !open->old.files);
	if (err) {
		landings_say_full(l, file, err);
		return err;
	}
	open->fd = temporary_create(open->dir->parent.fd, 0600, open->temporary);
	if (open->fd < 0) {
		space_unclaim(l->params->space, open->claimed_bytes, !open->old.files);
		return open->fd;
	}
	err = landing_write(open->fd, file->data, file->bytes);
	if (err)
		landings_say(file, err, "writing at offset 0: ", strerror(-err));
	l->open_count++;
	if (l->open_count == l->open_max || open->dir->place.memory)
		landings_flush(l);
	return 0;
}

static int landings_make_link(struct landings *l, struct landings_file *file)
{
	const struct landing_params params = {.top = l->params->top,
		.path = file->path,
		.metadata = file->metadata,
		.beneath = true,
		.replace = true,
		.space = l->params->space};
	struct landings_dir *dir;
	const char *last;
	char text[512];
	int err = landings_dir(l, file->path, &dir, &last);

	if (!err)
		err = landing_link_at(&params, dir->parent.fd, last, file->target, text);
	if (err)
		return err;
	dir->changed = true;
	file->dir = dir->number;
	if (*text)
		landings_say(file, 0, text, "");
	return 0;
}

static void landings_make(struct landings *l, struct landings_file *file)
{
	unsigned tries = 0;
	int err;

	do
		err = file->target ? landings_make_link(l, file) : landings_make_file(l, file);
	while (landings_lacks(err) && landings_wait(l, &tries));
	if (err && !file->err)
		file->err = err;
}

static unsigned landings_within(unsigned n, unsigned most)
{
	return !n ? 1 : n < most ? n : most;
}

void landings_run(const struct landings_params *params, struct landings_file *files, unsigned count)
{
	struct landings *l = calloc(1, sizeof(*l));

	for (unsigned i = 0; i < count; i++) {
		files[i].err = l ? 0 : -ENOMEM;
		files[i].text = NULL;
		files[i].dir = 0;
	}
	if (!l)
		return;
	l->params = params;
	l->files = files;
	l->count = count;
	l->dir_max = landings_within(params->open_max / LANDINGS_DIRS_PART, LANDINGS_DIRS);
	l->open_max = landings_within(
		params->open_max > l->dir_max ? params->open_max - l->dir_max : 0, LANDINGS_OPEN);
	for (unsigned i = 0; i < count; i++)
		landings_make(l, &files[i]);
	landings_flush(l);
	landings_close_dirs(l);
	for (unsigned i = 0; i < LANDINGS_DIRS; i++)
		parent_fini(&l->dirs[i].parent);
	free(l);
}
