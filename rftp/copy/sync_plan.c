/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_plan.c: see sync_plan.h.
 */
#include "rftp/copy/sync_plan.h"

#include "rftp/copy/rules.h"
#include "rftp/shell/interrupt.h"
#include "session/calls_tree.h"
#include "tree/beneath.h"
#include "tree/traits.h"
#include "tree/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct wire_bytes bytes_of(const char *text)
{
	return (struct wire_bytes){(const uint8_t *)text, strlen(text)};
}

/* What else counts, in bits of a TREE. */
static uint32_t asked_beside(const struct settings *s)
{
	const bool owners = s->owner || s->group;

	if (!compare_is_judged(s->compare))
		return 0;
	return (owners ? MESSAGE_TREE_OWNERS : 0) | (s->xattrs ? MESSAGE_TREE_XATTRS : 0) |
	       (s->acls ? MESSAGE_TREE_ACLS : 0) |
	       (s->numeric_ids && (owners || s->acls) ? MESSAGE_TREE_NUMERIC : 0) |
	       (s->hard_links ? MESSAGE_TREE_INODES : 0) |
	       /* of files that are found to be the same whatever their times are */
	       (s->compare == COMPARE_DIGEST || s->detect_renames ? MESSAGE_TREE_CHANGES : 0);
}

/* Where a local directory is listed from. */
struct walked {
	struct compare_list *list;
	int top;
	bool follow;
	struct traits *traits;
};

static int add_walked(const struct walked *where, const struct walk_entry *w)
{
	static const uint8_t types[] = {[WALK_DIRECTORY] = MESSAGE_DIRECTORY,
		[WALK_FILE] = MESSAGE_FILE,
		[WALK_LINK] = MESSAGE_SYMLINK,
		[WALK_OTHER] = MESSAGE_OTHER};
	char target[MESSAGE_TREE_TARGET_MAX + 1];
	struct message_tree_entry e = {
		.name = bytes_of(w->name),
		.status = w->error ? status_from_errno(w->error) : STATUS_OK,
		.attr = {.type = types[w->kind],
			.mode = w->st.st_mode & 07777,
			.uid = w->st.st_uid,
			.gid = w->st.st_gid,
			.size = (uint64_t)w->st.st_size,
			.mtime_s = w->st.st_mtim.tv_sec,
			.mtime_ns = (uint32_t)w->st.st_mtim.tv_nsec},
	};
	int err;

	/* a link that is followed is what it leads to */
	if (w->kind == WALK_LINK && !w->error && !S_ISLNK(w->st.st_mode))
		e.attr.type = S_ISREG(w->st.st_mode) ? MESSAGE_FILE : MESSAGE_OTHER;
	e.attr.holes =
		e.attr.type == MESSAGE_FILE && !w->error && w->st.st_blocks * 512 < w->st.st_size;
	if (e.attr.type == MESSAGE_SYMLINK && !w->error) {
		if (beneath_read_link(where->top, w->path, target, sizeof target) > 0)
			e.target = bytes_of(target);
		else
			e.status = STATUS_IO;
	}
	if (traits_look(where->traits,
		    &(struct traits_name){.top = where->top,
			    .path = w->path,
			    .follow = where->follow || !*w->name,
			    .st = &w->st},
		    &e))
		return -ENOMEM;
	err = compare_list_add(where->list, &e);
	if (!err && *w->name && e.attr.holes) /* here it is known how much */
		where->list->entries[where->list->count - 1].disk = (uint64_t)w->st.st_blocks * 512;
	return err;
}

