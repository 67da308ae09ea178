/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing.c: what was asked to be sent, one item after another.
 *
 * Owns the list of what was added, and the walk of the directory that is being sent.  Files are
 * opened when the transfer asks for them, so only those on their way hold descriptors.
 */
#include "tree/outgoing.h"

#include "tree/beneath.h"
#include "tree/outgoing_item.h"
#include "tree/outgoing_read.h"
#include "tree/outgoing_tree.h"
#include "tree/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum outgoing_kind {
	OUTGOING_FILE,
	OUTGOING_DIRECTORY,
	OUTGOING_STREAM,
	OUTGOING_NULL,
	OUTGOING_FAILED,
};

struct outgoing_root {
	enum outgoing_kind kind;
	char *path, *name;
	int top; /* file, directory: that the path is beneath */
	const char *place;
	int fd;         /* stream: borrowed */
	uint64_t bytes; /* null */
	int error;      /* failed */
};

struct outgoing {
	struct outgoing_params params;
	struct outgoing_root *roots;
	size_t count, room, at;
	struct walk *walk;          /* of roots[at - 1] */
	struct outgoing_tree *tree; /* that it walks, or that names are selected from */
	struct selection selection;
	char *selected_from; /* NULL: nothing is selected */
	const char *selected_place;
	struct outgoing_keep keep;
	struct outgoing_links *links; /* NULL: second names are files of their own */
	uint32_t number;              /* that the item asked for will have */
	struct transfer_source source;
};

static int outgoing_next_walked(
	struct outgoing *o, const struct walk_entry *entry, struct transfer_item *item)
{
	struct outgoing_from from = {.top = o->tree->top,
		.path = entry->path,
		.direct = o->params.direct,
		.dense = o->params.dense,
		.keep = &o->keep,
		.links = o->links,
		.number = o->number};
	char *path = outgoing_tree_path(o->tree, entry->path);
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
		outgoing_item_attributes(item, &entry->st);
	}
	if (!item->error && !transfer_name_ok(item->file.name))
		item->error = -ENAMETOOLONG;
	if (item->error)
		return 0;
	switch (entry->kind) {
	case WALK_DIRECTORY:
		break;
	case WALK_LEAVE:
		/* what is wrong with it was told when it was entered */
		err = outgoing_item_keep_directory(item, &from);
		if (err)
			item->file.has |= o->keep.has ? TRANSFER_HAS_LOST : 0;
		break;
	case WALK_FILE:
		from.flags = O_NOFOLLOW;
		outgoing_item_close(item, &from, o->tree, strlen(entry->path));
		break;
	case WALK_LINK:
		if (o->params.links == WALK_LINKS_KEEP) {
			item->error = outgoing_item_read_link(item, &from);
			break;
		}
		item->error = outgoing_item_leads_to(o->tree->top, entry->path, &st);
		if (item->error == -ENXIO) {
			item->error = 0;
			item->file.kind = TRANSFER_FILE_SPECIAL;
		} else if (!item->error) {
			outgoing_item_close(item, &from, o->tree, strlen(entry->path));
		}
		break;
	case WALK_OTHER:
		item->file.kind = TRANSFER_FILE_SPECIAL;
		break;
	}
	if (err != -ENOMEM)
		return 0;
	outgoing_item_free(item->cookie);
	return err;
}

static bool outgoing_crosses(const struct walk_entry *entry)
{
	return transfer_name_ok(
		(struct wire_bytes){(const uint8_t *)entry->name, strlen(entry->name)});
}

static int outgoing_next_root(
	struct outgoing *o, const struct outgoing_root *root, struct transfer_item *item)
{
	const struct outgoing_from from = {.top = root->top,
		.path = root->path,
		.direct = o->params.direct,
		.dense = o->params.dense,
		.keep = &o->keep,
		.links = o->links,
		.number = o->number};
	int err = outgoing_item_new(root->path, root->name, item);

