/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing.c: what was asked to be sent, one item after another.
 *
 * Owns the list of what was added, the walk of the directory that is being sent, and of each item
 * on its way its names, a descriptor and what the file was when it was opened.  Files are opened
 * when the transfer asks for them, so only those on their way hold descriptors.  Knows no session.
 */
#include "tree/outgoing.h"

#include "tree/beneath.h"
#include "tree/outgoing_tree.h"
#include "tree/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum outgoing_kind {
	OUTGOING_FILE,
	OUTGOING_DIRECTORY,
	OUTGOING_STREAM,
	OUTGOING_NULL,
};

struct outgoing_root {
	enum outgoing_kind kind;
	char *path, *name;
	int fd;         /* stream: borrowed */
	uint64_t bytes; /* null */
};

/* An item on its way: the transfer's cookie. */
struct outgoing_item {
	char *path, *name, *target;
	int fd; /* for the check; -1 = none */
	struct stat before;
};

struct outgoing {
	struct outgoing_params params;
	struct outgoing_root *roots;
	size_t count, room, at;
	struct walk *walk;         /* of roots[at - 1] */
	struct outgoing_tree tree; /* that it walks */
	struct transfer_source source;
};

static void outgoing_item_free(struct outgoing_item *it)
{
	if (!it)
		return;
	if (it->fd >= 0)
		close(it->fd);
	free(it->path);
	free(it->name);
	free(it->target);
	free(it);
}

static int outgoing_item_new(const char *path, const char *name, struct transfer_item *item)
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

static void outgoing_set_attributes(struct transfer_item *item, const struct stat *st)
{
	item->file.mode = st->st_mode & 07777;
	item->file.mtime_s = st->st_mtim.tv_sec;
	item->file.mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
}

static void outgoing_set_now(struct transfer_item *item)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	item->file.mode = 0666;
	item->file.mtime_s = now.tv_sec;
	item->file.mtime_ns = (uint32_t)now.tv_nsec;
}

/* Opens the item's file.  `flags`: O_NOFOLLOW or 0.  0 or -errno. */
static int outgoing_open_file(
	struct outgoing *o, struct transfer_item *item, int top, const char *path, int flags)
{
	struct outgoing_item *it = item->cookie;
	int fd, err;

	/* a FIFO that took the file's place meanwhile must not hang us, a terminal not become ours
	 */
	fd = beneath_open(top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags, 0);
	if (fd < 0)
		return fd;
	err = fstat(fd, &it->before) ? -errno : 0;
	if (!err && !S_ISREG(it->before.st_mode))
		err = S_ISDIR(it->before.st_mode) ? -EISDIR : -ENXIO;
	if (!err) {
		it->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		err = it->fd < 0 ? -errno : 0;
	}
	if (err) {
		close(fd);
		return err;
	}
	outgoing_set_attributes(item, &it->before);
	item->file.size = (uint64_t)it->before.st_size;
	return end_file_open(fd, false, item->file.size, o->params.direct, &item->end);
}

/* Reads a symbolic link.  0 or -errno. */
static int outgoing_read_link(struct transfer_item *item, int top, const char *path)
{
	struct outgoing_item *it = item->cookie;
	char target[TRANSFER_TARGET_MAX + 1];
	struct stat st;
	ssize_t n = -1;
	int fd = beneath_open(top, path, O_PATH | O_NOFOLLOW, 0), err = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISLNK(st.st_mode))
		err = -ESTALE; /* no more */
	else if ((n = readlinkat(fd, "", target, sizeof(target))) < 0)
		err = -errno;
	else if (!n || (size_t)n == sizeof(target))
		err = -ENAMETOOLONG;
	close(fd);
	if (err)
		return err;
	it->target = strndup(target, (size_t)n);
	if (!it->target)
		return -ENOMEM;
	outgoing_set_attributes(item, &st);
	item->file.kind = TRANSFER_FILE_LINK;
	item->file.target = (struct wire_bytes){(const uint8_t *)it->target, (size_t)n};
	return 0;
}

