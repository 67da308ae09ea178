/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/leftovers: see leftovers.h.
 */
#include "tree/leftovers.h"

#include "base/clock.h"
#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/journal.h"
#include "tree/leftover.h"
#include "tree/space.h"
#include "tree/temporary.h"
#include "tree/tree_mark.h"
#include "tree/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct leftovers {
	struct leftovers_params params; /* without its path */
	struct walk *walk;
};

int leftovers_new(const struct leftovers_params *params, struct leftovers **out)
{
	struct leftovers *l;
	struct stat st;
	int err = beneath_stat(params->top, params->path, true, &st);

	if (!err && !S_ISDIR(st.st_mode))
		err = -ENOTDIR;
	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->params = *params;
	l->params.path = NULL;
	err = walk_new(params->top, params->path, "", WALK_LINKS_KEEP, &l->walk);
	if (err) {
		free(l);
		return err;
	}
	walk_hidden(l->walk);
	*out = l;
	return 0;
}

void leftovers_free(struct leftovers *l)
{
	if (!l)
		return;
	walk_free(l->walk);
	free(l);
}

/* What is wanted is done: what came of it. */
static void leftovers_settle(
	const struct leftovers *l, struct leftovers_item *item, int err, bool was_removed)
{
	const struct space_item before = {.bytes = item->disk_bytes};

	if (err == -EBUSY) {
		item->state = LEFTOVERS_BUSY;
	} else if (err == -EAGAIN) {
		item->state = was_removed ? LEFTOVERS_IDLE : LEFTOVERS_UNSURE;
	} else if (err) {
		item->state = LEFTOVERS_UNSURE;
		item->error = err;
	} else if (was_removed) {
		item->state = LEFTOVERS_REMOVED;
		space_change(l->params.space, &before, &(struct space_item){0});
	} else {
		item->state = LEFTOVERS_IDLE;
	}
}

static bool leftovers_is_old(const struct leftovers *l, int64_t changed_s)
{
	time_t now = time(NULL);

	return !l->params.age_s ||
	       (now >= changed_s && (uint64_t)(now - changed_s) >= l->params.age_s);
}

/* A journal with its partial file, or one of them alone.  -ENOENT: it has gone, or is told of
 * otherwise. */
static int leftovers_journal(
	const struct leftovers *l, int dir, const char *name, struct leftovers_item *item)
{
	char other[JOURNAL_PATH_BYTES];
	struct leftover found = {0};
	uint64_t freed_bytes;
	struct stat st;
	int err;

	journal_other_name(name, other);
	if (!journal_is_name(name, true)) {
		if (opener_fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
			return -errno;
		/* with a journal it was told of with that */
		if (!opener_fstatat(dir, other, &(struct stat){0}, AT_SYMLINK_NOFOLLOW))
			return -ENOENT;
		item->kind = LEFTOVERS_PART;
		item->changed_s = st.st_mtim.tv_sec;
		item->disk_bytes = space_disk_bytes(&st);
		err = 0;
	} else {
		err = leftover_get(dir, name, &found);
		if (err == -ENOENT)
			return err;
		item->kind = err ? LEFTOVERS_PART : LEFTOVERS_FILE;
		item->changed_s = found.changed_s;
		item->disk_bytes = found.partial_bytes;
		item->size_bytes = err ? 0 : found.size;
		item->verified_bytes = err ? 0 : found.noted_bytes;
		memcpy(item->name, found.name, sizeof(item->name));
		err = found.busy ? -EBUSY : err == -ENODATA ? 0 : err;
	}
	if (err || !l->params.remove || !leftovers_is_old(l, item->changed_s)) {
		leftovers_settle(l, item, err, false);
		return 0;
	}
	/* it judges the age once more, when nobody can write to it */
	err = leftover_sweep(dir, name, l->params.age_s, &freed_bytes);
	leftovers_settle(l, item, err, true);
	return 0;
}

static int leftovers_mark(
	const struct leftovers *l, int dir, const char *name, struct leftovers_item *item)
{
	bool busy = false;
	int err = tree_mark_get(dir, name, item->name, &item->changed_s, &busy);

	if (err == -ENOENT)
		return err;
	item->kind = LEFTOVERS_TREE;
	err = busy ? -EBUSY : err == -ENODATA ? 0 : err;
	if (err || !l->params.remove || !leftovers_is_old(l, item->changed_s))
		leftovers_settle(l, item, err, false);
	else
		leftovers_settle(l, item, tree_mark_sweep(dir, name, l->params.age_s), true);
	return 0;
}

static int leftovers_part(
	const struct leftovers *l, int dir, const char *name, struct leftovers_item *item)
{
	struct stat st = {0};
	int err = temporary_check(dir, name, false, &st);

	if (err == -ENOENT)
		return err;
	item->kind = LEFTOVERS_PART;
	item->changed_s = st.st_mtim.tv_sec;
	item->disk_bytes = space_disk_bytes(&st);
	if (err || !l->params.remove || !leftovers_is_old(l, item->changed_s)) {
		leftovers_settle(l, item, err, false);
		return 0;
	}
	err = temporary_check(dir, name, true, &st);
	if (err == -EAGAIN)
		leftovers_settle(l, item, err, false);
	else
		leftovers_settle(l, item, err, true);
	return 0;
}

static int leftovers_named(
	const struct leftovers *l, int dir, const char *name, struct leftovers_item *item)
{
	if (tree_mark_is_name(name))
		return leftovers_mark(l, dir, name, item);
	if (leftover_is_name(name))
		return leftovers_journal(l, dir, name, item);
	return leftovers_part(l, dir, name, item);
}

/* 1; 0: it is none, or has gone. */
static int leftovers_look(
	const struct leftovers *l, const struct walk_entry *entry, struct leftovers_item *item)
{
	const char *slash = strrchr(entry->name, '/'), *name = slash ? slash + 1 : entry->name;
	int dir = -1, err = entry->error;
	char last[256];

	if (!temporary_is_hidden(name) ||
		(!err && entry->kind != WALK_FILE && entry->kind != WALK_LINK))
		return 0;
	item->path = entry->name;
	if (!err) {
		dir = beneath_open_parent(l->params.top, entry->path, last);
		err = dir < 0 ? dir : leftovers_named(l, dir, name, item);
	}
	if (dir >= 0)
		close(dir);
	if (err == -ENOENT)
		return 0;
	if (err) { /* whatever it is, it is there */
		item->kind = LEFTOVERS_PART;
		item->state = LEFTOVERS_UNSURE;
		item->error = err;
	}
	return 1;
}

int leftovers_next(struct leftovers *l, uint64_t until_ns, struct leftovers_item *item)
{
	struct walk_entry entry;

	while (clock_now_ns() < until_ns) {
		int n = walk_next(l->walk, &entry);

		if (n <= 0)
			return n;
		*item = (struct leftovers_item){.path = entry.name};
		if (entry.kind == WALK_DIRECTORY && entry.error) {
			if (!*entry.name)
				return entry.error;
			if (entry.error == -ENOENT)
				continue;
			item->kind = LEFTOVERS_DIRECTORY;
			item->state = LEFTOVERS_UNSURE;
			item->error = entry.error;
			return 1;
		}
		if (leftovers_look(l, &entry, item))
			return 1;
	}
	return -EAGAIN;
}
