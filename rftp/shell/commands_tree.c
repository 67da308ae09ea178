/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_tree.c: the commands about all that is beneath a name at the server: one TREE
 * for all of it, each directory behind what is in it for du, before it for find.
 */
#include "rftp/shell/commands_impl.h"

#include "rftp/copy/leftovers.h"
#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/listing.h"
#include "rftp/ui/units.h"
#include "session/calls_tree.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tree_sum {
	uint64_t bytes, files, directories;
};

struct tree {
	struct client *client;
	/* find */
	bool find;
	const char *name; /* a pattern; NULL: any */
	uint8_t type;     /* enum message_file_type; 0: any */
	/* du */
	bool sum_only, human;
};

static void tree_print_path(struct text *out, struct report *r, const char *path)
{
	if (isatty(fileno(r->out)))
		escape_shell(out, path, strlen(path));
	else
		text_puts(out, path);
	text_putc(out, '\n');
}

static void tree_found(const struct tree *t, const char *path, const struct message_attr *attr)
{
	struct report *r = &t->client->report;
	struct text line = {0};
	size_t len;
	const char *last = remote_last(path, &len);

	if ((t->type && attr->type != t->type) || (t->name && fnmatch(t->name, last, 0) != 0))
		return;
	if (report_json(r)) {
		listing_stat(r, path, attr, NULL);
		return;
	}
	tree_print_path(&line, r, path);
	report_write(r, text_str(&line), line.len);
	text_fini(&line);
}

static void tree_print_sum(const struct tree *t, const char *path, const struct tree_sum *sum)
{
	struct report *r = &t->client->report;
	char size[UNITS_TEXT_MAX];
	struct text line = {0};

	if (report_json(r)) {
		report_json_begin(&line, "usage");
		report_json_string(&line, "path", path);
		report_json_number(&line, "bytes", sum->bytes);
		report_json_number(&line, "files", sum->files);
		report_json_number(&line, "directories", sum->directories);
		report_json_end(r, &line);
		return;
	}
	if (t->human) {
		units_format_short(sum->bytes, size);
		text_printf(&line, "%7s  ", size);
	} else {
		text_printf(&line, "%12ju  ", (uintmax_t)sum->bytes);
	}
	tree_print_path(&line, r, path);
	report_write(r, text_str(&line), line.len);
	text_fini(&line);
}

/* A directory that is not told of to its end. */
struct tree_level {
	char *path;
	struct tree_sum sum;
};

struct tree_walk {
	const struct tree *tree;
	const char *top;
	struct tree_level *levels; /* the top first, for du */
	size_t depth, room;
	int err; /* the first of what could not be read */
};