/* What a symbolic link in a tree leads to: 0 when it is a regular file. */
static int outgoing_check_link(int top, const char *path, struct stat *st)
{
	int err = beneath_stat(top, path, true, st);

	if (err)
		return err;
	return S_ISREG(st->st_mode) ? 0 : S_ISDIR(st->st_mode) ? -ELOOP : -ENXIO;
}

static int outgoing_next_walked(
	struct outgoing *o, const struct walk_entry *entry, struct transfer_item *item)
{
	char *path = outgoing_tree_path(&o->tree, entry->path);
	struct stat st;
	int err;

	if (!path)
		return -ENOMEM;
	err = outgoing_item_new(path, entry->name, item);
	free(path);
	if (err)
		return err;
	item->error = entry->error;
	if (entry->kind == WALK_DIRECTORY || entry->kind == WALK_LEAVE) {
		item->file.kind = entry->kind == WALK_LEAVE ? TRANSFER_FILE_DIRECTORY_END
							    : TRANSFER_FILE_DIRECTORY;
		outgoing_set_attributes(item, &entry->st);
	}
	if (!item->error && !transfer_name_ok(item->file.name))
		item->error = -ENAMETOOLONG;
	if (item->error)
		return 0;
	switch (entry->kind) {
	case WALK_DIRECTORY:
	case WALK_LEAVE:
		break;
	case WALK_FILE:
		item->error = outgoing_open_file(o, item, o->tree.top, entry->path, O_NOFOLLOW);
		break;
	case WALK_LINK:
		if (o->params.links == WALK_LINKS_KEEP) {
			item->error = outgoing_read_link(item, o->tree.top, entry->path);
			break;
		}
		item->error = outgoing_check_link(o->tree.top, entry->path, &st);
		if (!item->error)
			item->error = outgoing_open_file(o, item, o->tree.top, entry->path, 0);
		break;
	case WALK_OTHER:
		item->error = -ENXIO;
		break;
	}
	return 0;
}

static bool outgoing_crosses(const struct walk_entry *entry)
{
	return transfer_name_ok(
		(struct wire_bytes){(const uint8_t *)entry->name, strlen(entry->name)});
}

static int outgoing_next_root(
	struct outgoing *o, const struct outgoing_root *root, struct transfer_item *item)
{
	int err = outgoing_item_new(root->path, root->name, item);

	if (err)
		return err;
	switch (root->kind) {
	case OUTGOING_FILE:
		item->error = outgoing_open_file(o, item, o->params.top, root->path, 0);
		break;
	case OUTGOING_STREAM:
		item->file.kind = TRANSFER_FILE_STREAM;
		item->file.size = MESSAGE_UNKNOWN;
		outgoing_set_now(item);
		item->error = end_stream_open(root->fd, false, true, &item->end);
		break;
	case OUTGOING_NULL:
		item->file.kind = TRANSFER_FILE_NULL;
		item->file.size = root->bytes;
		outgoing_set_now(item);
		item->error = end_null_open(root->bytes, &item->end);
		break;
	case OUTGOING_DIRECTORY: /* is walked, or can not be */
		item->file.kind = TRANSFER_FILE_DIRECTORY;
		break;
	}
	return 0;
}

static int outgoing_next(void *ctx, struct transfer_item *item)
{
	struct outgoing *o = ctx;
	const struct outgoing_root *root;
	struct walk_entry entry;
	int n;

	for (;;) {
		if (o->walk) {
			n = walk_next(o->walk, &entry);
			if (n > 0 && entry.kind == WALK_LEAVE && !outgoing_crosses(&entry))
				continue; /* it was told when it was entered */
			if (n > 0)
				n = outgoing_next_walked(o, &entry, item);
			else if (n == 0) {
				walk_free(o->walk);
				o->walk = NULL;
				outgoing_tree_close(&o->tree);
				continue;
			}
			return n ? n : 1;
		}
		if (o->at == o->count)
			return 0;
		root = &o->roots[o->at++];
		if (root->kind != OUTGOING_DIRECTORY) {
			n = outgoing_next_root(o, root, item);
			return n ? n : 1;
		}
		n = outgoing_tree_open(o->params.top, root->path, &o->tree);
		if (n) { /* it went away meanwhile, or there are too many open files */
			int err = outgoing_next_root(o, root, item);

			item->error = n;
			return err ? err : 1;
		}
		n = walk_new(o->tree.top, o->tree.path, root->name, o->params.links, &o->walk);
		if (n) {
			outgoing_tree_close(&o->tree);
			return n;
		}
	}
}

