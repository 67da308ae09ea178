/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_item: see outgoing_item.h.
 */
#include "tree/outgoing_item.h"

#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/seen.h"
#include "tree/space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUTGOING_PAGE 4096u

void outgoing_item_free(struct outgoing_item *it)
{
	if (!it)
		return;
	if (it->fd >= 0)
		close(it->fd);
	outgoing_item_leave(it);
	free(it->path);
	free(it->name);
	free(it->target);
	free(it->kept);
	free(it);
}

int outgoing_item_new(const char *path, const char *name, struct transfer_item *item)
{
	struct outgoing_item *it = calloc(1, sizeof(*it));

	memset(item, 0, sizeof(*item));
	if (!it)
		return -ENOMEM;
	it->fd = -1;
	it->path = strdup(path);
	it->name = strdup(name);
	if (!it->path || !it->name) {
		outgoing_item_free(it);
		return -ENOMEM;
	}
	item->cookie = it;
	item->file.kind = TRANSFER_FILE_REGULAR;
	item->file.name = (struct wire_bytes){(const uint8_t *)it->name, strlen(it->name)};
	return 0;
}

void outgoing_item_attributes(struct transfer_item *item, const struct stat *st)
{
	item->file.mode = st->st_mode & 07777;
	item->file.mtime_s = st->st_mtim.tv_sec;
	item->file.mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
}

void outgoing_item_now(struct transfer_item *item)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	item->file.mode = 0666;
	item->file.mtime_s = now.tv_sec;
	item->file.mtime_ns = (uint32_t)now.tv_nsec;
}

/* Files of the kernel's (/proc) say that they are empty, and are not: their bytes would be lost. */
static bool outgoing_has_no_size(int fd, const struct stat *st)
{
	char byte;

	return !st->st_size && pread(fd, &byte, 1, 0) > 0;
}

/* 1: it is a hard link; 0; -errno. */
static int outgoing_item_meet(struct transfer_item *item, const struct outgoing_from *from)
{
	struct outgoing_item *it = item->cookie;
	struct outgoing_first first;
	int n;

	if (!from->links || it->before.st_nlink < 2 || !item->file.name.len)
		return 0;
	n = outgoing_links_meet(from->links, &it->before, from->number, item->file.name, &first);
	if (n == -ENOSPC)
		return 0;
	if (!n)
		item->file.has |= TRANSFER_HAS_NAMES;
	if (n <= 0)
		return n;
	it->target = first.name;
	item->file.kind = TRANSFER_FILE_HARD_LINK;
	item->file.first = first.number;
	item->file.target = (struct wire_bytes){(const uint8_t *)it->target, strlen(it->target)};
	return 1;
}

bool outgoing_item_is_sparse(const struct stat *st)
{
	return space_disk_bytes(st) + OUTGOING_PAGE <= (uint64_t)st->st_size;
}

void outgoing_item_close(struct transfer_item *item, const struct outgoing_from *from,
	struct outgoing_tree *tree, size_t length)
{
	struct outgoing_item *it = item->cookie;

	item->closed = true;
	it->top = from->top;
	it->tree = tree ? outgoing_tree_take(tree) : NULL;
	it->beneath = it->path + strlen(it->path) - length;
	it->flags = from->flags;
}

void outgoing_item_leave(struct outgoing_item *it)
{
	outgoing_tree_give(it->tree);
	it->tree = NULL;
}

int outgoing_item_is_file(int fd, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return S_ISDIR(st->st_mode) ? -EISDIR : -ENXIO;
	return outgoing_has_no_size(fd, st) ? -ENXIO : 0;
}

int outgoing_item_adopt(
	struct transfer_item *item, const struct outgoing_from *from, int fd, const struct stat *st)
{
	struct outgoing_item *it = item->cookie;
	int err = outgoing_item_is_file(fd, st);

	it->before = *st;
	if (!err) {
		outgoing_item_attributes(item, &it->before);
		err = outgoing_item_meet(item, from);
	}
	if (!err) {
		it->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		err = it->fd < 0 ? -errno : 0;
	}
	if (!err)
		err = outgoing_keep_all(from->keep, fd, &it->before, &item->file, &it->kept);
	if (err) {
		close(fd);
		return err < 0 ? err : 0;
	}
	if (!from->dense && outgoing_item_is_sparse(&it->before))
		item->file.has |= TRANSFER_HAS_HOLES;
	item->file.size = (uint64_t)it->before.st_size;
	item->file.identity = seen_change(&it->before);
	item->file.has |= TRANSFER_HAS_IDENTITY;
	return end_file_open(fd, false, item->file.size, from->direct, &item->end);
}

