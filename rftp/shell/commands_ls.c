/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_ls.c: the command ls: which names it lists, in what order and under which
 * titles.  How a name looks is ui/listing's, how directories come shell/ls_walk's.
 */
#include "rftp/shell/commands_impl.h"

#include "rftp/remote/remote_path.h"
#include "rftp/shell/ls_walk.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	LS_SINGLE = 1,
	LS_ALL = 2,
	LS_DETAILS = 4,
	LS_HUMAN = 8,
	LS_RECURSIVE = 16,
	LS_TIME = 32,
	LS_SIZE = 64
};

static struct listing_params ls_params(unsigned mask, const char *directory)
{
	return (struct listing_params){
		.single = mask & LS_SINGLE,
		.all = mask & LS_ALL,
		.details = mask & LS_DETAILS,
		.human = mask & LS_HUMAN,
		.directory = directory,
	};
}

/* Names at the server, and how each is shown. */
struct ls_names {
	struct names paths, shown;
};

static int ls_by_time(const void *a, const void *b)
{
	const struct calls_entry *x = a, *y = b;

	if (x->attr.mtime_s != y->attr.mtime_s)
		return x->attr.mtime_s < y->attr.mtime_s ? 1 : -1;
	if (x->attr.mtime_ns != y->attr.mtime_ns)
		return x->attr.mtime_ns < y->attr.mtime_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int ls_by_size(const void *a, const void *b)
{
	const struct calls_entry *x = a, *y = b;

	if (x->attr.size != y->attr.size)
		return x->attr.size < y->attr.size ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* They come sorted by name. */
static void ls_sort(struct calls_list *list, unsigned mask)
{
	if (list->count && mask & (LS_TIME | LS_SIZE))
		qsort(list->entries, list->count, sizeof *list->entries,
			mask & LS_TIME ? ls_by_time : ls_by_size);
}

struct ls_told {
	struct client *client;
	unsigned mask;
	bool any; /* something was told before: an empty line stands between */
};

static void ls_sort_told(void *ctx, struct calls_list *list)
{
	ls_sort(list, ((const struct ls_told *)ctx)->mask);
}

static void ls_tell(void *ctx, const char *path, const char *title, const struct calls_list *list)
{
	struct ls_told *t = ctx;
	struct report *r = &t->client->report;
	const struct listing_params params = ls_params(t->mask, path);
	struct text head = {0};

	if (title && !report_json(r)) {
		text_puts(&head, t->any ? "\n" : "");
		escape_display(&head, title, strlen(title));
		text_puts(&head, ":\n");
		report_write(r, text_str(&head), head.len);
		text_fini(&head);
	}
	t->any = true;
	listing_print(r, &params, list);
}

static struct ls_walk *ls_walk_of(struct ls_told *t)
{
	return ls_walk_new(t->client, &(struct ls_walk_params){
					      .recursive = t->mask & LS_RECURSIVE,
					      .hidden = t->mask & LS_ALL,
					      .sort = ls_sort_told,
					      .tell = ls_tell,
					      .ctx = t,
				      });
}

/* What is in the one directory. */
static int ls_here(struct client *c, unsigned mask)
{
	struct ls_told told = {.client = c, .mask = mask};
	struct ls_walk *walk = ls_walk_of(&told);
	int err = walk ? ls_walk_add(walk, c->cwd, mask & LS_RECURSIVE ? c->cwd : NULL) : -ENOMEM;

	if (!err)
		err = ls_walk_run(walk);
	ls_walk_free(walk);
	return err;
}

struct ls_look {
	struct client *client;
	const struct ls_names *names;
	struct calls_entry *entries; /* without a name: it failed, and that was reported */
	int err;                     /* the first */
};

static const char *ls_path(void *ctx, size_t index)
{
	return ((const struct ls_look *)ctx)->names->paths.list[index];
}

static void ls_looked(
	void *ctx, size_t index, int err, const struct message_attr *attr, const char *target)
{
	struct ls_look *l = ctx;
	struct calls_entry *e = &l->entries[index];

	if (err) {
		client_report(l->client, ls_path(l, index), err);
		l->err = l->err ? l->err : err;
		return;
	}
	e->attr = *attr;
	e->name = l->names->shown.list[index];
	/* without memory for it the link stands alone */
	e->target = target ? strdup(target) : NULL;
}

/* Whether a link is what it leads to: but with -l, if no '/' is behind it; as ls(1). */
static bool ls_follows(unsigned mask, const char *shown)
{
	const size_t len = strlen(shown);

	return !(mask & LS_DETAILS) || (len && shown[len - 1] == '/');
}

/* What a link leads to; one that leads nowhere is told of as itself.  0 or -errno, reported. */
static int ls_follow(struct client *c, const char *path, struct calls_entry *e)
{
	struct message_attr attr;
	int err = calls_stat(c->session, path, &attr);

	if (err == -ENOENT && !calls_lost(c->session))
		return 0;
	if (err)
		return client_report(c, path, err);
	e->attr = attr;
	free(e->target);
	e->target = NULL;
	return 0;
}

/* What is at each of the names: 0 or the first -errno, reported. */
static int ls_look_at(
	struct client *c, const struct ls_names *names, unsigned mask, struct calls_entry *looked)
{
	struct ls_look look = {.client = c, .names = names, .entries = looked};

	if (c->session)
		(void)calls_look_all(c->session, &(struct calls_look){.count = names->paths.count,
							 .path = ls_path,
							 .done = ls_looked,
							 .ctx = &look});
	for (size_t i = 0; i < names->paths.count; i++) {
		int err;

		if (!looked[i].name || looked[i].attr.type != MESSAGE_SYMLINK || !c->session ||
			!ls_follows(mask, names->shown.list[i]))
			continue;
		err = ls_follow(c, names->paths.list[i], &looked[i]);
		if (err)
			looked[i].name = NULL;
		look.err = look.err ? look.err : err;
	}
	return look.err;
}

/* Files first, in one list, then what is in each directory; as ls(1). */
static int ls_names(struct client *c, const struct ls_names *names, unsigned mask)
{
	const size_t all = names->paths.count;
	const bool titled = all > 1 || mask & LS_RECURSIVE;
	struct ls_told told = {.client = c, .mask = mask};
	struct listing_params params = ls_params(mask, NULL);
	struct calls_entry *looked = calloc(all, sizeof *looked);
	struct calls_list files = {.entries = calloc(all, sizeof *files.entries)};
	struct ls_walk *walk = ls_walk_of(&told);
	int err = looked && files.entries && walk ? 0 : client_no_memory(c), last;

	if (err)
		goto out;
	err = ls_look_at(c, names, mask, looked);
	for (size_t i = 0; i < all; i++) {
		if (!looked[i].name)
			continue; /* it was reported */
		if (looked[i].attr.type != MESSAGE_DIRECTORY)
			files.entries[files.count++] = looked[i];
		else if ((last = ls_walk_add(walk, names->paths.list[i],
				  titled ? names->shown.list[i] : NULL)) != 0)
			err = err ? err : last;
	}
	if (files.count) {
		ls_sort(&files, mask);
		listing_print(&c->report, &params, &files);
		told.any = true;
	}
	last = ls_walk_run(walk);
	err = err ? err : last;
out:
	for (size_t i = 0; i < all && looked; i++)
		free(looked[i].target);
	free(looked);
	free(files.entries);
	ls_walk_free(walk);
	return err;
}

/* What stands in front of a pattern's first part with something special: "../a b/" of "../a\ b/c*".
 */
static char *ls_literal(const char *pattern)
{
	char *out = strdup(pattern);
	size_t len = 0, whole = 0;

	for (; out && *pattern && !strchr("*?[", *pattern); pattern++) {
		pattern += *pattern == '\\' && pattern[1];
		out[len++] = *pattern;
		if (*pattern == '/')
			whole = len;
	}
	if (out)
		out[whole] = '\0';
	return out;
}

/* As the user wrote it, with what a pattern stands for in its place. */
static char *ls_shown(struct client *c, const struct lexer_word *word, const char *path)
{
	char *literal, *front;
	struct text shown = {0};
	size_t len;

	if (c->settings.json)
		return strdup(path);
	if (!remote_has_magic(word->pattern))
		return strdup(word->text);
	literal = ls_literal(word->pattern);
	front = literal ? command_remote(c, &(struct lexer_word){.text = literal}) : NULL;
	if (front) {
		len = strlen(front);
		len -= front[len - 1] == '/';
		if (!strncmp(path, front, len) && path[len] == '/')
			text_printf(&shown, "%s%s", literal, path + len + 1);
		else
			text_puts(&shown, path);
	}
	free(front);
	free(literal);
	return text_take(&shown);
}

static int ls_expand(
	struct client *c, const struct lexer_command *line, size_t first, struct ls_names *names)
{
	int err = 0;

	for (size_t i = first; i < line->count; i++) {
		const struct lexer_command one = {.words = &line->words[i], .count = 1};
		int e = command_expand_remote(c, &one, 0, &names->paths);

		err = err ? err : e;
		while (names->shown.count < names->paths.count) {
			char *shown = ls_shown(c, one.words, names->paths.list[names->shown.count]);

			if (names_add(&names->shown, shown))
				return client_no_memory(c);
		}
		if (e && !c->session)
			break;
	}
	return err;
}

int command_ls(struct client *c, const struct lexer_command *line)
{
	struct ls_names names = {0};
	unsigned mask;
	int first = command_flags(c, line, "1alhRtS", &mask), err;

	if (first < 0)
		return first;
	if ((size_t)first == line->count) {
		if (!client_session(c))
			return -ENOTCONN;
		return ls_here(c, mask);
	}
	err = ls_expand(c, line, (size_t)first, &names);
	if (c->session && names.shown.count && names.shown.count == names.paths.count) {
		int e = ls_names(c, &names, mask);

		err = err ? err : e;
	}
	names_fini(&names.paths);
	names_fini(&names.shown);
	return err;
}
