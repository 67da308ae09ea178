/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing.c: what was asked to be sent, and how large it is.
 *
 * Owns the list of what was added, and the walk of the directory that is being sent, in which
 * tree/outgoing_next.c goes on.
 */
#include "tree/outgoing_impl.h"

#include "tree/beneath.h"
#include "tree/outgoing_read.h"
#include "tree/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct outgoing_from outgoing_from(struct outgoing *o, uint32_t number)
{
	return (struct outgoing_from){.direct = o->params.direct,
		.dense = o->params.dense,
		.keep = &o->keep,
		.links = o->links,
		.number = number};
}

static int outgoing_open(void *ctx, struct transfer_item *item)
{
	struct outgoing_from from = outgoing_from(ctx, item->file.file);
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
	const struct outgoing_from from = outgoing_from(ctx, item->file.file);

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
		.attributes = item->file.kind == TRANSFER_FILE_ATTRIBUTES,
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

/* How much of a disk a file's bytes take at least: all but its holes. */
static uint64_t outgoing_on_disk(const struct outgoing *o, const struct stat *st)
{
	const uint64_t disk = space_disk_bytes(st), size = (uint64_t)st->st_size;

	return o->params.dense || disk > size ? size : disk;
}

/* Adds to the hints: so many names, so many bytes in all, the largest of them, those that a disk
 * has to have room for. */
static void outgoing_count(
	struct outgoing *o, uint64_t files, uint64_t bytes, uint64_t largest, uint64_t disk)
{
	outgoing_total(&o->source.total_files, files);
	outgoing_total(&o->source.total_bytes, bytes);
	outgoing_total(&o->source.room.bytes, disk);
	if (largest > o->source.largest_bytes) /* MESSAGE_UNKNOWN is the largest number */
		o->source.largest_bytes = largest;
}

/* One file. */
static void outgoing_count_file(struct outgoing *o, const struct stat *st)
{
	outgoing_count(o, 1, (uint64_t)st->st_size, (uint64_t)st->st_size, outgoing_on_disk(o, st));
}

static void outgoing_count_unknown(struct outgoing *o, uint64_t files)
{
	outgoing_count(o, files, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN, MESSAGE_UNKNOWN);
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
		outgoing_count_unknown(o, MESSAGE_UNKNOWN);
	else
		outgoing_count_file(o, &st);
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
		outgoing_count(o, 1, 0, 0, 0);
	return err;
}

int outgoing_add_selected(struct outgoing *o, const struct outgoing_selected *from)
{
	int err;

	o->selected_from = strdup(from->directory);
	o->selected_place = from->place;
	o->selected_itself = from->itself;
	if (!o->selected_from)
		return -ENOMEM;
	err = outgoing_tree_open(from->top, o->selected_from, &o->tree);
	if (err)
		return err;
	o->selection = *from->selection;
	*from->selection = (struct selection){0};
	outgoing_count(o, from->files, from->bytes, from->largest_bytes, from->disk_bytes);
	o->source.room.net = from->net;
	return 0;
}

int outgoing_add_stream(struct outgoing *o, int fd, const char *name)
{
	struct outgoing_root root = {
		.kind = OUTGOING_STREAM, .path = "-", .name = (char *)name, .fd = fd};
	int err = outgoing_add_root(o, &root);

	if (!err)
		outgoing_count_unknown(o, 1);
	return err;
}

int outgoing_add_null(struct outgoing *o, uint64_t bytes)
{
	struct outgoing_root root = {
		.kind = OUTGOING_NULL, .path = "", .name = "", .fd = -1, .bytes = bytes};
	int err = outgoing_add_root(o, &root);

	if (!err)
		outgoing_count(o, 1, bytes, bytes, 0);
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
		uint64_t size = 0, disk = 0;

		if (entry.kind == WALK_LEAVE)
			continue;
		if (!entry.error &&
			((entry.kind == WALK_FILE &&
				 !outgoing_stat(&parent, tree->top, entry.path, &st)) ||
				(entry.kind == WALK_LINK && o->params.links != WALK_LINKS_KEEP &&
					!outgoing_item_leads_to(tree->top, entry.path, &st))))
			size = outgoing_is_counted(seen, &st) ? 0 : (uint64_t)st.st_size;
		if (size)
			disk = outgoing_on_disk(o, &st);
		outgoing_count(o, entry.kind != WALK_DIRECTORY && entry.kind != WALK_OTHER, size,
			size, disk);
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
	o->source.room.bytes = 0;
	for (size_t i = 0; i < o->count; i++) {
		const struct outgoing_root *root = &o->roots[i];

		if (root->kind == OUTGOING_DIRECTORY) {
			if (outgoing_measure_tree(o, root, seen))
				outgoing_count_unknown(o, MESSAGE_UNKNOWN);
		} else if (root->kind == OUTGOING_STREAM) {
			outgoing_count_unknown(o, 1);
		} else if (root->kind != OUTGOING_FILE) {
			outgoing_count(o, 1, root->bytes, root->bytes, 0);
		} else if (outgoing_item_leads_to(root->top, root->path, &st)) {
			outgoing_count(o, 1, 0, 0, 0);
		} else {
			outgoing_count_file(o, &st);
		}
	}
	outgoing_links_free(seen);
}

/* The names that all is in, where there are few, and none is the destination itself. */
static void outgoing_list_roots(struct outgoing *o)
{
	struct wire_bytes *roots = &o->source.room.roots;
	size_t used = 0;

	*roots = (struct wire_bytes){0};
	for (size_t i = 0; i < o->count; i++) {
		const char *name = o->roots[i].name;

		if (!*name || message_add_path(o->root_list, sizeof o->root_list, &used,
				      (struct wire_bytes){(const uint8_t *)name, strlen(name)}))
			return;
	}
	*roots = (struct wire_bytes){o->root_list, used};
}

const struct transfer_source *outgoing_source(struct outgoing *o)
{
	outgoing_list_roots(o);
	return &o->source;
}