static bool outgoing_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static int outgoing_check(void *ctx, const struct transfer_item *item)
{
	const struct outgoing_item *it = item->cookie;
	struct stat now;

	(void)ctx;
	if (it->fd < 0)
		return 0;
	if (fstat(it->fd, &now))
		return -errno;
	if (now.st_size != it->before.st_size ||
		!outgoing_same_time(&now.st_mtim, &it->before.st_mtim) ||
		!outgoing_same_time(&now.st_ctim, &it->before.st_ctim))
		return -ESTALE;
	return 0;
}

static void outgoing_done(
	void *ctx, const struct transfer_item *item, uint16_t status, const char *text)
{
	struct outgoing *o = ctx;
	struct outgoing_item *it = item->cookie;
	const bool directory = item->file.kind == TRANSFER_FILE_DIRECTORY ||
			       item->file.kind == TRANSFER_FILE_DIRECTORY_END;
	const bool stream = item->file.size == MESSAGE_UNKNOWN;
	const bool empty = status || directory || item->file.kind == TRANSFER_FILE_LINK;
	const struct outcome outcome = {.path = it->path,
		.name = item->file.name,
		.directory = directory,
		.bytes = empty    ? 0
			 : stream ? item->sent_bytes
				  : item->file.size,
		.status = status,
		.text = text};

	/* a directory is told when it is made; of its end only what went wrong */
	if (o->params.done && (item->file.kind != TRANSFER_FILE_DIRECTORY_END || status || *text))
		o->params.done(o->params.ctx, &outcome);
	outgoing_item_free(it);
}

int outgoing_new(const struct outgoing_params *params, struct outgoing **out)
{
	struct outgoing *o = calloc(1, sizeof(*o));

	*out = NULL;
	if (!o)
		return -ENOMEM;
	o->params = *params;
	o->source = (struct transfer_source){
		.next = outgoing_next, .check = outgoing_check, .done = outgoing_done, .ctx = o};
	*out = o;
	return 0;
}

void outgoing_free(struct outgoing *o)
{
	if (!o)
		return;
	walk_free(o->walk);
	outgoing_tree_close(&o->tree);
	for (size_t i = 0; i < o->count; i++) {
		free(o->roots[i].path);
		free(o->roots[i].name);
	}
	free(o->roots);
	free(o);
}

static void outgoing_total(uint64_t *total, uint64_t add)
{
	if (*total != MESSAGE_UNKNOWN)
		*total = add == MESSAGE_UNKNOWN ? add : *total + add;
}

/* Adds to the hints: so many names, so many bytes in all, the largest of them. */
static void outgoing_count(struct outgoing *o, uint64_t files, uint64_t bytes, uint64_t largest)
{
	outgoing_total(&o->source.total_files, files);
	outgoing_total(&o->source.total_bytes, bytes);
	if (largest > o->source.largest_bytes) /* MESSAGE_UNKNOWN is the largest number */
		o->source.largest_bytes = largest;
}

