/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/walk.c: one stack of listed directories.
 *
 * Owns the lists and the two growing names.  Each directory is opened by its path beneath `top`,
 * read wholly and closed, so a tree of any depth takes one descriptor for a moment.  Does not open
 * files.
 */
#include "tree/walk.h"

#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct walk_text {
	char *text;
	size_t length, room;
};

/* A directory's entries; `names` holds for each one a byte of type, then the name. */
struct walk_list {
	char *names;
	size_t bytes, room;
	char **sorted; /* each at a name; its type is the byte before */
	size_t count, at;
	size_t path_length, name_length; /* of the directory itself */
	mode_t mode;
	struct timespec mtime;
	dev_t dev;
	ino_t ino;
	int fd; /* of the directory, while entries are looked at; -1: closed */
};

struct walk {
	int top;
	enum walk_links links;
	const struct filter *filter; /* or NULL */
	bool started, look;
	struct walk_text path, name;
	struct walk_list *stack;
	size_t depth, room;
	bool alone, hidden;
};

static int walk_append(struct walk_text *t, const char *text)
{
	size_t length = strlen(text), need = t->length + length + 1;
	char *grown;

	if (need > t->room) {
		grown = realloc(t->text, need * 2);
		if (!grown)
			return -ENOMEM;
		t->text = grown;
		t->room = need * 2;
	}
	memcpy(t->text + t->length, text, length + 1);
	t->length += length;
	return 0;
}

static void walk_cut(struct walk_text *t, size_t length)
{
	t->length = length;
	t->text[length] = '\0';
}

/* Cuts the text back to the directory's, and puts an entry of it behind. */
static int walk_join(struct walk_text *t, size_t length, const char *entry)
{
	int err = 0;

	walk_cut(t, length);
	if (length && t->text[length - 1] != '/')
		err = walk_append(t, "/");
	return err ? err : walk_append(t, entry);
}

static int walk_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int walk_list_add(struct walk_list *list, const struct dirent *entry)
{
	size_t length = strlen(entry->d_name) + 1;
	char *grown;

	if (list->bytes + 1 + length > list->room) {
		list->room = list->room * 2 + 1024;
		grown = realloc(list->names, list->room);
		if (!grown)
			return -ENOMEM;
		list->names = grown;
	}
	list->names[list->bytes++] = (char)entry->d_type;
	memcpy(list->names + list->bytes, entry->d_name, length);
	list->bytes += length;
	list->count++;
	return 0;
}

static void walk_list_fini(struct walk_list *list)
{
	if (list->fd >= 0)
		close(list->fd);
	free(list->names);
	free(list->sorted);
}

/* Reads an open directory; takes over `fd`. */
static int walk_list_read(struct walk_list *list, int fd, bool hidden)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	char *at;
	int err = 0;

	if (!dir) {
		err = -errno;
		close(fd);
		return err;
	}
	while (!err) {
		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			err = -errno;
			break;
		}
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
			(hidden || !temporary_is_hidden(entry->d_name)))
			err = walk_list_add(list, entry);
	}
	closedir(dir);
	if (err || !list->count)
		return err;
	list->sorted = malloc(list->count * sizeof(char *));
	if (!list->sorted)
		return -ENOMEM;
	at = list->names;
	for (size_t i = 0; i < list->count; i++) {
		list->sorted[i] = at + 1;
		at += strlen(at + 1) + 2;
	}
	qsort(list->sorted, list->count, sizeof(char *), walk_compare);
	return 0;
}

int walk_new(int top, const char *path, const char *name, enum walk_links links, struct walk **out)
{
	struct walk *walk = calloc(1, sizeof(*walk));

	*out = NULL;
	if (!walk)
		return -ENOMEM;
	walk->top = top;
	walk->links = links;
	if (walk_append(&walk->path, path) || walk_append(&walk->name, name)) {
		walk_free(walk);
		return -ENOMEM;
	}
	*out = walk;
	return 0;
}

void walk_set_filter(struct walk *walk, const struct filter *filter)
{
	walk->filter = filter;
}

void walk_alone(struct walk *walk)
{
	walk->alone = true;
}

void walk_look(struct walk *walk)
{
	walk->look = true;
}

void walk_hidden(struct walk *walk)
{
	walk->hidden = true;
}

void walk_free(struct walk *walk)
{
	if (!walk)
		return;
	while (walk->depth)
		walk_list_fini(&walk->stack[--walk->depth]);
	free(walk->stack);
	free(walk->path.text);
	free(walk->name.text);
	free(walk);
}

static bool walk_is_above(const struct walk *walk, const struct stat *st)
{
	for (size_t i = 0; walk->links == WALK_LINKS_FOLLOW && i < walk->depth; i++)
		if (walk->stack[i].dev == st->st_dev && walk->stack[i].ino == st->st_ino)
			return true;
	return false;
}

