/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/landing_link: see landing_link.h.
 */
#include "tree/landing_link.h"

#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether `last` is a link that says the same already. */
static bool has_link(int dir, const char *last, const char *target)
{
	char now[PATH_MAX];
	ssize_t n = opener_readlinkat(dir, last, now, sizeof(now));

	return n > 0 && (size_t)n == strlen(target) && !memcmp(now, target, (size_t)n);
}

/* In place of something else, which goes when it comes. */
static int replace_by_link(
	const struct landing_params *p, int dir, const char *last, const char *target)
{
	char temporary[TEMPORARY_NAME_BYTES];
	struct stat st;
	int err;

	if (!p->replace)
		return -EEXIST;
	if (has_link(dir, last, target))
		return 0;
	if (!opener_fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) && !S_ISREG(st.st_mode) &&
		!S_ISLNK(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	err = temporary_symlink(dir, target, temporary);
	if (err)
		return err;
	err = beneath_rename_at(dir, temporary, dir, last, true);
	if (err)
		opener_unlinkat(dir, temporary, 0);
	return err;
}

/* Owner and time of the link that was made, if it is still there: by descriptor, so that whoever
 * puts something else in its place is not given it. */
static void dress_link(const struct landing_params *p, int dir, const char *last,
	const char *target, char text[512])
{
	int fd = opener_openat(dir, last, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0), err;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISLNK(st.st_mode) || !has_link(fd, "", target))
		err = fd < 0 ? -errno : -ESTALE;
	else
		err = metadata_set_link(fd, &p->metadata, text);
	if (err)
		snprintf(text, 512, "its owner and modification time are not kept (%s)",
			strerror(-err));
	if (fd >= 0)
		close(fd);
}

int landing_link_at(const struct landing_params *p, int dir, const char *last, const char *target,
	char text[512])
{
	const struct space_item link = {.files = 1};
	struct space_item old;
	int err;

	text[0] = '\0';
	space_look(p->space, dir, last, &old);
	err = space_claim(p->space, 0, !old.files);
	if (err)
		return err;
	if (opener_symlinkat(target, dir, last))
		err = errno == EEXIST ? replace_by_link(p, dir, last, target) : -errno;
	if (!err)
		space_change(p->space, &old, &link);
	space_unclaim(p->space, 0, !old.files);
	if (!err)
		dress_link(p, dir, last, target, text);
	return err;
}

int landing_link(const struct landing_params *p, const char *target, char text[512])
{
	char last[256];
	int dir = landing_open_parent(p, last), err;

	text[0] = '\0';
	if (dir < 0)
		return dir;
	err = landing_link_at(p, dir, last, target, text);
	if (!err && !p->unsynced)
		err = landing_sync(dir, text);
	close(dir);
	return err;
}

/* 0: the name is that file's; -ESTALE: it is not, or there is none; or -errno: nobody knows. */
static int check_file(int dir, const char *last, const struct landing_file *file)
{
	struct stat st;

	if (opener_fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? -ESTALE : -errno;
	return st.st_dev == file->dev && st.st_ino == file->ino ? 0 : -ESTALE;
}

/* Looked at once more under a name that nobody else knows: it is that file, or the name goes. */
static int make_hard_link(const struct landing_params *p, const struct landing_file *file, int from,
	const char *from_last, int to, const char *to_last)
{
	char temporary[TEMPORARY_NAME_BYTES];
	int err = temporary_link(from, from_last, to, temporary);

	if (err)
		return err;
	err = check_file(to, temporary, file);
	if (!err)
		err = beneath_rename_at(to, temporary, to, to_last, p->replace);
	/* also when both became the same file meanwhile: such a rename does nothing */
	if (opener_unlinkat(to, temporary, 0) && errno != ENOENT && !err)
		err = -errno;
	return err;
}

int landing_hard_link(
	const struct landing_params *p, const struct landing_file *file, char text[512])
{
	const struct space_item link = {.files = 1};
	struct space_item old;
	bool exists = false;
	char from_last[256], to_last[256];
	mode_t mode;
	int from = beneath_open_parent(p->top, file->path, from_last), to, err = 0;

	text[0] = '\0';
	if (from < 0)
		return from;
	to = landing_open_parent(p, to_last);
	if (to < 0) {
		err = to;
		goto err_from;
	}
	err = check_file(from, from_last, file);
	if (err)
		goto err_to;
	err = check_file(to, to_last, file);
	if (!err)
		goto err_to; /* it is there */
	if (err == -ESTALE)
		err = landing_look(p, to, to_last, &mode, &exists);
	if (!err)
		err = space_claim(p->space, 0, !exists);
	if (err)
		goto err_to;
	space_look(p->space, to, to_last, &old);
	err = make_hard_link(p, file, from, from_last, to, to_last);
	if (!err)
		space_change(p->space, &old, &link);
	space_unclaim(p->space, 0, !exists);
	if (!err && !p->unsynced)
		err = landing_sync(to, text);
err_to:
	close(to);
err_from:
	close(from);
	return err;
}
