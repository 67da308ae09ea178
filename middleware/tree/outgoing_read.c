/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_read.c: owns what a reading keeps from one file for the next: its directory.
 */
#include "tree/outgoing_read.h"

#include "base/opener.h"

#include "tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A FIFO that took the file's place meanwhile must not hang us, a terminal not become ours. */
#define OUTGOING_READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct outgoing_reading {
	struct parent parent;
	struct outgoing_tree *tree; /* that it is in */
};

static struct outgoing_reading *outgoing_reading(struct transfer_reading *reading)
{
	if (!reading->state)
		reading->state = calloc(1, sizeof(struct outgoing_reading));
	return reading->state;
}

void outgoing_read_close(struct transfer_reading *reading)
{
	struct outgoing_reading *r = reading->state;

	if (!r)
		return;
	parent_fini(&r->parent);
	outgoing_tree_give(r->tree);
	free(r);
	reading->state = NULL;
}

static int outgoing_read_open(struct outgoing_reading *r, const struct outgoing_item *it)
{
	const char *last;
	int fd;

	if (!it->flags || !it->tree) /* it may be a link */
		return beneath_open(it->top, it->beneath, OUTGOING_READ_FLAGS | it->flags, 0);
	if (it->tree != r->tree) {
		parent_close(&r->parent);
		outgoing_tree_give(r->tree);
		r->tree = outgoing_tree_take(it->tree);
	}
	fd = parent_open(&r->parent, it->top, it->beneath, &last);
	if (fd < 0)
		return fd;
	/* a name in a directory that is open leads nowhere else */
	fd = opener_openat(fd, last, OUTGOING_READ_FLAGS | O_NOFOLLOW, 0);
	return fd < 0 ? -errno : fd;
}

/* All of it: `size` bytes, or it has changed. */
static int64_t outgoing_read_all(int fd, uint8_t *to, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = pread(fd, to + got, size - got, (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ESTALE;
		got += (size_t)n;
	}
	return (int64_t)size;
}

/* Whether what was read is what the file is now: 0; -ESTALE; -errno. */
static int outgoing_read_check(int fd, const struct stat *before, const uint8_t *bytes)
{
	struct stat now;
	uint8_t *again;
	int64_t n;
	int err;

	if (fstat(fd, &now))
		return -errno;
	err = outgoing_item_compare(before, &now);
	if (err != -EAGAIN)
		return err;
	again = malloc((size_t)before->st_size + 1);
	if (!again)
		return -ENOMEM;
	n = outgoing_read_all(fd, again, (size_t)before->st_size);
	if (n < 0)
		err = (int)n;
	else if (memcmp(again, bytes, (size_t)n) != 0)
		err = -ESTALE;
	else if (fstat(fd, &now))
		err = -errno;
	else
		err = outgoing_item_compare(before, &now);
	free(again);
	/* what happened to it since was no more than before */
	return err == -EAGAIN ? 0 : err;
}

/* With the file open.  *taken: the descriptor is not the caller's any more. */
static int64_t outgoing_read_opened(const struct outgoing_from *from,
	struct transfer_reading *reading, struct transfer_item *item, int fd, bool *taken)
{
	struct outgoing_item *it = item->cookie;
	struct stat before;
	int64_t n;

	if (fstat(fd, &before))
		return -errno;
	n = outgoing_item_is_file(fd, &before);
	if (n)
		return n;
	/* one with holes goes by itself, so that it keeps them */
	if (before.st_size > (off_t)reading->most || outgoing_item_is_sparse(&before)) {
		*taken = true;
		n = outgoing_item_adopt(item, from, fd, &before);
		return n ? n : -EFBIG;
	}
	if (before.st_size > (off_t)reading->room)
		return -ENOBUFS;
	n = outgoing_read_all(fd, reading->to, (size_t)before.st_size);
	if (n < 0)
		return n;
	outgoing_item_attributes(item, &before);
	item->file.size = (uint64_t)before.st_size;
	n = outgoing_keep_all(from->keep, fd, &before, &item->file, &it->kept);
	if (n)
		return n;
	n = outgoing_read_check(fd, &before, reading->to);
	return n ? n : before.st_size;
}

int64_t outgoing_read_small(const struct outgoing_from *from, struct transfer_reading *reading,
	struct transfer_item *item)
{
	struct outgoing_reading *r = outgoing_reading(reading);
	struct outgoing_item *it = item->cookie;
	bool taken = false;
	int64_t n;
	int fd;

	if (!r)
		return -ENOMEM;
	fd = outgoing_read_open(r, it);
	if (fd < 0) {
		outgoing_item_leave(it);
		return fd;
	}
	n = outgoing_read_opened(from, reading, item, fd, &taken);
	if (!taken)
		close(fd);
	if (n != -ENOBUFS)
		outgoing_item_leave(it);
	return n;
}

int outgoing_stat(struct parent *parent, int top, const char *path, struct stat *st)
{
	const char *last;
	int fd = parent_open(parent, top, path, &last);

	if (fd < 0)
		return fd;
	if (opener_fstatat(fd, last, st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return S_ISREG(st->st_mode) ? 0 : -ENXIO;
}