int sync_plan_walk_local(const struct sync_plan_walk *w)
{
	struct walked where = {.list = w->list,
		.top = open(w->directory, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.follow = w->settings->links == WALK_LINKS_FOLLOW};
	struct walk_entry entry;
	struct walk *walk;
	int n;

	if (where.top < 0)
		return -errno;
	n = traits_new(asked_beside(w->settings), &where.traits);
	if (!n)
		n = walk_new(where.top, "", "", w->settings->links, &walk);
	if (n)
		goto err_top;
	walk_set_filter(walk, w->filter);
	walk_look(walk);
	while ((n = walk_next(walk, &entry)) > 0) {
		if (entry.kind == WALK_LEAVE)
			continue;
		n = *entry.name || !entry.error ? add_walked(&where, &entry) : entry.error;
		if (!n)
			n = w->listed(w->ctx, w->list->count);
		if (n)
			break;
	}
	walk_free(walk);
err_top:
	traits_free(where.traits);
	close(where.top);
	return n;
}

static int show_listed(void *ctx, size_t count)
{
	struct client *c = ctx;

	report_scan(&c->report, count, MESSAGE_UNKNOWN);
	return 0;
}

int sync_plan_list_local(struct client *c, const char *directory, const struct filter *filter,
	struct compare_list *list)
{
	return sync_plan_walk_local(&(struct sync_plan_walk){.settings = &c->settings,
		.directory = directory,
		.filter = filter,
		.list = list,
		.listed = show_listed,
		.ctx = c});
}

struct told {
	struct client *client;
	struct compare_list *list;
	bool stray; /* the last of them has no place */
};

/* Whether the last of them is in a directory that was told before.  In anything else it would have
 * no place here, and be left out without a word. */
static bool has_place(const struct compare_list *list)
{
	const char *name = list->entries[list->count - 1].name, *slash = strrchr(name, '/');
	const char *before = list->count > 1 ? list->entries[list->count - 2].name : "";
	const size_t len = slash ? (size_t)(slash - name) : 0;
	const struct compare_entry *e;
	char *parent;

	/* the one before is most often in the same, and was looked at */
	if (!slash || (!strncmp(before, name, len + 1) && !strchr(before + len + 1, '/')))
		return true;
	parent = strndup(name, len);
	e = parent ? compare_list_find(list, parent) : NULL;
	free(parent);
	return e && e->type == MESSAGE_DIRECTORY;
}

static int add_told(void *ctx, const struct message_tree_entry *entry)
{
	struct told *told = ctx;
	int err;

	report_scan(&told->client->report, told->list->count, MESSAGE_UNKNOWN);
	err = compare_list_add(told->list, entry);
	told->stray = !err && entry->name.len && !has_place(told->list);
	if (told->stray)
		return -EPROTO;
	/* a server that sends without end is never waited for */
	return !err && interrupt_signal() ? -ECANCELED : err;
}

int sync_plan_list_remote(struct client *c, const char *directory, const struct filter *filter,
	struct compare_list *list)
{
	struct message_data_request rules = {.kind = 0};
	struct told told = {.client = c, .list = list};
	struct message_tree request = {
		.flags = MESSAGE_TREE_TOP | asked_beside(&c->settings) |
			 (c->settings.links == WALK_LINKS_FOLLOW        ? MESSAGE_TREE_FOLLOW_LINKS
				 : c->settings.links == WALK_LINKS_SKIP ? MESSAGE_TREE_SKIP_LINKS
									: 0),
		.path = bytes_of(directory),
	};
	uint8_t *memory;
	int err = rules_request(c, filter, &rules, &memory);

	if (err)
		return err;
	request.rule_count = rules.rule_count;
	request.rules = rules.rules;
	err = calls_tree(c->session, &request, add_told, &told);
	free(memory);
	if (err == -EPROTO && told.stray)
		report_errorf(&c->report, err, directory,
			"the server lists %s, which is in no directory",
			list->entries[list->count - 1].name);
	else if (err == -EPROTO && !calls_lost(c->session))
		report_error(&c->report, EXIT_CODE_OK, STATUS_PROTOCOL, directory,
			"the server lists names out of order");
	else if (err == -ENOMEM)
		client_no_memory(c);
	else if (err && err != -ENOENT)
		client_report(c, directory, err);
	return err;
}

void sync_plan_tell_failed(struct client *c, const struct compare_list *list, const char *directory)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct compare_entry *e = &list->entries[i];
		struct text path = {0}, why = {0};

		if (!e->failed)
			continue;
		text_printf(&path, "%s%s%s", directory,
			*directory && directory[strlen(directory) - 1] == '/' ? "" : "/", e->name);
		text_printf(&why, "%s, so nothing is removed", status_text(e->failed));
		report_error(&c->report, EXIT_CODE_OK, e->failed, text_str(&path), text_str(&why));
		text_fini(&why);
		text_fini(&path);
	}
}