	if (err)
		return err;
	switch (root->kind) {
	case OUTGOING_FILE:
		outgoing_item_close(item, &from, NULL, strlen(root->path));
		break;
	case OUTGOING_STREAM:
		item->file.kind = TRANSFER_FILE_STREAM;
		item->file.size = MESSAGE_UNKNOWN;
		outgoing_item_now(item);
		item->error = end_stream_open(root->fd, false, true, &item->end);
		break;
	case OUTGOING_NULL:
		item->file.kind = TRANSFER_FILE_NULL;
		item->file.size = root->bytes;
		outgoing_item_now(item);
		item->error = end_null_open(root->bytes, &item->end);
		break;
	case OUTGOING_FAILED:
		item->error = root->error;
		break;
	case OUTGOING_DIRECTORY: /* is walked, or can not be */
		item->file.kind = TRANSFER_FILE_DIRECTORY;
		break;
	}
	return 0;
}

/* A directory on the way to what is selected: made, or left. */
static int outgoing_way(struct outgoing *o, const char *path, const char *name, bool leave,
	struct transfer_item *item)
{
	struct walk_entry entry = {
		.kind = leave ? WALK_LEAVE : WALK_DIRECTORY, .path = path, .name = name};

	entry.error = beneath_stat(o->tree->top, path, false, &entry.st);
	if (!entry.error && !S_ISDIR(entry.st.st_mode))
		entry.error = -ENOTDIR;
	return outgoing_next_walked(o, &entry, item);
}

/* A selected name: 1: the item is set; 0: it is a directory, which is walked now; -errno. */
static int outgoing_selected(
	struct outgoing *o, const char *path, const char *name, struct transfer_item *item)
{
	struct walk_entry entry = {.path = path, .name = name};
	int err;

	entry.error =
		beneath_stat(o->tree->top, path, o->params.links == WALK_LINKS_FOLLOW, &entry.st);
	if (!entry.error && S_ISDIR(entry.st.st_mode)) {
		err = walk_new(o->tree->top, path, name, o->params.links, &o->walk);
		if (!err)
			walk_set_filter(o->walk, o->params.filter);
		if (!err && !o->params.recursive)
			walk_alone(o->walk);
		return err;
	}
	entry.kind = entry.error || S_ISREG(entry.st.st_mode) ? WALK_FILE
		     : S_ISLNK(entry.st.st_mode)              ? WALK_LINK
							      : WALK_OTHER;
	err = outgoing_next_walked(o, &entry, item);
	return err ? err : 1;
}

/* The next step of the selection: 1, 0: there is none or it is walked now, -errno. */
static int outgoing_next_selected(struct outgoing *o, struct transfer_item *item)
{
	const char *name;
	enum selection_step step = selection_next(&o->selection, &name);
	char *path;
	int n;

	if (step == SELECTION_END)
		return 0;
	if (asprintf(&path, "%s%s%s", o->tree->path, *o->tree->path ? "/" : "", name) < 0)
		return -ENOMEM;
	if (step == SELECTION_NAME) {
		n = outgoing_selected(o, path, name, item);
	} else {
		n = outgoing_way(o, path, name, step == SELECTION_LEAVE, item);
		n = n ? n : 1;
	}
	free(path);
	return n;
}

static int outgoing_next_item(struct outgoing *o, struct transfer_item *item)
{
	const struct outgoing_root *root;
	struct walk_entry entry;
	int n;

	o->number = item->file.file;
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
				if (!o->selected_from) {
					outgoing_tree_give(o->tree);
					o->tree = NULL;
				}
				continue;
			}
			return n ? n : 1;
		}
		if (o->selected_from) {
			n = outgoing_next_selected(o, item);
			if (n || !o->walk)
				return n;
			continue;
		}
		if (o->at == o->count)
			return 0;
		root = &o->roots[o->at++];
		if (root->kind != OUTGOING_DIRECTORY) {
			n = outgoing_next_root(o, root, item);
			return n ? n : 1;
		}
		n = outgoing_tree_open(root->top, root->path, &o->tree);
		if (n) { /* it went away meanwhile, or there are too many open files */
			int err = outgoing_next_root(o, root, item);

			item->error = n;
			return err ? err : 1;
		}
		n = walk_new(o->tree->top, o->tree->path, root->name, o->params.links, &o->walk);
		if (n) {
			outgoing_tree_give(o->tree);
			o->tree = NULL;
			return n;
		}
		walk_set_filter(o->walk, o->params.filter);
	}
}