int outgoing_item_open(struct transfer_item *item, const struct outgoing_from *from)
{
	struct stat st;
	int fd, err;

	/* a FIFO that took the file's place meanwhile must not hang us, a terminal not become ours
	 */
	fd = beneath_open(from->top, from->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | from->flags, 0);
	if (fd < 0)
		return fd;
	if (!fstat(fd, &st))
		return outgoing_item_adopt(item, from, fd, &st);
	err = -errno;
	close(fd);
	return err;
}

int outgoing_item_keep_directory(struct transfer_item *item, const struct outgoing_from *from)
{
	struct outgoing_item *it = item->cookie;
	struct stat st;
	int fd, err;

	if (!from->keep->has)
		return 0;
	fd = beneath_open(from->top, from->path, O_RDONLY | O_DIRECTORY | from->flags, 0);
	if (fd < 0)
		return fd;
	err = fstat(fd, &st) ? -errno
			     : outgoing_keep_all(from->keep, fd, &st, &item->file, &it->kept);
	close(fd);
	return err;
}

/* The sink's file: as it was listed, where the caller knows that. */
static void outgoing_tell_there(struct transfer_item *item, const struct outgoing_from *from)
{
	const struct outgoing_item *it = item->cookie;
	const struct compare_entry *e =
		from->listed_there ? compare_list_find(from->listed_there, it->name) : NULL;

	item->file.seen = e;
	item->file.there = (struct message_seen){.size = (uint64_t)it->before.st_size};
	if (e)
		item->file.there = compare_seen(e);
}

static int outgoing_read_attributes(
	struct transfer_item *item, const struct outgoing_from *from, int fd)
{
	struct outgoing_item *it = item->cookie;
	int n;

	if (fstat(fd, &it->before))
		return -errno;
	if (!S_ISREG(it->before.st_mode))
		return -ESTALE; /* no more */
	outgoing_item_attributes(item, &it->before);
	if (from->listed &&
		!compare_list_has(from->listed, it->name, item->file.mtime_s, item->file.mtime_ns))
		return -ESTALE;
	n = outgoing_item_meet(item, from);
	if (n)
		return n < 0 ? n : 0;
	item->file.kind = TRANSFER_FILE_ATTRIBUTES;
	outgoing_tell_there(item, from);
	return outgoing_keep_all(from->keep, fd, &it->before, &item->file, &it->kept);
}

int outgoing_item_read_attributes(struct transfer_item *item, const struct outgoing_from *from)
{
	/* attributes and lists are read from an open file; the rest needs no right to read it */
	const int how = from->keep->has & (TRANSFER_HAS_XATTRS | TRANSFER_HAS_ACLS)
				? O_RDONLY | O_NONBLOCK | O_NOCTTY
				: O_PATH;
	int fd = beneath_open(from->top, from->path, how | from->flags, 0), err;

	if (fd < 0)
		return fd;
	err = outgoing_read_attributes(item, from, fd);
	close(fd);
	return err;
}

int outgoing_item_read_link(struct transfer_item *item, const struct outgoing_from *from)
{
	struct outgoing_item *it = item->cookie;
	char target[TRANSFER_TARGET_MAX + 1];
	struct stat st;
	ssize_t n = -1;
	int fd = beneath_open(from->top, from->path, O_PATH | O_NOFOLLOW, 0), err = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISLNK(st.st_mode))
		err = -ESTALE; /* no more */
	else if ((n = opener_readlinkat(fd, "", target, sizeof(target))) < 0)
		err = -errno;
	else if (!n || (size_t)n == sizeof(target))
		err = -ENAMETOOLONG;
	close(fd);
	if (err)
		return err;
	it->target = strndup(target, (size_t)n);
	if (!it->target)
		return -ENOMEM;
	outgoing_item_attributes(item, &st);
	item->file.kind = TRANSFER_FILE_LINK;
	item->file.target = (struct wire_bytes){(const uint8_t *)it->target, (size_t)n};
	return outgoing_keep_owner(from->keep, &st, &item->file, &it->kept);
}

int outgoing_item_leads_to(int top, const char *path, struct stat *st)
{
	int err = beneath_stat(top, path, true, st);

	if (err)
		return err;
	return S_ISREG(st->st_mode) ? 0 : S_ISDIR(st->st_mode) ? -ELOOP : -ENXIO;
}

static bool outgoing_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

int outgoing_item_compare(const struct stat *before, const struct stat *now)
{
	if (now->st_size != before->st_size || !outgoing_same_time(&now->st_mtim, &before->st_mtim))
		return -ESTALE;
	return outgoing_same_time(&now->st_ctim, &before->st_ctim) ? 0 : -EAGAIN;
}

int outgoing_item_check(const struct transfer_item *item)
{
	const struct outgoing_item *it = item->cookie;
	struct stat now;

	if (it->fd < 0)
		return 0;
	if (fstat(it->fd, &now))
		return -errno;
	return outgoing_item_compare(&it->before, &now);
}
