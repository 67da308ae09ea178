/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_ls.c: the command ls: which names it lists, in what order and under which
 * titles.  How a name looks is ui/listing's.
 */
#include "rftp/shell/commands_impl.h"

#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"
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

static int ls_directory(
	struct client *c, const char *path, unsigned mask, const char *title, bool first);

/* What is in the directories of one that was listed; with titles. */
static int ls_beneath(struct client *c, const char *path, unsigned mask, const char *title,
	const struct calls_list *list)
{
	int first = 0;

	for (size_t i = 0; i < list->count && c->session && !interrupt_signal(); i++) {
		const struct calls_entry *e = &list->entries[i];
		struct text shown = {0};
		char *inner;
		int err;

		if (e->attr.type != MESSAGE_DIRECTORY || (e->name[0] == '.' && !(mask & LS_ALL)))
			continue;
		inner = remote_join(path, e->name);
		text_printf(&shown, "%s%s%s", title,
			*title && title[strlen(title) - 1] == '/' ? "" : "/", e->name);
		err = inner ? ls_directory(c, inner, mask, text_str(&shown), false)
			    : client_no_memory(c);
		first = first ? first : err;
		text_fini(&shown);
		free(inner);
	}
	return first;
}

/* `title`: stands above it, unless NULL.  `first`: nothing was listed before. */
static int ls_directory(
	struct client *c, const char *path, unsigned mask, const char *title, bool first)
{
	struct listing_params params = ls_params(mask, path);
	struct calls_list list;
	struct text head = {0};
	int err = calls_list(c->session, path, &list);

	if (err)
		return client_report(c, path, err);
	if (title && !report_json(&c->report)) {
		text_puts(&head, first ? "" : "\n");
		escape_display(&head, title, strlen(title));
		text_puts(&head, ":\n");
		report_write(&c->report, text_str(&head), head.len);
		text_fini(&head);
	}
	ls_sort(&list, mask);
	listing_print(&c->report, &params, &list);
	if (mask & LS_RECURSIVE)
		err = ls_beneath(c, path, mask, title, &list);
	calls_list_free(&list);
	return err;
}

/* A link that leads nowhere has no attributes of its own, but an entry in its directory. */
static int ls_stat(struct client *c, const char *path, struct message_attr *attr)
{
	int err = calls_stat(c->session, path, attr), found;
	struct calls_list list;
	const char *last;
	char *directory;
	size_t len;

	if (err != -ENOENT || calls_lost(c->session))
		return err;
	last = remote_last(path, &len);
	directory = last > path ? strndup(path, (size_t)(last - path)) : NULL;
	if (!directory)
		return err;
	found = calls_list(c->session, directory, &list);
	for (size_t i = 0; !found && i < list.count; i++) {
		if (strlen(list.entries[i].name) != len || memcmp(list.entries[i].name, last, len))
			continue;
		*attr = list.entries[i].attr;
		err = 0;
	}
	if (!found)
		calls_list_free(&list);
	free(directory);
	return err;
}

/* Files first, in one list, then what is in each directory; as ls(1). */
static int ls_names(struct client *c, const struct ls_names *names, unsigned mask)
{
	size_t all = names->paths.count, count = 0;
	struct calls_entry *files = calloc(all, sizeof *files);
	bool *directory = calloc(all, sizeof *directory);
	struct listing_params params = ls_params(mask, NULL);
	int err = files && directory ? 0 : client_no_memory(c);

	for (size_t i = 0; i < all && c->session && files && directory; i++) {
		struct message_attr attr;
		int e = ls_stat(c, names->paths.list[i], &attr);

		if (e)
			err = client_report(c, names->paths.list[i], e);
		else if (attr.type == MESSAGE_DIRECTORY)
			directory[i] = true;
		else
			files[count++] =
				(struct calls_entry){.attr = attr, .name = names->shown.list[i]};
	}
	if (count) {
		struct calls_list list = {.entries = files, .count = count};

		ls_sort(&list, mask);
		listing_print(&c->report, &params, &list);
	}
	for (size_t i = 0; i < all && c->session && directory; i++) {
		bool titled = all > 1 || mask & LS_RECURSIVE;
		int e = directory[i] ? ls_directory(c, names->paths.list[i], mask,
					       titled ? names->shown.list[i] : NULL, true)
				     : 0;

		err = err ? err : e;
	}
	free(files);
	free(directory);
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
		return ls_directory(c, c->cwd, mask, mask & LS_RECURSIVE ? c->cwd : NULL, true);
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
