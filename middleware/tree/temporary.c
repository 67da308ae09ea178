/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/temporary.c: see temporary.h.
 *
 * Owns the form of the names and the order of locking: a file has its name before it has its lock,
 * so whoever makes it looks whether it still has the name once the lock is there, and whoever
 * removes it does so under the lock.
 */
#include "tree/temporary.h"

#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/leftover.h"
#include "tree/space.h"
#include "tree/tree_mark.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY_PREFIX ".rftp-"
#define TEMPORARY_SUFFIX ".part"
#define TEMPORARY_DIGITS 16
#define TEMPORARY_HOST_DIGITS 8
#define TEMPORARY_TRIES 128 /* a sweeper that is always there takes every second one */
/* And where it runs whenever a name is made, each of them: then we wait. */
#define TEMPORARY_AT_ONCE 16
#define TEMPORARY_WAIT_NS 200000
#define TEMPORARY_OLD_S (24 * 60 * 60)

bool temporary_is_name(const char *name)
{
	const char *digits = name + strlen(TEMPORARY_PREFIX);

	return strlen(name) == TEMPORARY_NAME_BYTES - 1 &&
	       !strncmp(name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX)) &&
	       strspn(digits, "0123456789abcdef") == TEMPORARY_DIGITS &&
	       !strcmp(digits + TEMPORARY_DIGITS, TEMPORARY_SUFFIX);
}

bool temporary_is_hidden(const char *name)
{
	return temporary_is_name(name) || leftover_is_name(name) || tree_mark_is_name(name);
}

/* Of the host's name: FNV-1a. */
static uint32_t temporary_host(void)
{
	struct utsname host;
	uint32_t hash = 2166136261u;

	if (uname(&host))
		return 0;
	for (const char *c = host.nodename; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	return hash;
}

/* The file may have been swept between its name and its lock: 0, or -EAGAIN to try another. */
static int temporary_lock(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : 0; /* or no locks here */
	if (fstat(fd, &st))
		return -errno;
	return st.st_nlink ? 0 : -EAGAIN;
}

static int temporary_name(char name[TEMPORARY_NAME_BYTES])
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	snprintf(name, TEMPORARY_NAME_BYTES, TEMPORARY_PREFIX "%08x%08x" TEMPORARY_SUFFIX,
		temporary_host(), number);
	return 0;
}

int temporary_symlink(int dir, const char *target, char name[TEMPORARY_NAME_BYTES])
{
	int err = 0;

	for (int tries = 0; !err && tries < TEMPORARY_TRIES; tries++) {
		err = temporary_name(name);
		if (!err && !opener_symlinkat(target, dir, name))
			return 0;
		if (!err && errno != EEXIST)
			err = -errno;
	}
	return err ? err : -EEXIST;
}

int temporary_link(int from, const char *last, int dir, char name[TEMPORARY_NAME_BYTES])
{
	int err = 0;

	for (int tries = 0; !err && tries < TEMPORARY_TRIES; tries++) {
		err = temporary_name(name);
		if (!err && !opener_linkat(from, last, dir, name, 0))
			return 0;
		if (!err && errno != EEXIST)
			err = -errno;
	}
	return err ? err : -EEXIST;
}

int temporary_create(int dir, mode_t mode, char name[TEMPORARY_NAME_BYTES])
{
	int err = -EEXIST;

	for (int tries = 0; tries < TEMPORARY_TRIES; tries++) {
		int fd;

		if (temporary_name(name))
			return -EIO;
		fd = opener_openat(
			dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd < 0 && errno != EEXIST && errno != EINTR)
			return -errno;
		if (fd < 0)
			continue;
		err = temporary_lock(fd);
		if (!err)
			return fd;
		opener_unlinkat(dir, name, 0);
		close(fd);
		if (err != -EAGAIN)
			return err;
		if (tries >= TEMPORARY_AT_ONCE)
			nanosleep(&(struct timespec){.tv_nsec = TEMPORARY_WAIT_NS}, NULL);
	}
	return err;
}

/* 0: nobody writes to it; -EBUSY: somebody does; -EAGAIN: nobody can tell.  Where its writer's lock
 * is seen, the lock says so, and is ours then. */
static int temporary_is_used(int fd, const char *name, const struct stat *st)
{
	char host[TEMPORARY_HOST_DIGITS + 1];
	bool old = time(NULL) - st->st_mtim.tv_sec > TEMPORARY_OLD_S;

	snprintf(host, sizeof(host), "%08x", temporary_host());
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : old ? 0 : -EAGAIN;
	return old || !strncmp(name + strlen(TEMPORARY_PREFIX), host, TEMPORARY_HOST_DIGITS)
		       ? 0
		       : -EAGAIN;
}

