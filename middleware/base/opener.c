/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/opener: see opener.h.  The side that asks.
 */
#include "base/opener.h"

#include "base/opener_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

struct opener {
	int fd;
	uid_t uid;
	_Atomic unsigned references;
	pthread_mutex_t lock;
	struct opener_request request; /* under the lock */
	struct opener_reply reply;
};

static __thread struct opener *mine;

int opener_new(int fd, uid_t uid, struct opener **out)
{
	struct opener *o = calloc(1, sizeof *o);

	if (!o) {
		close(fd);
		return -ENOMEM;
	}
	o->fd = fd;
	o->uid = uid;
	o->references = 1;
	pthread_mutex_init(&o->lock, NULL);
	*out = o;
	return 0;
}

void opener_free(struct opener *o)
{
	if (!o || --o->references)
		return;
	close(o->fd);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

struct opener *opener_ref(struct opener *o)
{
	if (o)
		o->references++;
	return o;
}

struct opener *opener_use(struct opener *o)
{
	struct opener *before = mine;

	mine = o;
	return before;
}

struct opener *opener_mine(void)
{
	return mine;
}

uid_t opener_uid(void)
{
	return mine ? mine->uid : geteuid();
}

/* ---- asking ---- */

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Begins a request; the lock is held then.  false: errno says why not. */
static bool begin(enum opener_call call, const char *path, const char *to)
{
	struct opener_request *r = &mine->request;

	if (strlen(path) >= sizeof r->path || (to && strlen(to) >= sizeof r->to)) {
		errno = ENAMETOOLONG;
		return false;
	}
	pthread_mutex_lock(&mine->lock);
	memset(r, 0, offsetof(struct opener_request, path));
	r->call = call;
	r->to[0] = '\0';
	strcpy(r->path, path);
	if (to)
		strcpy(r->to, to);
	return true;
}

/* Asks, and gives the lock back.  A descriptor that comes is the result, else 0 and the length of
 * what came. */
static int ask_for(int dir, int other, struct stat *st, void *value, size_t size)
{
	const int fds[2] = {dir, other};
	int got[2] = {-1, -1};
	long n = opener_send(mine->fd, &mine->request,
		offsetof(struct opener_request, value) + mine->request.value_bytes, fds,
		other >= 0 ? 2 : 1);
	const struct opener_reply *reply = &mine->reply;
	int error, length = 0;

	if (!n)
		n = opener_recv(mine->fd, &mine->reply, sizeof mine->reply, got);
	if (n < (long)offsetof(struct opener_reply, value) || reply->length < 0 ||
		n != (long)offsetof(struct opener_reply, value) + reply->length)
		error = EIO; /* it has gone */
	else
		error = reply->error;
	if (!error && st)
		*st = reply->st;
	if (!error && value) {
		length = reply->length;
		memcpy(value, reply->value, (size_t)length < size ? (size_t)length : size);
	}
	pthread_mutex_unlock(&mine->lock);
	if (got[1] >= 0)
		close(got[1]);
	if (!error)
		return got[0] >= 0 ? got[0] : length;
	if (got[0] >= 0)
		close(got[0]);
	return fail(error);
}

static int ask(int dir, int other)
{
	return ask_for(dir, other, NULL, NULL, 0);
}

/* ---- calls ---- */

static bool is_opened(int fd)
{
	if (fd > 0)
		return true;
	if (!fd)
		errno = EIO; /* it said that it is open, and sent nothing */
	return false;
}

int opener_openat2(int dir, const char *path, const struct open_how *how)
{
	int fd;

	if (!mine)
		return (int)syscall(SYS_openat2, dir, path, how, sizeof *how);
	if (!begin(OPENER_OPENAT2, path, NULL))
		return -1;
	mine->request.open_flags = how->flags;
	mine->request.mode = (uint32_t)how->mode;
	mine->request.resolve = how->resolve;
	fd = ask(dir, -1);
	return is_opened(fd) ? fd : -1;
}

int opener_openat(int dir, const char *path, int flags, mode_t mode)
{
	int fd;

	if (!mine)
		return openat(dir, path, flags, mode);
	if (!begin(OPENER_OPENAT, path, NULL))
		return -1;
	mine->request.flags = flags;
	mine->request.mode = mode;
	fd = ask(dir, -1);
	return is_opened(fd) ? fd : -1;
}

int opener_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	if (!mine)
		return fstatat(dir, path, st, flags);
	if (!begin(OPENER_FSTATAT, path, NULL))
		return -1;
	mine->request.flags = flags;
	return ask_for(dir, -1, st, NULL, 0);
}

