/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_tree: TREE.
 */
#include "base/clock.h"
#include "proto/message_tree.h"
#include "proto/status.h"
#include "proto/transfer.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/listing.h"
#include "tree/beneath.h"
#include "tree/traits.h"
#include "tree/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TREE_FRAME_NS UINT64_C(200000000) /* then a frame leaves though it is not full */

struct tree {
	struct listing listing; /* first */
	uint32_t flags;
	struct filter filter;
	struct walk *walk;
	struct traits *traits; /* NULL: none are asked for */
	int top;               /* that it walks beneath; the place's */
	/* an entry that did not fit the last frame */
	bool has_entry;
	struct walk_entry entry;
	char target[MESSAGE_TREE_TARGET_MAX + 1];
	struct message_tree_writer writer;
};

static void tree_free(struct listing *listing)
{
	struct tree *t = (struct tree *)listing;

	walk_free(t->walk);
	traits_free(t->traits);
	filter_fini(&t->filter);
	free(t);
}

static int tree_open(struct tree *t)
{
	const enum walk_links links = t->flags & MESSAGE_TREE_FOLLOW_LINKS ? WALK_LINKS_FOLLOW
				      : t->flags & MESSAGE_TREE_SKIP_LINKS ? WALK_LINKS_SKIP
									   : WALK_LINKS_KEEP;
	struct stat st;
	int top = -1;
	int err = t->listing.found == VIEW_TOP ? -EOPNOTSUPP
					       : place_top(t->listing.place, PLACE_LIST, &top);

	if (!err)
		err = beneath_stat(top, t->listing.beneath, true, &st);
	if (!err && !S_ISDIR(st.st_mode))
		err = -ENOTDIR;
	if (!err)
		err = traits_new(t->flags, &t->traits);
	if (!err)
		err = walk_new(top, t->listing.beneath, "", links, &t->walk);
	if (err)
		return err;
	walk_set_filter(t->walk, &t->filter);
	walk_look(t->walk);
	t->top = top;
	return 0;
}

/* The next entry that has a name to tell of: 1; 0: there is none; -errno. */
static int tree_next(struct tree *t)
{
	for (;;) {
		int n = walk_next(t->walk, &t->entry);

		if (n <= 0)
			return n;
		if (!*t->entry.name) { /* the directory itself */
			if (t->entry.kind == WALK_LEAVE)
				continue;
			if (t->entry.error)
				return t->entry.error;
			if (t->flags & MESSAGE_TREE_TOP)
				return 1;
			continue;
		}
		if (t->entry.kind != WALK_LEAVE &&
			transfer_name_ok((struct wire_bytes){
				(const uint8_t *)t->entry.name, strlen(t->entry.name)}))
			return 1;
	}
}

/* The writer's error; or -ENOMEM. */
static int tree_add(struct tree *t)
{
	struct walk_entry *e = &t->entry;
	struct message_tree_entry entry = {
		.name = {(const uint8_t *)e->name, strlen(e->name)},
		.status = e->error ? status_from_errno(e->error) : STATUS_OK,
		.attr = {.type = e->kind == WALK_DIRECTORY ? MESSAGE_DIRECTORY
				 : e->kind == WALK_FILE    ? MESSAGE_FILE
				 : e->kind == WALK_LINK    ? MESSAGE_SYMLINK
							   : MESSAGE_OTHER},
	};

	if (!e->error) {
		const struct traits_name name = {.top = t->top,
			.path = e->path,
			.follow = t->flags & MESSAGE_TREE_FOLLOW_LINKS || !*e->name,
			.st = &e->st};

		handle_attr(&entry.attr, &e->st);
		if (traits_look(t->traits, &name, &entry))
			return -ENOMEM;
		if (entry.attr.type == MESSAGE_SYMLINK) {
			ssize_t n = beneath_read_link(t->top, e->path, t->target, sizeof t->target);

			if (n > 0) {
				entry.target =
					(struct wire_bytes){(const uint8_t *)t->target, (size_t)n};
			} else {
				entry.status = status_from_errno(n ? (int)n : -EINVAL);
				entry.has = 0;
				entry.user = entry.group = (struct wire_bytes){0};
			}
		}
	}
	return message_tree_add(&t->writer, &entry);
}

static void tree_fill(struct listing *listing)
{
	struct tree *t = (struct tree *)listing;
	const uint64_t until_ns = clock_now_ns() + TREE_FRAME_NS;
	int n = t->walk ? 1 : tree_open(t);

	if (n < 0) {
		listing->result = n;
		return;
	}
	message_tree_begin(&t->writer, listing->frame, sizeof listing->frame);
	for (;;) {
		int err;

		if (!t->has_entry) {
			n = tree_next(t);
			if (n != 1)
				break;
			t->has_entry = true;
		}
		err = tree_add(t);
		if (err == -ENOMEM) {
			listing->result = err;
			return;
		}
		if (err == -EMSGSIZE && t->writer.list.count)
			break;
		t->has_entry = false;
		if (clock_now_ns() > until_ns)
			break;
	}
	listing->result = n;
	listing->frame_bytes = message_tree_end(&t->writer, n == 1);
}

static const struct listing_ops tree_ops = {
	.type = MESSAGE_TREE, .fill = tree_fill, .free = tree_free};

int handle_tree(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_tree m;
	struct tree *t;
	int err = message_get_tree(&m, data, len);

	if (err)
		return err;
	t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->flags = m.flags;
	handle_path(t->listing.path, m.path);
	err = handle_rules(&t->filter, m.rules);
	if (!err)
		return listing_start(s, &t->listing, &tree_ops);
	tree_free(&t->listing);
	return handle_refuse_path(s, MESSAGE_TREE, err, "the rules");
}
