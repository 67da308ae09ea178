/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_place.c: see incoming_place.h.
 */
#include "tree/incoming_place.h"

#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct in_place {
	int fd;
	bool made; /* it was not there before */
	bool is_claimed;
	/* what it may take, and had before */
	struct space_share *space;
	struct space_item before;
	uint64_t claimed_bytes, came_bytes;
};

static int in_place_flags(const struct incoming_place *p)
{
	/* a FIFO must not be waited for */
	return O_WRONLY | O_NONBLOCK | O_NOCTTY | (p->offset == UINT64_MAX ? O_APPEND : 0);
}

/* A new file, whose name is then there to stay.  A descriptor or -errno. */
static int in_place_create(int top, const char *path, int flags)
{
	char last[256];
	int dir = beneath_open_parent(top, path, last), fd, err;

	if (dir < 0)
		return dir;
	fd = opener_openat(dir, last, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0) /* a link that leads nowhere has the name */
		fd = errno == EEXIST ? -ENOENT : -errno;
	err = fd < 0 ? 0 : beneath_sync(dir);
	close(dir);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* In its turn. */
static int in_place_write(void *ctx, const struct block *block)
{
	struct in_place *p = ctx;
	uint64_t more;
	int err;

	p->came_bytes += block->length;
	more = p->came_bytes > p->claimed_bytes ? p->came_bytes - p->claimed_bytes : 0;
	err = more ? space_claim(p->space, more, 0) : 0;
	if (err)
		return err;
	p->claimed_bytes += more;
	for (uint32_t done = 0; done < block->length;) {
		ssize_t n = write(p->fd, block->payload + done, block->length - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (uint32_t)n;
	}
	return 0;
}

static int in_place_sync(void *ctx)
{
	const struct in_place *p = ctx;
	int n;

	do
		n = fsync(p->fd);
	while (n && errno == EINTR);
	return n ? -errno : 0;
}

static int in_place_close(void *ctx)
{
	struct in_place *p = ctx;
	struct space_item now = {0};
	int err;

	space_look_fd(p->space, p->fd, &now);
	space_change(p->space, &p->before, &now);
	space_unclaim(p->space, p->claimed_bytes, p->made);
	err = close(p->fd) && errno != EINTR ? -errno : 0;
	free(p);
	return err;
}

static const struct end_calls in_place_calls = {
	.write = in_place_write, .sync = in_place_sync, .free = in_place_close};

/* What is to come is claimed before a file is made for it. */
static int in_place_prepare(struct in_place *p, int top, const char *path,
	const struct incoming_place *wanted, uint64_t bytes)
{
	struct stat st;
	int err;

	p->fd = beneath_open(top, path, in_place_flags(wanted), 0);
	p->made = p->fd == -ENOENT && wanted->create;
	if (p->fd < 0 && !p->made)
		return p->fd;
	err = space_claim(p->space, bytes, p->made);
	if (err)
		return err;
	p->claimed_bytes = bytes;
	p->is_claimed = true;
	if (p->made)
		p->fd = in_place_create(top, path, in_place_flags(wanted));
	if (p->fd < 0)
		return p->fd;
	if (fstat(p->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	if (wanted->offset != UINT64_MAX && lseek(p->fd, (off_t)wanted->offset, SEEK_SET) < 0)
		return -errno;
	if (!p->made)
		space_look_fd(p->space, p->fd, &p->before);
	return 0;
}

int incoming_place_open(int top, const char *path, const struct incoming_place *wanted,
	struct space_share *space, uint64_t bytes, struct end **end, int *fd)
{
	struct in_place *p = calloc(1, sizeof *p);
	int err;

	if (!p)
		return -ENOMEM;
	p->space = space;
	err = in_place_prepare(p, top, path, wanted, bytes == UINT64_MAX ? 0 : bytes);
	if (!err)
		err = end_calls_open(&in_place_calls, p, end);
	if (!err) {
		*fd = p->fd;
		return 0;
	}
	if (p->is_claimed)
		space_unclaim(p->space, p->claimed_bytes, p->made);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
	return err;
}