ssize_t opener_readlinkat(int dir, const char *path, char *out, size_t size)
{
	int n;

	if (!mine)
		return readlinkat(dir, path, out, size);
	if (!begin(OPENER_READLINKAT, path, NULL))
		return -1;
	n = ask_for(dir, -1, NULL, out, size);
	return n > 0 && (size_t)n > size ? (ssize_t)size : n;
}

int opener_faccessat(int dir, const char *path, int mode, int flags)
{
	if (!mine)
		return faccessat(dir, path, mode, flags);
	if (!begin(OPENER_FACCESSAT, path, NULL))
		return -1;
	mine->request.mode = (uint32_t)mode;
	mine->request.flags = flags;
	return ask(dir, -1);
}

int opener_mkdirat(int dir, const char *path, mode_t mode)
{
	if (!mine)
		return mkdirat(dir, path, mode);
	if (!begin(OPENER_MKDIRAT, path, NULL))
		return -1;
	mine->request.mode = mode;
	return ask(dir, -1);
}

int opener_unlinkat(int dir, const char *path, int flags)
{
	if (!mine)
		return unlinkat(dir, path, flags);
	if (!begin(OPENER_UNLINKAT, path, NULL))
		return -1;
	mine->request.flags = flags;
	return ask(dir, -1);
}

int opener_symlinkat(const char *target, int dir, const char *path)
{
	if (!mine)
		return symlinkat(target, dir, path);
	return begin(OPENER_SYMLINKAT, path, target) ? ask(dir, -1) : -1;
}

int opener_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	if (!mine)
		return renameat2(from_dir, from, to_dir, to, flags);
	if (!begin(OPENER_RENAMEAT2, from, to))
		return -1;
	mine->request.flags = (int32_t)flags;
	return ask(from_dir, to_dir);
}

int opener_utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
	if (!mine)
		return utimensat(dir, path, times, flags);
	if (!begin(OPENER_UTIMENSAT, path, NULL))
		return -1;
	memcpy(mine->request.times, times, sizeof mine->request.times);
	mine->request.flags = flags;
	return ask(dir, -1);
}

int opener_fchmod(int fd, mode_t mode)
{
	if (!mine)
		return fchmod(fd, mode);
	if (!begin(OPENER_FCHMOD, "", NULL))
		return -1;
	mine->request.mode = mode;
	return ask(fd, -1);
}

int opener_chmod(int fd, mode_t mode)
{
	if (!mine)
		return opener_change_mode(fd, mode);
	if (!begin(OPENER_CHMOD, "", NULL))
		return -1;
	mine->request.mode = mode;
	return ask(fd, -1);
}

int opener_futimens(int fd, const struct timespec times[2])
{
	if (!mine)
		return futimens(fd, times);
	if (!begin(OPENER_FUTIMENS, "", NULL))
		return -1;
	memcpy(mine->request.times, times, sizeof mine->request.times);
	return ask(fd, -1);
}

int opener_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	if (!mine)
		return linkat(from_dir, from, to_dir, to, flags);
	if (!begin(OPENER_LINKAT, from, to))
		return -1;
	mine->request.flags = flags;
	return ask(from_dir, to_dir);
}

int opener_fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
	if (!mine)
		return fchownat(dir, path, uid, gid, flags);
	if (!begin(OPENER_FCHOWNAT, path, NULL))
		return -1;
	mine->request.uid = uid;
	mine->request.gid = gid;
	mine->request.flags = flags;
	return ask(dir, -1);
}

ssize_t opener_fgetxattr(int fd, const char *name, void *value, size_t size)
{
	uint8_t unused;
	int n;

	if (!mine)
		return fgetxattr(fd, name, value, size);
	if (!begin(OPENER_FGETXATTR, name, NULL))
		return -1;
	n = ask_for(fd, -1, NULL, size ? value : &unused, size);
	return size && n > 0 && (size_t)n > size ? fail(ERANGE) : n;
}

int opener_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
	if (!mine)
		return fsetxattr(fd, name, value, size, flags);
	if (size > OPENER_VALUE_MAX)
		return fail(E2BIG);
	if (!begin(OPENER_FSETXATTR, name, NULL))
		return -1;
	mine->request.flags = flags;
	mine->request.value_bytes = (uint32_t)size;
	memcpy(mine->request.value, value, size);
	return ask(fd, -1);
}

int opener_fremovexattr(int fd, const char *name)
{
	if (!mine)
		return fremovexattr(fd, name);
	return begin(OPENER_FREMOVEXATTR, name, NULL) ? ask(fd, -1) : -1;
}