/* Lists the directory of the current path.  What is wrong with it goes to the entry; -ENOMEM. */
static int walk_enter(struct walk *walk, struct walk_entry *entry, int flags)
{
	struct walk_list list = {
		.path_length = walk->path.length, .name_length = walk->name.length, .fd = -1};
	struct walk_list *grown;
	int fd;

	if (walk->depth == walk->room) {
		grown = realloc(walk->stack, (walk->room * 2 + 8) * sizeof(list));
		if (!grown)
			return -ENOMEM;
		walk->stack = grown;
		walk->room = walk->room * 2 + 8;
	}
	fd = beneath_open(walk->top, walk->path.text, O_RDONLY | O_DIRECTORY | flags, 0);
	if (fd < 0) {
		entry->error = fd;
		return 0;
	}
	if (fstat(fd, &entry->st)) {
		entry->error = -errno;
		close(fd);
		return 0;
	}
	if (walk_is_above(walk, &entry->st)) {
		entry->error = -ELOOP;
		close(fd);
		return 0;
	}
	list.dev = entry->st.st_dev;
	list.ino = entry->st.st_ino;
	list.mode = entry->st.st_mode;
	list.mtime = entry->st.st_mtim;
	entry->error = walk_list_read(&list, fd, walk->hidden);
	if (entry->error) {
		walk_list_fini(&list);
		return entry->error == -ENOMEM ? -ENOMEM : 0;
	}
	walk->stack[walk->depth++] = list;
	return 0;
}

static enum walk_kind walk_kind_of(const struct walk *walk, unsigned char type, int *err)
{
	struct stat st;

	*err = 0;
	if (type == DT_UNKNOWN) { /* a file system that does not say */
		*err = beneath_stat(walk->top, walk->path.text, false, &st);
		if (*err)
			return WALK_OTHER;
		type = IFTODT(st.st_mode);
	}
	switch (type) {
	case DT_DIR:
		return WALK_DIRECTORY;
	case DT_REG:
		return WALK_FILE;
	case DT_LNK:
		return WALK_LINK;
	default:
		return WALK_OTHER;
	}
}

/* An entry of a directory is looked at, from the directory's descriptor.  0 or -errno. */
static int walk_look_at(
	struct walk *walk, struct walk_list *list, const char *name, struct walk_entry *entry)
{
	int flags = entry->kind == WALK_LINK && walk->links == WALK_LINKS_FOLLOW
			    ? 0
			    : AT_SYMLINK_NOFOLLOW;

	if (!flags) /* it may lead anywhere beneath the top, and no further */
		return beneath_stat(walk->top, walk->path.text, true, &entry->st);
	if (list->fd < 0) {
		char *end = walk->path.text + list->path_length, was = *end;

		*end = '\0';
		list->fd = beneath_open(walk->top, walk->path.text, O_RDONLY | O_DIRECTORY, 0);
		*end = was;
		if (list->fd < 0)
			return list->fd;
	}
	return opener_fstatat(list->fd, name, &entry->st, flags) ? -errno : 0;
}

/* A directory is entered: the one that it is in keeps no descriptor meanwhile. */
static void walk_close_above(struct walk *walk)
{
	struct walk_list *list = walk->depth ? &walk->stack[walk->depth - 1] : NULL;

	if (list && list->fd >= 0) {
		close(list->fd);
		list->fd = -1;
	}
}

static bool walk_leads_to_directory(const struct walk *walk)
{
	struct stat st;

	return !beneath_stat(walk->top, walk->path.text, true, &st) && S_ISDIR(st.st_mode);
}

/* The last list is read to its end. */
static void walk_leave(struct walk *walk, struct walk_entry *entry)
{
	struct walk_list *list = &walk->stack[--walk->depth];

	entry->kind = WALK_LEAVE;
	entry->st.st_mode = list->mode;
	entry->st.st_mtim = list->mtime;
	walk_cut(&walk->path, list->path_length);
	walk_cut(&walk->name, list->name_length);
	entry->path = walk->path.text;
	entry->name = walk->name.text;
	walk_list_fini(list);
}

/* One entry: 1; 0: there is none; 2: one that is left out; -ENOMEM. */
static int walk_step(struct walk *walk, struct walk_entry *entry)
{
	struct walk_list *list = NULL;
	const char *name = "";
	int err, flags = O_NOFOLLOW;

	memset(entry, 0, sizeof(*entry));
	if (!walk->started) {
		walk->started = true;
		entry->kind = WALK_DIRECTORY;
		flags = 0;
	} else {
		if (!walk->depth)
			return 0;
		list = &walk->stack[walk->depth - 1];
		if (list->at == list->count) {
			walk_leave(walk, entry);
			return 1;
		}
		name = list->sorted[list->at++];
		if (walk_join(&walk->path, list->path_length, name) ||
			walk_join(&walk->name, list->name_length, name))
			return -ENOMEM;
		entry->kind = walk_kind_of(walk, (unsigned char)name[-1], &entry->error);
		if (entry->kind == WALK_LINK && walk->links == WALK_LINKS_FOLLOW &&
			walk_leads_to_directory(walk)) {
			entry->kind = WALK_DIRECTORY;
			flags = 0;
		}
		if (entry->kind == WALK_LINK && walk->links == WALK_LINKS_SKIP)
			return 2;
		if (walk->filter && filter_excludes(walk->filter, walk->name.text,
					    entry->kind == WALK_DIRECTORY))
			return 2;
	}
	if (entry->kind == WALK_DIRECTORY) {
		walk_close_above(walk);
		err = walk_enter(walk, entry, flags);
		if (err)
			return err;
		if (walk->alone && walk->depth)
			walk->stack[walk->depth - 1].at = walk->stack[walk->depth - 1].count;
	}
	entry->path = walk->path.text;
	entry->name = walk->name.text;
	if (walk->look && entry->kind != WALK_DIRECTORY && !entry->error) {
		entry->error = walk_look_at(walk, list, name, entry);
		if (entry->error == -ENOENT)
			return 2;
	}
	return 1;
}

int walk_next(struct walk *walk, struct walk_entry *entry)
{
	int n;

	do
		n = walk_step(walk, entry);
	while (n == 2);
	return n;
}