static int outgoing_add_root(struct outgoing *o, const struct outgoing_root *add)
{
	struct wire_bytes name = {(const uint8_t *)add->name, strlen(add->name)};
	struct outgoing_root *root;

	if (!transfer_name_ok(name))
		return -EINVAL;
	if (o->count == o->room) {
		root = realloc(o->roots, (o->room * 2 + 8) * sizeof(*root));
		if (!root)
			return -ENOMEM;
		o->roots = root;
		o->room = o->room * 2 + 8;
	}
	root = &o->roots[o->count];
	*root = *add;
	root->path = strdup(add->path);
	root->name = strdup(add->name);
	if (!root->path || !root->name) {
		free(root->path);
		free(root->name);
		return -ENOMEM;
	}
	o->count++;
	return 0;
}

int outgoing_add(struct outgoing *o, const char *path, const char *name)
{
	struct outgoing_root root = {.path = (char *)path, .name = (char *)name, .fd = -1};
	struct stat st;
	int err = beneath_stat(o->params.top, path, true, &st);

	if (err)
		return err;
	if (S_ISDIR(st.st_mode)) {
		if (!o->params.recursive)
			return -EISDIR;
		root.kind = OUTGOING_DIRECTORY;
	} else if (!S_ISREG(st.st_mode)) {
		return -ENXIO;
	}
	err = outgoing_add_root(o, &root);
	if (err)
		return err;
	if (root.kind == OUTGOING_DIRECTORY)
		outgoing_count(o, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN);
	else
		outgoing_count(o, 1, (uint64_t)st.st_size, (uint64_t)st.st_size);
	return 0;
}

int outgoing_add_stream(struct outgoing *o, int fd, const char *name)
{
	struct outgoing_root root = {
		.kind = OUTGOING_STREAM, .path = "-", .name = (char *)name, .fd = fd};
	int err = outgoing_add_root(o, &root);

	if (!err)
		outgoing_count(o, 1, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN);
	return err;
}

int outgoing_add_null(struct outgoing *o, uint64_t bytes)
{
	struct outgoing_root root = {
		.kind = OUTGOING_NULL, .path = "", .name = "", .fd = -1, .bytes = bytes};
	int err = outgoing_add_root(o, &root);

	if (!err)
		outgoing_count(o, 1, bytes, bytes);
	return err;
}

/* Adds one tree up.  -ENOMEM. */
static int outgoing_measure_tree(struct outgoing *o, const struct outgoing_root *root)
{
	struct walk_entry entry;
	struct outgoing_tree tree;
	struct walk *walk;
	struct stat st;
	int n = outgoing_tree_open(o->params.top, root->path, &tree);

	if (n)
		return n;
	n = walk_new(tree.top, tree.path, root->name, o->params.links, &walk);
	if (n) {
		outgoing_tree_close(&tree);
		return n;
	}
	while ((n = walk_next(walk, &entry)) > 0) {
		uint64_t size = 0;

		if (entry.kind == WALK_LEAVE)
			continue;
		if ((entry.kind == WALK_FILE ||
			    (entry.kind == WALK_LINK && o->params.links != WALK_LINKS_KEEP)) &&
			!entry.error && !outgoing_check_link(tree.top, entry.path, &st))
			size = (uint64_t)st.st_size;
		outgoing_count(o, entry.kind != WALK_DIRECTORY, size, size);
	}
	walk_free(walk);
	outgoing_tree_close(&tree);
	return n;
}

void outgoing_measure(struct outgoing *o)
{
	struct stat st;

	o->source.total_files = o->source.total_bytes = o->source.largest_bytes = 0;
	for (size_t i = 0; i < o->count; i++) {
		const struct outgoing_root *root = &o->roots[i];
		uint64_t size = root->bytes;

		if (root->kind == OUTGOING_DIRECTORY) {
			if (outgoing_measure_tree(o, root))
				outgoing_count(
					o, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN);
			continue;
		}
		if (root->kind == OUTGOING_STREAM)
			size = MESSAGE_UNKNOWN;
		else if (root->kind == OUTGOING_FILE)
			size = outgoing_check_link(o->params.top, root->path, &st)
				       ? 0
				       : (uint64_t)st.st_size;
		outgoing_count(o, 1, size, size);
	}
}

const struct transfer_source *outgoing_source(struct outgoing *o)
{
	return &o->source;
}