static int outgoing_next(void *ctx, struct transfer_item *item)
{
	struct outgoing *o = ctx;
	int n = outgoing_next_item(o, item);

	if (n == 1)
		((struct outgoing_item *)item->cookie)->place =
			o->selected_from ? o->selected_place : o->roots[o->at - 1].place;
	return n;
}

/* What is not where the item is. */
static struct outgoing_from outgoing_from(struct outgoing *o, const struct transfer_item *item)
{
	return (struct outgoing_from){.direct = o->params.direct,
		.dense = o->params.dense,
		.keep = &o->keep,
		.links = o->links,
		.number = item->file.file};
}

static int outgoing_open(void *ctx, struct transfer_item *item)
{
	struct outgoing_from from = outgoing_from(ctx, item);
	struct outgoing_item *it = item->cookie;
	int err;

	from.top = it->top;
	from.path = it->beneath;
	from.flags = it->flags;
	err = outgoing_item_open(item, &from);
	outgoing_item_leave(it);
	return err;
}

static int64_t outgoing_read(
	void *ctx, struct transfer_reading *reading, struct transfer_item *item)
{
	const struct outgoing_from from = outgoing_from(ctx, item);

	return outgoing_read_small(&from, reading, item);
}

static void outgoing_read_end(void *ctx, struct transfer_reading *reading)
{
	(void)ctx;
	outgoing_read_close(reading);
}

static int outgoing_check(void *ctx, const struct transfer_item *item)
{
	(void)ctx;
	return outgoing_item_check(item);
}