static int tree_enter(struct tree_walk *w, const char *path)
{
	const size_t room = w->room * 2 + 16;
	struct tree_level *grown = w->levels;

	if (w->depth == w->room) {
		grown = realloc(w->levels, room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		w->levels = grown;
		w->room = room;
	}
	grown[w->depth] = (struct tree_level){.path = strdup(path), .sum.directories = 1};
	return grown[w->depth].path ? (w->depth++, 0) : -ENOMEM;
}

/* The last directory is complete. */
static void tree_leave(struct tree_walk *w, bool tell)
{
	struct tree_level *last = &w->levels[--w->depth];

	if (tell && (!w->depth || !w->tree->sum_only))
		tree_print_sum(w->tree, last->path, &last->sum);
	if (w->depth) {
		struct tree_sum *sum = &last[-1].sum;

		sum->bytes += last->sum.bytes;
		sum->files += last->sum.files;
		sum->directories += last->sum.directories;
	}
	free(last->path);
}

static bool tree_is_in(const char *path, const char *directory)
{
	size_t len = strlen(directory);

	len -= len && directory[len - 1] == '/';
	return !strncmp(path, directory, len) && path[len] == '/';
}

static int tree_add(
	struct tree_walk *w, const char *path, const struct message_attr *attr, bool failed)
{
	const struct tree *t = w->tree;

	if (t->find) {
		if (!failed || !report_json(&t->client->report)) /* only its type is known */
			tree_found(t, path, attr);
		return 0;
	}
	while (w->depth > 1 && !tree_is_in(path, w->levels[w->depth - 1].path))
		tree_leave(w, true);
	if (attr->type == MESSAGE_DIRECTORY)
		return tree_enter(w, path);
	w->levels[w->depth - 1].sum.files++;
	if (attr->type == MESSAGE_FILE && !failed)
		w->levels[w->depth - 1].sum.bytes += attr->size;
	return 0;
}

static int tree_told(void *ctx, const struct message_tree_entry *e)
{
	struct tree_walk *w = ctx;
	struct client *c = w->tree->client;
	char *name = strndup((const char *)e->name.data, e->name.len),
	     *path = name ? remote_join(w->top, name) : NULL;
	int err = path ? tree_add(w, path, &e->attr, e->status) : -ENOMEM;

	if (!err && e->status) {
		report_error(&c->report, EXIT_CODE_OK, e->status, path, NULL);
		w->err = w->err ? w->err : status_to_errno(e->status);
	}
	free(path);
	free(name);
	return err ? err : interrupt_signal() ? -ECANCELED : 0;
}

/* What is beneath a directory, in one request. */
static int tree_ask(struct tree_walk *w, const char *path)
{
	const struct message_tree request = {.path = {(const uint8_t *)path, strlen(path)}};

	w->top = path;
	return calls_tree(w->tree->client->session, &request, tree_told, w);
}

/* The top of several exports is no tree: each of them is one. */
static int tree_exports(struct tree_walk *w)
{
	struct calls *s = w->tree->client->session;
	struct calls_list list = {0};
	int err = calls_list(s, "/", &list);

	for (size_t i = 0; !err && i < list.count; i++) {
		char *path = remote_join("/", list.entries[i].name);

		err = path ? tree_add(w, path, &list.entries[i].attr, false) : -ENOMEM;
		if (!err)
			err = tree_ask(w, path);
		if (err && err != -ENOMEM && err != -ECANCELED && !calls_lost(s)) {
			client_report(w->tree->client, path, err);
			w->err = w->err ? w->err : err;
			err = 0;
		}
		free(path);
	}
	calls_list_free(&list);
	return err;
}

/* A directory and all that is beneath it. */
static int tree_directory(const struct tree *t, const char *path, const struct message_attr *attr)
{
	struct client *c = t->client;
	struct tree_walk w = {.tree = t};
	int err = 0;

	if (t->find)
		tree_found(t, path, attr);
	else
		err = tree_enter(&w, path);
	if (!err && calls_info(c->session)->exports && !strcmp(path, "/"))
		err = tree_exports(&w);
	else if (!err)
		err = tree_ask(&w, path);
	if (err == -ENOMEM)
		client_no_memory(c);
	else if (err)
		client_report(c, path, err);
	while (w.depth)
		tree_leave(&w, !err);
	free(w.levels);
	return err ? err : w.err;
}

static int tree_each(const struct tree *t, const struct names *paths)
{
	struct client *c = t->client;
	int err = 0;

	for (size_t i = 0; i < paths->count && c->session && !interrupt_signal(); i++) {
		const char *path = paths->list[i];
		struct message_attr attr;
		int e = calls_stat(c->session, path, &attr);

		if (e)
			client_report(c, path, e);
		else if (attr.type == MESSAGE_DIRECTORY)
			e = tree_directory(t, path, &attr);
		else if (t->find)
			tree_found(t, path, &attr);
		else
			tree_print_sum(t, path,
				&(struct tree_sum){
					.bytes = attr.type == MESSAGE_FILE ? attr.size : 0,
					.files = 1});
		err = err ? err : e;
	}
	return interrupt_signal() ? -ECANCELED : err;
}

/* Words from `first` up to `end`; none: the remote directory. */
static int tree_run(
	const struct tree *t, const struct lexer_command *line, size_t first, size_t end)
{
	const struct lexer_command words = {.words = line->words, .count = end};
	struct client *c = t->client;
	struct names paths = {0};
	int err = 0;

	if (!client_session(c))
		return -ENOTCONN;
	if (first == end)
		err = names_add(&paths, strdup(c->cwd)) ? client_no_memory(c) : 0;
	else
		err = command_expand_remote(c, &words, first, &paths);
	for (size_t i = 0; i < paths.count; i++)
		remote_normalize(paths.list[i]); /* "." is the directory that one is in */
	if (paths.count) {
		int e = tree_each(t, &paths);

		err = err ? err : e;
	}
	names_fini(&paths);
	return err;
}

int command_du(struct client *c, const struct lexer_command *line)
{
	unsigned mask;
	int first = command_flags(c, line, "sh", &mask);
	const struct tree t = {.client = c, .sum_only = mask & 1, .human = mask & 2};

	return first < 0 ? first : tree_run(&t, line, (size_t)first, line->count);
}

/* -name PATTERN and -type f|d|l, from word i on.  0 or -EINVAL, reported. */
static int find_conditions(struct tree *t, const struct lexer_command *line, size_t i)
{
	static const struct {
		const char *name;
		uint8_t type;
	} types[] = {{"f", MESSAGE_FILE}, {"d", MESSAGE_DIRECTORY}, {"l", MESSAGE_SYMLINK}};

	for (; i + 1 < line->count; i += 2) {
		const char *value = line->words[i + 1].text;

		if (!strcmp(line->words[i].text, "-name")) {
			t->name = value;
			continue;
		}
		if (strcmp(line->words[i].text, "-type") != 0)
			break;
		t->type = 0;
		for (size_t k = 0; k < sizeof types / sizeof *types; k++)
			if (!strcmp(types[k].name, value))
				t->type = types[k].type;
		if (!t->type)
			break;
	}
	if (i == line->count)
		return 0;
	report_usage(&t->client->report, "usage: find [PATH...] [-name PATTERN] [-type f|d|l]");
	return -EINVAL;
}

int command_find_names(struct client *c, const struct lexer_command *line)
{
	struct tree t = {.client = c, .find = true};
	size_t end = 1;

	while (end < line->count && line->words[end].text[0] != '-')
		end++;
	if (find_conditions(&t, line, end))
		return -EINVAL;
	return tree_run(&t, line, 1, end);
}

/* --remove and --older TIME in front.  The first other word, or -EINVAL, reported. */
static int leftovers_flags(
	struct client *c, const struct lexer_command *line, struct leftovers_command *command)
{
	size_t i = 1;

	for (; i < line->count && line->words[i].text[0] == '-'; i++) {
		const char *word = line->words[i].text;

		if (!strcmp(word, "--"))
			return (int)i + 1;
		if (!strcmp(word, "--remove")) {
			command->remove = true;
		} else if (!strncmp(word, "--older=", strlen("--older="))) {
			command->older = word + strlen("--older=");
		} else if (!strcmp(word, "--older") && i + 1 < line->count) {
			command->older = line->words[++i].text;
		} else {
			report_usage(
				&c->report, "usage: leftovers [--remove] [--older TIME] [DIR...]");
			return -EINVAL;
		}
	}
	return (int)i;
}

int command_leftovers(struct client *c, const struct lexer_command *line)
{
	struct leftovers_command command = {.shell = true};
	int first = leftovers_flags(c, line, &command), err = first < 0 ? first : 0;
	struct names paths = {0};

	if (!err && !client_session(c))
		err = -ENOTCONN;
	if (!err && (size_t)first == line->count)
		err = names_add(&paths, strdup(c->cwd)) ? client_no_memory(c) : 0;
	else if (!err)
		err = command_expand_remote(c, line, (size_t)first, &paths);
	if (!err)
		err = leftovers_command(c, &command, (const char *const *)paths.list, paths.count);
	names_fini(&paths);
	return err;
}
