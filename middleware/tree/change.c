/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/change.c: see change.h.
 *
 * A name is opened once, with O_PATH, which needs no right on what it names, as chmod(2) and
 * utimensat(2) need none; what is changed is what was opened, whatever the name leads to meanwhile.
 */
#include "tree/change.h"

#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/seen.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHANGE_SET_ID (S_ISUID | S_ISGID)

/* An empty file of that name, on stable storage.  A descriptor or -errno. */
static int change_create(int top, const char *path)
{
	char last[256];
	int dir = beneath_open_parent(top, path, last), fd, err;

	if (dir < 0)
		return dir;
	fd = opener_openat(
		dir, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0666);
	if (fd < 0) {
		/* a link that leads nowhere has the name */
		fd = errno == EEXIST ? -ENOENT : -errno;
	} else {
		err = beneath_sync(dir);
		if (err) {
			close(fd);
			fd = err;
		}
	}
	close(dir);
	return fd;
}

/* The same file or directory once more, in a way that old kernels can change it.  A descriptor or
 * -errno. */
static int change_reopen(int top, const char *path, const struct stat *st)
{
	int flags = O_NONBLOCK | O_NOCTTY, fd = beneath_open(top, path, flags | O_RDONLY, 0);
	struct stat again;

	if (fd == -EACCES && !S_ISDIR(st->st_mode))
		fd = beneath_open(top, path, flags | O_WRONLY, 0);
	if (fd < 0)
		return fd;
	if (!fstat(fd, &again) && again.st_dev == st->st_dev && again.st_ino == st->st_ino)
		return fd;
	close(fd);
	return -EAGAIN;
}

static int change_mode(int top, const char *path, int fd, mode_t mode, const struct stat *st)
{
	int err = opener_chmod(fd, mode) ? -errno : 0;

	if (err != -ENOSYS && err != -EOPNOTSUPP)
		return err;
	fd = change_reopen(top, path, st);
	if (fd < 0)
		return fd;
	err = opener_fchmod(fd, mode) ? -errno : 0;
	close(fd);
	return err;
}

static int change_time(int fd, const struct change *c)
{
	const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
	const struct timespec set[2] = {{.tv_nsec = UTIME_OMIT}, {c->mtime_s, (long)c->mtime_ns}};

	return opener_utimensat(fd, "", c->now ? now : set, AT_EMPTY_PATH) ? -errno : 0;
}

/* Before the mode: the kernel takes set-user-ID and set-group-ID away from a file. */
static int change_owner(int fd, const struct change *c)
{
	return opener_fchownat(fd, "", c->has_owner ? c->uid : (uid_t)-1,
		       c->has_group ? c->gid : (gid_t)-1, AT_EMPTY_PATH)
		       ? -errno
		       : 0;
}

static bool change_is_top(int top, const struct stat *st)
{
	struct stat t;

	return !fstat(top, &t) && t.st_dev == st->st_dev && t.st_ino == st->st_ino;
}

/* Whether a file would get set-user-ID or set-group-ID that it may not have: one that it has now is
 * another owner's or group's right, and is not passed on to the next. */
static bool change_gives_id(const struct change *c, const struct stat *st)
{
	bool passed =
		(c->has_owner && c->uid != st->st_uid) || (c->has_group && c->gid != st->st_gid);
	mode_t has = passed ? 0 : st->st_mode;

	return c->has_mode && !c->set_id && !S_ISDIR(st->st_mode) && c->mode & ~has & CHANGE_SET_ID;
}

static int change_opened(int top, const char *path, int fd, const struct change *c)
{
	struct stat st;
	int err = 0;

	if (fstat(fd, &st))
		return -errno;
	if (c->has_seen && !seen_is(&c->seen, &st, c->mtime_s, c->mtime_ns))
		return -ESTALE; /* whatever else it is by now */
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !(S_ISLNK(st.st_mode) && c->link))
		return -ENXIO;
	if (S_ISLNK(st.st_mode) && c->has_mode)
		return -ELOOP; /* it has none, and what it leads to is not meant */
	if (c->but_top && change_is_top(top, &st))
		return -EPERM;
	if (change_gives_id(c, &st))
		return -EPERM; /* before anything is changed */
	if (c->has_owner || c->has_group)
		err = change_owner(fd, c);
	if (!err && c->has_mode)
		err = change_mode(top, path, fd, c->mode & 07777, &st);
	if (!err && (c->has_mtime || c->now))
		err = change_time(fd, c);
	return err;
}

int change_run(int top, const char *path, const struct change *c)
{
	int fd = beneath_open(top, path, O_PATH | (c->link ? O_NOFOLLOW : 0), 0), err;

	if (fd == -ENOENT && c->create)
		fd = change_create(top, path);
	if (fd < 0)
		return fd;
	err = change_opened(top, path, fd, c);
	close(fd);
	return err;
}

int change_make_link(int top, const char *target, const char *path)
{
	char last[256];
	int dir = beneath_open_parent(top, path, last), err;

	if (dir < 0)
		return dir;
	err = opener_symlinkat(target, dir, last) ? -errno : beneath_sync(dir);
	close(dir);
	return err;
}
