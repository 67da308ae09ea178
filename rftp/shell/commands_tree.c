/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_tree.c: the commands about all that is beneath a name at the server: one LIST
 * a directory, depth first, each directory behind what is in it for du, before it for find.
 */
#include "rftp/shell/commands_impl.h"

#include "rftp/copy/leftovers.h"
#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/listing.h"
#include "rftp/ui/units.h"

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
		listing_stat(r, path, attr);
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

/* `path` and what is beneath it, added to *sum.  What can not be read is reported, and the rest
 * goes on.  0 or the first -errno. */
static int tree_walk(const struct tree *t, const char *path, const struct message_attr *attr,
	bool top, struct tree_sum *sum)
{
	struct client *c = t->client;
	struct tree_sum own = {.bytes = attr->type == MESSAGE_FILE ? attr->size : 0};
	struct calls_list list = {0};
	int err = 0;

	if (t->find)
		tree_found(t, path, attr);
	if (attr->type == MESSAGE_DIRECTORY) {
		own.directories = 1;
		err = calls_list(c->session, path, &list);
		if (err)
			client_report(c, path, err);
	} else {
		own.files = 1;
	}
	for (size_t i = 0; i < list.count && c->session && !interrupt_signal(); i++) {
		char *inner = remote_join(path, list.entries[i].name);
		int e = inner ? tree_walk(t, inner, &list.entries[i].attr, false, &own)
			      : client_no_memory(c);

		err = err ? err : e;
		free(inner);
	}
	calls_list_free(&list);
	if (!t->find && (top || (attr->type == MESSAGE_DIRECTORY && !t->sum_only)) && c->session)
		tree_print_sum(t, path, &own);
	sum->bytes += own.bytes;
	sum->files += own.files;
	sum->directories += own.directories;
	return interrupt_signal() ? -ECANCELED : err;
}

static int tree_each(const struct tree *t, const struct names *paths)
{
	struct client *c = t->client;
	struct tree_sum sum = {0};
	int err = 0;

	for (size_t i = 0; i < paths->count && c->session && !interrupt_signal(); i++) {
		struct message_attr attr;
		int e = calls_stat(c->session, paths->list[i], &attr);

		e = e ? client_report(c, paths->list[i], e)
		      : tree_walk(t, paths->list[i], &attr, true, &sum);
		err = err ? err : e;
	}
	return err;
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
