/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_next.c: which item is the next one: of what was added one after another, of the
 * directory that is being walked, or of what is selected from one.
 *
 * Files are opened when the transfer asks for them, so only those on their way hold descriptors.
 */
#include "tree/outgoing_impl.h"

#include "tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int outgoing_next_walked(
	struct outgoing *o, const struct walk_entry *entry, struct transfer_item *item)
{
	struct outgoing_from from = outgoing_from(o, o->number);
	char *path = outgoing_tree_path(o->tree, entry->path);
	struct stat st;
	int err;

	if (!path)
		return -ENOMEM;
	from.top = o->tree->top;
	from.path = entry->path;
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
	struct outgoing_from from = outgoing_from(o, o->number);
	int err = outgoing_item_new(root->path, root->name, item);

	if (err)
		return err;
	from.top = root->top;
	from.path = root->path;
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
	case OUTGOING_DIRECTORY: /* is walked, or cannot be */
		item->file.kind = TRANSFER_FILE_DIRECTORY;
		break;
	}
	return 0;
}

/* A selected file that is at the other side already. */
static int outgoing_next_attributes(
	struct outgoing *o, const char *path, const char *name, struct transfer_item *item)
{
	struct outgoing_from from = outgoing_from(o, o->number);
	char *whole = outgoing_tree_path(o->tree, path);
	int err;

	if (!whole)
		return -ENOMEM;
	err = outgoing_item_new(whole, name, item);
	free(whole);
	if (err)
		return err;
	from.top = o->tree->top;
	from.path = path;
	from.flags = o->params.links == WALK_LINKS_FOLLOW ? 0 : O_NOFOLLOW;
	from.listed = o->params.listed;
	from.listed_there = o->params.listed_there;
	if (!transfer_name_ok(item->file.name))
		item->error = -ENAMETOOLONG;
	else
		item->error = outgoing_item_read_attributes(item, &from);
	return 0;
}

/* A directory on the way to what is selected: made, or left. */
static int outgoing_way(struct outgoing *o, const char *path, const char *name, bool leave,
	struct transfer_item *item)
{
	struct walk_entry entry = {
		.kind = leave ? WALK_LEAVE : WALK_DIRECTORY, .path = path, .name = name};

	entry.error =
		beneath_stat(o->tree->top, path, o->params.links == WALK_LINKS_FOLLOW, &entry.st);
	if (!entry.error && o->params.attributes && !leave && S_ISREG(entry.st.st_mode) &&
		selection_is_last(&o->selection)) {
		o->entered_file = true;
		return outgoing_next_attributes(o, path, name, item);
	}
	if (!entry.error && !S_ISDIR(entry.st.st_mode))
		entry.error = -ENOTDIR;
	if (entry.error && !leave && !o->lost_len)
		o->lost_len = strlen(name);
	return outgoing_next_walked(o, &entry, item);
}

/* The next step: what was not entered is not left, since that it cannot be was told. */
static enum selection_step outgoing_step(struct outgoing *o, const char **name)
{
	enum selection_step step = selection_next(&o->selection, name);

	if (step == SELECTION_LEAVE && o->entered_file)
		step = selection_next(&o->selection, name);
	o->entered_file = false;
	while (step == SELECTION_LEAVE && o->lost_len && strlen(*name) >= o->lost_len) {
		if (strlen(*name) == o->lost_len)
			o->lost_len = 0;
		step = selection_next(&o->selection, name);
	}
	return step;
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
	/* it may be called so by a link, which is followed */
	if (!entry.error && entry.kind == WALK_FILE && o->params.links == WALK_LINKS_FOLLOW)
		entry.kind = WALK_LINK;
	err = outgoing_next_walked(o, &entry, item);
	return err ? err : 1;
}

/* The directory that names were selected from: 1 or -errno. */
static int outgoing_itself(struct outgoing *o, struct transfer_item *item)
{
	struct walk_entry entry = {.kind = WALK_LEAVE, .path = o->tree->path, .name = ""};
	int err;

	o->selected_itself = false;
	entry.error = beneath_stat(o->tree->top, o->tree->path, true, &entry.st);
	err = outgoing_next_walked(o, &entry, item);
	return err ? err : 1;
}

/* The next step of the selection: 1, 0: there is none or it is walked now, -errno. */
static int outgoing_next_selected(struct outgoing *o, struct transfer_item *item)
{
	const char *name;
	enum selection_step step = outgoing_step(o, &name);
	char *path;
	int n;

	if (step == SELECTION_END)
		return o->selected_itself ? outgoing_itself(o, item) : 0;
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

int outgoing_next(void *ctx, struct transfer_item *item)
{
	struct outgoing *o = ctx;
	int n = outgoing_next_item(o, item);

	if (n == 1)
		((struct outgoing_item *)item->cookie)->place =
			o->selected_from ? o->selected_place : o->roots[o->at - 1].place;
	return n;
}