static void outgoing_done(
	void *ctx, const struct transfer_item *item, uint16_t status, const char *text)
{
	struct outgoing *o = ctx;
	struct outgoing_item *it = item->cookie;
	const bool directory = item->file.kind == TRANSFER_FILE_DIRECTORY ||
			       item->file.kind == TRANSFER_FILE_DIRECTORY_END;
	const bool stream = item->file.size == MESSAGE_UNKNOWN;
	const bool empty = status || transfer_is_bare(&item->file);
	const struct outcome outcome = {.path = it->path,
		.place = it->place,
		.name = item->file.name,
		.directory = directory,
		.special = item->file.kind == TRANSFER_FILE_SPECIAL,
		.bytes = empty    ? 0
			 : stream ? item->sent_bytes
				  : item->file.size,
		.at_sink = item->at_sink,
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
	if (params->hard_links && outgoing_links_new(&o->links)) {
		free(o);
		return -ENOMEM;
	}
	o->params = *params;
	o->keep = (struct outgoing_keep){.has = params->keep,
		.numeric = params->numeric_ids,
		.lock = PTHREAD_MUTEX_INITIALIZER};
	o->source = (struct transfer_source){.next = outgoing_next,
		.open = outgoing_open,
		.check = outgoing_check,
		.done = outgoing_done,
		.ctx = o,
		.reread = params->reread};
	/* a hard link names the number of its file, which those of a bundle do not have */
	if (params->direct != END_DIRECT_ON && !params->hard_links && !params->reread) {
		o->source.read = outgoing_read;
		o->source.read_end = outgoing_read_end;
	}
	*out = o;
	return 0;
}

void outgoing_free(struct outgoing *o)
{
	if (!o)
		return;
	walk_free(o->walk);
	outgoing_tree_give(o->tree);
	outgoing_keep_fini(&o->keep);
	outgoing_links_free(o->links);
	selection_fini(&o->selection);
	free(o->selected_from);
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
	return outgoing_add_from(o, o->params.top, NULL, path, name);
}

int outgoing_add_from(
	struct outgoing *o, int top, const char *place, const char *path, const char *name)
{
	struct outgoing_root root = {
		.path = (char *)path, .name = (char *)name, .top = top, .place = place, .fd = -1};
	struct stat st;
	int err = beneath_stat(top, path, true, &st);

	if (err)
		return err;
	if (S_ISDIR(st.st_mode)) {
		if (!o->params.recursive)
			return -EISDIR;
		root.kind = OUTGOING_DIRECTORY;
	} else if (!S_ISREG(st.st_mode)) {
		return -ENXIO;
	}
	if (o->params.filter && *name &&
		filter_excludes(o->params.filter, name, root.kind == OUTGOING_DIRECTORY))
		return 0;
	err = outgoing_add_root(o, &root);
	if (err)
		return err;
	if (root.kind == OUTGOING_DIRECTORY)
		outgoing_count(o, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN);
	else
		outgoing_count(o, 1, (uint64_t)st.st_size, (uint64_t)st.st_size);
	return 0;
}

int outgoing_add_failed(struct outgoing *o, const char *path, const char *name, int error)
{
	struct outgoing_root root = {.kind = OUTGOING_FAILED,
		.path = (char *)path,
		.name = (char *)name,
		.fd = -1,
		.error = error};
	int err = outgoing_add_root(o, &root);

	if (!err)
		outgoing_count(o, 1, 0, 0);
	return err;
}

int outgoing_add_selected(struct outgoing *o, const struct outgoing_selected *from)
{
	int err;

	o->selected_from = strdup(from->directory);
	o->selected_place = from->place;
	if (!o->selected_from)
		return -ENOMEM;
	err = outgoing_tree_open(from->top, o->selected_from, &o->tree);
	if (err)
		return err;
	o->selection = *from->selection;
	*from->selection = (struct selection){0};
	outgoing_count(o, from->files, from->bytes, from->largest_bytes);
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

/* Whether a file was counted under another name, and will be sent as a link to that. */
static bool outgoing_is_counted(struct outgoing_links *seen, const struct stat *st)
{
	struct outgoing_first first;

	if (!seen || st->st_nlink < 2 ||
		outgoing_links_meet(seen, st, 0, (struct wire_bytes){NULL, 0}, &first) != 1)
		return false;
	free(first.name);
	return true;
}

/* Adds one tree up.  `seen`: NULL: each name is a file of its own.  -ENOMEM. */
static int outgoing_measure_tree(
	struct outgoing *o, const struct outgoing_root *root, struct outgoing_links *seen)
{
	struct parent parent = {0};
	struct outgoing_tree *tree;
	struct walk_entry entry;
	struct walk *walk;
	struct stat st;
	int n = outgoing_tree_open(root->top, root->path, &tree);

	if (n)
		return n;
	n = walk_new(tree->top, tree->path, root->name, o->params.links, &walk);
	if (n) {
		outgoing_tree_give(tree);
		return n;
	}
	walk_set_filter(walk, o->params.filter);
	while ((n = walk_next(walk, &entry)) > 0) {
		uint64_t size = 0;

		if (entry.kind == WALK_LEAVE)
			continue;
		if (!entry.error &&
			((entry.kind == WALK_FILE &&
				 !outgoing_stat(&parent, tree->top, entry.path, &st)) ||
				(entry.kind == WALK_LINK && o->params.links != WALK_LINKS_KEEP &&
					!outgoing_item_leads_to(tree->top, entry.path, &st))))
			size = outgoing_is_counted(seen, &st) ? 0 : (uint64_t)st.st_size;
		outgoing_count(
			o, entry.kind != WALK_DIRECTORY && entry.kind != WALK_OTHER, size, size);
		if (o->params.measured)
			o->params.measured(
				o->params.ctx, o->source.total_files, o->source.total_bytes);
	}
	parent_fini(&parent);
	walk_free(walk);
	outgoing_tree_give(tree);
	return n;
}

void outgoing_measure(struct outgoing *o)
{
	struct outgoing_links *seen = NULL;
	struct stat st;

	if (o->selected_from)
		return; /* whoever selected knows */
	/* without memory for it the hints are too large */
	if (o->links)
		(void)outgoing_links_new(&seen);
	o->source.total_files = o->source.total_bytes = o->source.largest_bytes = 0;
	for (size_t i = 0; i < o->count; i++) {
		const struct outgoing_root *root = &o->roots[i];
		uint64_t size = root->bytes;

		if (root->kind == OUTGOING_DIRECTORY) {
			if (outgoing_measure_tree(o, root, seen))
				outgoing_count(
					o, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN);
			continue;
		}
		if (root->kind == OUTGOING_STREAM)
			size = MESSAGE_UNKNOWN;
		else if (root->kind == OUTGOING_FILE)
			size = outgoing_item_leads_to(root->top, root->path, &st)
				       ? 0
				       : (uint64_t)st.st_size;
		outgoing_count(o, 1, size, size);
	}
	outgoing_links_free(seen);
}

const struct transfer_source *outgoing_source(struct outgoing *o)
{
	return &o->source;
}
