/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/opener_serve: the side of base/opener that does what it is asked for, as another user.
 */
#include "base/opener.h"
#include "base/opener_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static int take_length(struct opener_reply *out, ssize_t n)
{
	out->length = n < 0 ? 0 : (int32_t)n;
	return n < 0 ? -1 : 0;
}

/* Makes the call.  A descriptor, or 0, or -1 and errno. */
static int run(const struct opener_request *r, struct opener_reply *out, int dir, int other)
{
	struct open_how how = {.flags = r->open_flags, .mode = r->mode, .resolve = r->resolve};
	ssize_t n;

	switch (r->call) {
	case OPENER_OPENAT2:
		how.flags |= O_CLOEXEC;
		return (int)syscall(SYS_openat2, dir, r->path, &how, sizeof how);
	case OPENER_OPENAT:
		return openat(dir, r->path, r->flags | O_CLOEXEC, r->mode);
	case OPENER_FSTATAT:
		return fstatat(dir, r->path, &out->st, r->flags);
	case OPENER_READLINKAT:
		n = readlinkat(dir, r->path, (char *)out->value, sizeof out->value);
		return take_length(out, n);
	case OPENER_FACCESSAT:
		return faccessat(dir, r->path, (int)r->mode, r->flags);
	case OPENER_MKDIRAT:
		return mkdirat(dir, r->path, r->mode);
	case OPENER_UNLINKAT:
		return unlinkat(dir, r->path, r->flags);
	case OPENER_SYMLINKAT:
		return symlinkat(r->to, dir, r->path);
	case OPENER_RENAMEAT2:
		return renameat2(dir, r->path, other, r->to, (unsigned)r->flags);
	case OPENER_UTIMENSAT:
		return utimensat(dir, r->path, r->times, r->flags);
	case OPENER_FCHMOD:
		return fchmod(dir, r->mode);
	case OPENER_FUTIMENS:
		return futimens(dir, r->times);
	case OPENER_LINKAT:
		return linkat(dir, r->path, other, r->to, r->flags);
	case OPENER_FCHOWNAT:
		return fchownat(dir, r->path, r->uid, r->gid, r->flags);
	case OPENER_FGETXATTR:
		return take_length(out, fgetxattr(dir, r->path, out->value, sizeof out->value));
	case OPENER_FSETXATTR:
		return fsetxattr(dir, r->path, r->value, r->value_bytes, r->flags);
	case OPENER_CHMOD:
		return opener_change_mode(dir, r->mode);
	default:
		return fremovexattr(dir, r->path);
	}
}

static bool is_well_formed(const struct opener_request *r, long bytes, const int fds[2])
{
	bool two = r->call == OPENER_RENAMEAT2 || r->call == OPENER_LINKAT;

	return bytes >= (long)offsetof(struct opener_request, value) &&
	       r->value_bytes <= OPENER_VALUE_MAX &&
	       bytes == (long)(offsetof(struct opener_request, value) + r->value_bytes) &&
	       r->call && r->call < OPENER_CALLS && fds[0] >= 0 && two == (fds[1] >= 0) &&
	       memchr(r->path, '\0', sizeof r->path) && memchr(r->to, '\0', sizeof r->to);
}

void opener_serve(int fd)
{
	static struct opener_request request;
	static struct opener_reply reply;
	int fds[2], result;

	for (;;) {
		long n = opener_recv(fd, &request, sizeof request, fds);

		if (n <= 0)
			return;
		if (!is_well_formed(&request, n, fds))
			return;
		memset(&reply, 0, offsetof(struct opener_reply, value));
		do
			result = run(&request, &reply, fds[0], fds[1]);
		while (result < 0 && errno == EINTR);
		reply.error = result < 0 ? errno : 0;
		n = opener_send(fd, &reply,
			offsetof(struct opener_reply, value) + (size_t)reply.length, &result,
			result > 0);
		if (result > 0)
			close(result);
		for (unsigned i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		if (n)
			return;
	}
}
