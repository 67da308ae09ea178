/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_remote.c: the commands about names at the server.
 */
#include "rftp/shell/commands_impl.h"

#include "rftp/shell/interrupt.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/listing.h"
#include "rftp/remote/remote_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* All names from word `first` on, of which there must be one.  0 or -errno, reported. */
static int remote_names(
	struct client *c, const struct lexer_command *line, size_t first, struct names *names)
{
	int err = command_expand_remote(c, line, first, names);

	if (!err && !names->count) {
		const struct command *command = command_find(line->words[0].text);

		report_usage(&c->report, "usage: %s %s", command->name, command->usage);
		err = -EINVAL;
	}
	return err;
}

/* Calls `each` for all names from word `first` on; one that fails does not keep the others back.
 * The first error. */
static int remote_each(struct client *c, const struct lexer_command *line, size_t first,
	int (*each)(struct client *, const char *path, unsigned mask), unsigned mask)
{
	struct names names = {0};
	int err = remote_names(c, line, first, &names);

	for (size_t i = 0; i < names.count && c->session; i++) {
		int e = each(c, names.list[i], mask);

		err = err ? err : e;
	}
	names_fini(&names);
	return err;
}

/* ---- one request a name ---- */

struct looked {
	struct client *client;
	const struct names *names;
	int err; /* the first */
};

static const char *looked_path(void *ctx, size_t index)
{
	return ((const struct looked *)ctx)->names->list[index];
}

static void stat_done(
	void *ctx, size_t index, int err, const struct message_attr *attr, const char *target)
{
	struct looked *l = ctx;

	if (err)
		client_report(l->client, looked_path(l, index), err);
	else
		listing_stat(&l->client->report, looked_path(l, index), attr, target);
	l->err = l->err ? l->err : err;
}

int command_stat(struct client *c, const struct lexer_command *line)
{
	struct names names = {0};
	struct looked l = {.client = c, .names = &names};
	int err = remote_names(c, line, 1, &names);

	if (names.count && c->session) /* stat_done has its error, too */
		(void)calls_look_all(c->session, &(struct calls_look){.count = names.count,
							 .path = looked_path,
							 .done = stat_done,
							 .ctx = &l});
	names_fini(&names);
	return err ? err : l.err;
}

static int mkdir_each(struct client *c, const char *path, unsigned mask)
{
	int err = calls_mkdir(c->session, path, mask);

	return err ? client_report(c, path, err) : 0;
}

int command_mkdir(struct client *c, const struct lexer_command *line)
{
	unsigned mask;
	int first = command_flags(c, line, "p", &mask);

	return first < 0 ? first : remote_each(c, line, (size_t)first, mkdir_each, mask);
}

static int rmdir_each(struct client *c, const char *path, unsigned mask)
{
	int err = calls_rmdir(c->session, path);

	(void)mask;
	return err ? client_report(c, path, err) : 0;
}

int command_rmdir(struct client *c, const struct lexer_command *line)
{
	unsigned mask;
	int first = command_flags(c, line, "", &mask);

	return first < 0 ? first : remote_each(c, line, (size_t)first, rmdir_each, 0);
}

static int rm_tree(struct client *c, const char *path)
{
	struct message_removed removed = {0};
	uint64_t count = 0;
	int err;

	do {
		err = interrupt_signal() ? -ECANCELED
					 : calls_remove_tree(c->session, path, &removed);
		count += err ? 0 : removed.removed;
	} while (!err && removed.more);
	if (err == -ECANCELED)
		report_errorf(&c->report, err, path, "cancelled after %ju names", (uintmax_t)count);
	else if (err)
		client_report(c, path, err);
	else
		report_verbose(&c->report, "%s: %ju names removed", path, (uintmax_t)count);
	return err;
}

/* Whether a name may be removed.  0 or -EINVAL, reported. */
static int rm_check(struct client *c, const char *path)
{
	size_t len;
	const char *last = remote_last(path, &len);

	if (len && (len != 1 || *last != '.'))
		return 0;
	report_error(&c->report, EXIT_CODE_OK, STATUS_NAME, path,
		len ? "a directory is removed by its name, not as ."
		    : "the top cannot be removed: name what is in it");
	return -EINVAL;
}

static int rm_tree_each(struct client *c, const char *path, unsigned mask)
{
	int err = rm_check(c, path);

	(void)mask;
	return err ? err : rm_tree(c, path);
}

struct rm_names {
	struct client *c;
	const char **list;
	size_t count;
	int err; /* the first */
};

static const char *rm_path(void *ctx, size_t index)
{
	return ((const struct rm_names *)ctx)->list[index];
}

