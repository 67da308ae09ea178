/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/beneath.c: names that can not leave a directory.
 *
 * Owns the splitting of paths and how the kernel is asked.  The kernel resolves, not this file: a
 * check of a path's text or of its links one after another would be a race.  What is created,
 * removed or renamed is named in its directory, whose descriptor is had first, so a directory that
 * is moved away meanwhile takes the operation with it and never to somewhere else.
 */
#include "tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
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
		long fd = syscall(SYS_openat2, top, path, &how, sizeof(how));

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

int beneath_open(int top, const char *path, int flags, mode_t mode)
{
	int fd;

	flags |= O_CLOEXEC;
	if (top != AT_FDCWD) {
		path += strspn(path, "/");
		return beneath_resolve(top, *path ? path : ".", flags, mode);
	}
	do
		fd = open(path, flags, mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int beneath_stat(int top, const char *path, bool follow, struct stat *st)
{
	int fd, err;

	if (top == AT_FDCWD)
		return fstatat(top, path, st, follow ? 0 : AT_SYMLINK_NOFOLLOW) ? -errno : 0;
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

int beneath_open_parent(int top, const char *path, char last[256])
{
	char dir[PATH_MAX];
	size_t end = strlen(path), start, length;

	while (end && path[end - 1] == '/')
		end--;
	for (start = end; start && path[start - 1] != '/'; start--)
		;
	length = end - start;
	if (!length || (length == 1 && path[start] == '.') ||
		(length == 2 && !memcmp(path + start, "..", 2)))
		return -EINVAL;
	if (length > NAME_MAX || start >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(last, path + start, length);
	last[length] = '\0';
	memcpy(dir, path, start);
	dir[start] = '\0';
	/* an absolute path of the user's own keeps its slash, so "" can only be the current
	 * directory */
	return beneath_open_dir(top, start ? dir : ".");
}

int beneath_sync(int dir)
{
	int n;

	do
		n = fsync(dir);
	while (n && errno == EINTR);
	return n && errno != EBADF && errno != EINVAL && errno != EROFS ? -errno : 0;
}

static int beneath_mkdir_one(int top, const char *path, mode_t mode)
{
	char last[256];
	int dir = beneath_open_parent(top, path, last), err;

	if (dir < 0)
		return dir;
	err = mkdirat(dir, last, mode & 07777) ? -errno : beneath_sync(dir);
	close(dir);
	return err;
}

/* Makes the directories above the last component that are missing. */
static int beneath_mkdir_parents(int top, const char *path)
{
	char part[PATH_MAX];
	size_t length = strlen(path);
	int err;

	if (length >= sizeof(part))
		return -ENAMETOOLONG;
	while (length && path[length - 1] == '/')
		length--;
	memcpy(part, path, length);
	for (size_t i = 1; i < length; i++) {
		if (path[i] != '/' || path[i - 1] == '/')
			continue;
		part[i] = '\0';
		err = beneath_mkdir_one(top, part, 0777);
		part[i] = '/';
		/* "." and ".." on the way are there already, or the next one says why not */
		if (err && err != -EEXIST && err != -EINVAL)
			return err;
	}
	return 0;
}

int beneath_mkdir(int top, const char *path, mode_t mode, bool parents)
{
	struct stat st;
	int err = beneath_mkdir_one(top, path, mode);

	if (!parents)
		return err;
	if (err == -ENOENT) {
		err = beneath_mkdir_parents(top, path);
		if (!err)
			err = beneath_mkdir_one(top, path, mode);
	}
	if (err == -EEXIST) {
		err = beneath_stat(top, path, true, &st);
		if (!err && !S_ISDIR(st.st_mode))
			err = -ENOTDIR;
	}
	return err;
}

static int beneath_remove(int top, const char *path, int flags)
{
	char last[256];
	int dir = beneath_open_parent(top, path, last), err;

	if (dir < 0)
		return dir;
	err = unlinkat(dir, last, flags) ? -errno : 0;
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
		if (!renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE))
			return 0;
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		/* a file system without the flag: as near as one can get */
		if (!fstatat(to_dir, to, &st, AT_SYMLINK_NOFOLLOW))
			return -EEXIST;
	}
	return renameat(from_dir, from, to_dir, to) ? -errno : 0;
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
