/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/beneath.c: names that cannot leave a directory.
 *
 * Owns the splitting of paths and how the kernel is asked.  The kernel resolves, not this file: a
 * check of a path's text or of its links one after another would be a race.  What is created,
 * removed or renamed is named in its directory, whose descriptor is had first, so a directory that
 * is moved away meanwhile takes the operation with it and never to somewhere else.
 */
#include "tree/beneath.h"

#include "base/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BENEATH_TRIES 64 /* while others rename on the way: the kernel gives up with EAGAIN */

static int beneath_resolve(int top, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)flags,
		.mode = flags & O_CREAT ? mode & 07777 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	for (int tries = 0;; tries++) {
		long fd = opener_openat2(top, path, &how);

		if (fd >= 0)
			return (int)fd;
		if (errno != EINTR && (errno != EAGAIN || tries >= BENEATH_TRIES))
			return -errno;
	}
}

bool beneath_supported(void)
{
	int fd = beneath_resolve(AT_FDCWD, ".", O_PATH | O_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd != -ENOSYS && fd != -EPERM; /* EPERM: a sandbox that does not know the call */
}

/* Opens a path that the kernel takes.  `own`: `dir` is closed. */
static int beneath_step(int dir, bool own, bool confined, const char *path, int flags, mode_t mode)
{
	int fd;

	if (confined) {
		fd = beneath_resolve(dir, path, flags, mode);
	} else {
		do
			fd = opener_openat(dir, path, flags, mode);
		while (fd < 0 && errno == EINTR);
		fd = fd < 0 ? -errno : fd;
	}
	if (own)
		close(dir);
	return fd;
}

/* The directory that all of a long path leads to but for what the kernel takes, which is left in
 * *path.  The caller closes it. */
static int beneath_descend(int top, const char **path)
{
	char part[PATH_MAX];
	int dir = top;

	while (strlen(*path) >= PATH_MAX) {
		size_t length = PATH_MAX - 1;

		while (length && (*path)[length] != '/')
			length--;
		if (!length) {
			if (dir != top)
				close(dir);
			return -ENAMETOOLONG;
		}
		memcpy(part, *path, length);
		part[length] = '\0';
		dir = beneath_step(dir, dir != top, top != AT_FDCWD, part,
			O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (dir < 0)
			return dir;
		*path += length;
		*path += strspn(*path, "/");
	}
	if (!**path)
		*path = ".";
	return dir;
}

int beneath_open(int top, const char *path, int flags, mode_t mode)
{
	int fd = top;

	if (top != AT_FDCWD)
		path += strspn(path, "/");
	if (strlen(path) >= PATH_MAX) {
		fd = beneath_descend(top, &path);
		if (fd < 0)
			return fd;
	}
	if (top != AT_FDCWD && !*path)
		path = ".";
	return beneath_step(fd, fd != top, top != AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

int beneath_stat(int top, const char *path, bool follow, struct stat *st)
{
	int fd, err;

	if (top == AT_FDCWD && strlen(path) < PATH_MAX)
		return opener_fstatat(top, path, st, follow ? 0 : AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	fd = beneath_open(top, path, O_PATH | (follow ? 0 : O_NOFOLLOW), 0);
	if (fd < 0)
		return fd;
	err = fstat(fd, st) ? -errno : 0;
	close(fd);
	return err;
}

/* A directory to work in: readable, so that it can be flushed, if we may. */
static int beneath_open_dir(int top, const char *path)
{
	int fd = beneath_open(top, path, O_RDONLY | O_DIRECTORY, 0);

	return fd == -EACCES ? beneath_open(top, path, O_PATH | O_DIRECTORY, 0) : fd;
}

ssize_t beneath_read_link(int top, const char *path, char *target, size_t size)
{
	int fd = beneath_open(top, path, O_PATH | O_NOFOLLOW, 0);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = opener_readlinkat(fd, "", target, size);
	if (n < 0)
		n = errno == ENOENT ? -EINVAL : -errno; /* what is no link is said so */
	close(fd);
	if (n >= 0 && (size_t)n == size)
		return -ENAMETOOLONG;
	if (n >= 0)
		target[n] = '\0';
	return n;
}

int beneath_open_parent(int top, const char *path, char last[256])
{
	size_t end = strlen(path), start, length;
	char *dir;
	int fd;

	while (end && path[end - 1] == '/')
		end--;
	for (start = end; start && path[start - 1] != '/'; start--)
		;
	length = end - start;
	if (!length || (length == 1 && path[start] == '.') ||
		(length == 2 && !memcmp(path + start, "..", 2)))
		return -EINVAL;
	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(last, path + start, length);
	last[length] = '\0';
	/* an absolute path of the user's own keeps its slash, so "" can only be the current
	 * directory */
	dir = start ? strndup(path, start) : strdup(".");
	if (!dir)
		return -ENOMEM;
	fd = beneath_open_dir(top, dir);
	free(dir);
	return fd;
}

int beneath_sync(int dir)
{
	int n;

	do
		n = fsync(dir);
	while (n && errno == EINTR);
	return n && errno != EBADF && errno != EINVAL && errno != EROFS ? -errno : 0;
}

static int beneath_mkdir_one(int top, const char *path, mode_t mode, bool sync)
{
	char last[256];
	int dir = beneath_open_parent(top, path, last), err;

	if (dir < 0)
		return dir;
	err = opener_mkdirat(dir, last, mode & 07777) ? -errno : 0;
	if (!err && sync)
		err = beneath_sync(dir);
	close(dir);
	return err;
}

/* Makes the directories above the last component that are missing. */
static int beneath_mkdir_parents(int top, const char *path, bool sync)
{
	char *part = strdup(path);
	size_t length = strlen(path);
	int err = part ? 0 : -ENOMEM;

	while (length && path[length - 1] == '/')
		length--;
	for (size_t i = 1; !err && i < length; i++) {
		if (path[i] != '/' || path[i - 1] == '/')
			continue;
		part[i] = '\0';
		err = beneath_mkdir_one(top, part, 0777, sync);
		part[i] = '/';
		/* "." and ".." on the way are there already, or the next one says why not */
		if (err == -EEXIST || err == -EINVAL)
			err = 0;
	}
	free(part);
	return err;
}

static int beneath_make_directory(int top, const char *path, mode_t mode, bool parents, bool sync)
{
	struct stat st;
	int err = beneath_mkdir_one(top, path, mode, sync);

	if (!parents)
		return err;
	if (err == -ENOENT) {
		err = beneath_mkdir_parents(top, path, sync);
		if (!err)
			err = beneath_mkdir_one(top, path, mode, sync);
	}
	if (err == -EEXIST) {
		err = beneath_stat(top, path, true, &st);
		if (!err && !S_ISDIR(st.st_mode))
			err = -ENOTDIR;
	}
	return err;
}

int beneath_mkdir(int top, const char *path, mode_t mode, bool parents)
{
	return beneath_make_directory(top, path, mode, parents, true);
}

int beneath_mkdir_unsynced(int top, const char *path, mode_t mode, bool parents)
{
	return beneath_make_directory(top, path, mode, parents, false);
}

static int beneath_remove(int top, const char *path, int flags)
{
	char last[256];
	int dir = beneath_open_parent(top, path, last), err;

	if (dir < 0)
		return dir;
	err = opener_unlinkat(dir, last, flags) ? -errno : 0;
	close(dir);
	return err;
}

int beneath_rmdir(int top, const char *path)
{
	return beneath_remove(top, path, AT_REMOVEDIR);
}

int beneath_unlink(int top, const char *path)
{
	return beneath_remove(top, path, 0);
}

int beneath_rename_at(int from_dir, const char *from, int to_dir, const char *to, bool replace)
{
	struct stat st;

	if (!replace) {
		if (!opener_renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE))
			return 0;
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		/* a file system without the flag: as near as one can get */
		if (!opener_fstatat(to_dir, to, &st, AT_SYMLINK_NOFOLLOW))
			return -EEXIST;
	}
	return opener_renameat2(from_dir, from, to_dir, to, 0) ? -errno : 0;
}

int beneath_rename(int top, const char *from, const char *to, bool replace)
{
	char from_last[256], to_last[256];
	int from_dir, to_dir, err;

	from_dir = beneath_open_parent(top, from, from_last);
	if (from_dir < 0)
		return from_dir;
	to_dir = beneath_open_parent(top, to, to_last);
	if (to_dir < 0) {
		close(from_dir);
		return to_dir;
	}
	err = beneath_rename_at(from_dir, from_last, to_dir, to_last, replace);
	close(to_dir);
	close(from_dir);
	return err == -EXDEV ? -EREMOTE : err;
}