static void rm_done(void *ctx, size_t index, int err)
{
	struct rm_names *rm = ctx;
	struct client *c = rm->c;

	if (err == -EISDIR && !client_is_gone(c))
		report_error(&c->report, EXIT_CODE_OK, STATUS_IS_DIRECTORY, rm_path(rm, index),
			"is a directory (remove it with rm -r, or with rmdir when it is empty)");
	else if (err)
		client_report(c, rm_path(rm, index), err);
	rm->err = rm->err ? rm->err : err;
}

/* Files, of which as many are under way as may be: each is a request. */
static int rm_files(struct client *c, const struct lexer_command *line, size_t first)
{
	struct rm_names rm = {.c = c};
	struct names names = {0};
	int err = remote_names(c, line, first, &names);

	if (!err) {
		rm.list = calloc(names.count, sizeof *rm.list);
		err = rm.list ? 0 : client_no_memory(c);
	}
	for (size_t i = 0; i < names.count && rm.list; i++) {
		int wrong = rm_check(c, names.list[i]);

		err = err ? err : wrong;
		if (!wrong)
			rm.list[rm.count++] = names.list[i];
	}
	if (rm.count) {
		/* rm_done has its error, too */
		(void)calls_remove_all(c->session,
			&(struct calls_removal){
				.count = rm.count, .path = rm_path, .done = rm_done, .ctx = &rm});
		err = err ? err : rm.err;
	}
	free(rm.list);
	names_fini(&names);
	return err;
}

int command_rm(struct client *c, const struct lexer_command *line)
{
	unsigned mask;
	int first = command_flags(c, line, "r", &mask);

	if (first < 0)
		return first;
	return mask ? remote_each(c, line, (size_t)first, rm_tree_each, 0)
		    : rm_files(c, line, (size_t)first);
}

/* ---- mv ---- */

static void mv_done(void *ctx, size_t index, int err)
{
	struct looked *l = ctx;

	if (err)
		client_report(l->client, looked_path(l, index), err);
	l->err = l->err ? l->err : err;
}

/* Names that go to `to`, or into it. */
static int mv_all(
	struct client *c, const struct names *from, const char *to, bool into, bool replace)
{
	struct looked l = {.client = c, .names = from};
	struct names paths = {0};
	int err = 0;

	for (size_t i = 0; i < from->count && !err; i++) {
		size_t len;
		const char *last = remote_last(from->list[i], &len);
		char *name = strndup(last, len);

		if (!name || names_add(&paths, into ? remote_join(to, name) : strdup(to)))
			err = client_no_memory(c);
		free(name);
	}
	if (!err) /* mv_done has its error, too */
		(void)calls_rename_all(c->session, &(struct calls_renaming){.count = from->count,
							   .from = from->list,
							   .to = paths.list,
							   .replace = replace,
							   .done = mv_done,
							   .ctx = &l});
	names_fini(&paths);
	return err ? err : l.err;
}

int command_mv(struct client *c, const struct lexer_command *line)
{
	struct names names = {0};
	struct message_attr attr;
	unsigned mask;
	char *to = NULL;
	bool into;
	int first = command_flags(c, line, "n", &mask), err;
	struct lexer_command sources = *line;

	if (first < 0)
		return first;
	if (line->count - (size_t)first < 2) {
		report_usage(&c->report, "usage: mv [-n] FROM... TO");
		return -EINVAL;
	}
	sources.count--;
	err = command_expand_remote(c, &sources, (size_t)first, &names);
	if (!err && !(to = command_remote(c, &line->words[line->count - 1])))
		err = -ENOMEM;
	if (err)
		goto done;
	err = calls_stat(c->session, to, &attr);
	if (err && calls_lost(c->session)) {
		client_report(c, to, err);
		goto done;
	}
	into = !err && attr.type == MESSAGE_DIRECTORY;
	err = 0;
	if (!into && names.count > 1) {
		report_error(&c->report, EXIT_CODE_OK, STATUS_NOT_DIRECTORY, to,
			"several names need an existing directory to go into");
		err = -ENOTDIR;
		goto done;
	}
	if (names.count && c->session)
		err = mv_all(c, &names, to, into, !mask && c->settings.replace);
done:
	free(to);
	names_fini(&names);
	return err;
}

int command_df(struct client *c, const struct lexer_command *line)
{
	struct message_statfs_reply fs;
	unsigned mask;
	int first = command_flags(c, line, "h", &mask), err;
	struct calls *s;
	char *path;

	if (first < 0)
		return first;
	if (line->count - (size_t)first > 1) {
		report_usage(&c->report, "usage: df [-h] [PATH]");
		return -EINVAL;
	}
	s = client_session(c);
	if (!s)
		return -ENOTCONN;
	path = (size_t)first < line->count ? command_remote(c, &line->words[first])
					   : command_directory(c);
	if (!path)
		return -ENOMEM;
	err = calls_statfs(s, path, &fs);
	if (err)
		client_report(c, path, err);
	else
		listing_statfs(&c->report, path, &fs, mask);
	free(path);
	return err;
}