int temporary_check(int dir, const char *name, bool remove, struct stat *st)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	/* for writing: some file systems give the lock for nothing less */
	int fd = opener_openat(dir, name, O_RDWR | flags, 0), err;

	if (fd < 0 && !remove && (errno == EACCES || errno == EROFS))
		fd = opener_openat(dir, name, O_RDONLY | flags, 0);
	if (fd < 0) { /* a link, which has no lock, not ours, or gone */
		err = -errno;
		if (opener_fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW))
			return -errno;
		if (err != -ELOOP || !S_ISLNK(st->st_mode))
			return err;
		err = time(NULL) - st->st_ctim.tv_sec > TEMPORARY_OLD_S ? 0 : -EAGAIN;
	} else if (fstat(fd, st)) {
		err = -errno;
	} else {
		err = S_ISREG(st->st_mode) ? temporary_is_used(fd, name, st) : -EPERM;
	}
	if (!err && remove && opener_unlinkat(dir, name, 0))
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

static void temporary_sweep_one(int dir, const char *name, struct temporary_swept *swept)
{
	struct stat st;

	if (temporary_check(dir, name, true, &st))
		return;
	swept->files++;
	if (S_ISREG(st.st_mode))
		swept->bytes += space_disk_bytes(&st);
}

static void temporary_sweep_leftover(
	int dir, const char *name, uint64_t keep_s, struct temporary_swept *swept)
{
	uint64_t bytes = 0;

	if (!(tree_mark_is_name(name) ? tree_mark_sweep(dir, name, keep_s)
				      : leftover_sweep(dir, name, keep_s, &bytes))) {
		swept->files++;
		swept->bytes += bytes;
	}
}

/* Paths beneath the top, each ended by NUL, the next one to look at last. */
struct temporary_paths {
	char *text;
	size_t length, room;
};

static int temporary_push(struct temporary_paths *paths, const char *dir, const char *name)
{
	size_t need = paths->length + strlen(dir) + strlen(name) + 2;
	char *grown;

	if (need > paths->room) {
		grown = realloc(paths->text, need * 2);
		if (!grown)
			return -ENOMEM;
		paths->text = grown;
		paths->room = need * 2;
	}
	paths->length +=
		(size_t)sprintf(paths->text + paths->length, "%s%s%s", dir, *dir ? "/" : "", name) +
		1;
	return 0;
}

/* The last path, as memory of its own; NULL: none is left, or no memory. */
static char *temporary_pop(struct temporary_paths *paths)
{
	size_t start = paths->length;

	if (!start)
		return NULL;
	for (start--; start && paths->text[start - 1]; start--)
		;
	paths->length = start;
	return strdup(paths->text + start);
}

static bool temporary_is_directory(int dir, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return !opener_fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* `paths`: where directories in it are noted; NULL: they are passed over. */
static int temporary_read(int dir, const char *path, uint64_t keep_s, const atomic_bool *stop,
	struct temporary_paths *paths, struct temporary_swept *swept)
{
	struct dirent *entry;
	int fd = opener_openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), err = 0;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (!stop || !atomic_load_explicit(stop, memory_order_relaxed)) &&
		(entry = readdir(stream))) {
		if (temporary_is_name(entry->d_name))
			temporary_sweep_one(fd, entry->d_name, swept);
		else if (temporary_is_hidden(entry->d_name))
			temporary_sweep_leftover(fd, entry->d_name, keep_s, swept);
		else if (paths && strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
			 temporary_is_directory(fd, entry))
			err = temporary_push(paths, path, entry->d_name);
	}
	closedir(stream);
	return err;
}

int temporary_sweep(
	int dir, uint64_t keep_s, const atomic_bool *stop, struct temporary_swept *swept)
{
	return temporary_read(dir, "", keep_s, stop, NULL, swept);
}

/* 0: nothing but what is left behind; -ENOTEMPTY; -errno. */
static int temporary_look(int dir)
{
	int fd = opener_openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), err = 0;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!stream) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
			!temporary_is_hidden(entry->d_name))
			err = -ENOTEMPTY;
	closedir(stream);
	return err;
}

int temporary_clear(int dir)
{
	struct temporary_swept swept = {0};
	int err = temporary_look(dir);

	if (!err)
		err = temporary_sweep(dir, 0, NULL, &swept);
	return err ? err : swept.files ? 0 : -ENOTEMPTY;
}

int temporary_sweep_tree(
	int top, uint64_t keep_s, const atomic_bool *stop, struct temporary_swept *swept)
{
	struct temporary_paths paths = {0};
	char *path = strdup("");
	int err = path ? 0 : -ENOMEM;

	while (path && !err && !atomic_load_explicit(stop, memory_order_relaxed)) {
		int dir = beneath_open(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		if (dir >= 0) { /* else it is gone, or none of our business */
			err = temporary_read(dir, path, keep_s, stop, &paths, swept);
			close(dir);
		}
		free(path);
		path = err == -ENOMEM ? NULL : temporary_pop(&paths);
		err = err == -ENOMEM || (!path && paths.length) ? -ENOMEM : 0;
	}
	free(path);
	free(paths.text);
	return err;
}
