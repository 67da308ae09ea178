/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_change.c: the commands that change modes and times of names at the server,
 * and make links there.
 */
#include "rftp/shell/commands_impl.h"

#include "rftp/remote/changes.h"
#include "rftp/remote/remote_path.h"
#include "rftp/shell/mode.h"
#include "rftp/shell/stamp.h"
#include "session/calls_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int change_usage(struct client *c, const struct lexer_command *line)
{
	const struct command *command = command_find(line->words[0].text);

	report_usage(&c->report, "usage: %s %s", command->name, command->usage);
	return -EINVAL;
}

/* ---- chmod ---- */

struct chmod {
	struct client *client;
	struct changes *changes;
	const char *text; /* NULL: `mode` */
	mode_t mode, mask;
	bool recursive;
};

/* `walked`: it is no link, and one that takes its place meanwhile is not meant. */
static int chmod_add(
	const struct chmod *m, const char *path, uint32_t old, bool directory, bool walked)
{
	const struct message_change change = {
		.flags = MESSAGE_CHANGE_MODE | (walked ? MESSAGE_CHANGE_LINK : 0),
		.mode = m->text ? mode_apply(m->text, old, directory, m->mask) : m->mode};

	return changes_add(m->changes, path, change);
}

/* Of a tree, names beneath its top. */
struct chmod_found {
	struct client *client;
	struct chmod_name {
		char *name;
		uint32_t mode;
		bool directory;
	} * names;
	size_t count, room;
};

static int chmod_found(void *ctx, const struct message_tree_entry *e)
{
	struct chmod_found *f = ctx;
	struct chmod_name *names;

	if (e->status) {
		char *name = strndup((const char *)e->name.data, e->name.len);

		report_error(&f->client->report, EXIT_CODE_OK, e->status, name, NULL);
		free(name);
	}
	if (e->attr.type != MESSAGE_FILE && e->attr.type != MESSAGE_DIRECTORY)
		return 0;
	if (f->count == f->room) {
		names = realloc(f->names, (f->room * 2 + 64) * sizeof *names);
		if (!names)
			return -ENOMEM;
		f->names = names;
		f->room = f->room * 2 + 64;
	}
	names = &f->names[f->count];
	names->name = strndup((const char *)e->name.data, e->name.len);
	if (!names->name)
		return -ENOMEM;
	names->mode = e->attr.mode;
	names->directory = e->attr.type == MESSAGE_DIRECTORY;
	f->count++;
	return 0;
}

/* What is beneath a directory: the last one first, so that none is out of reach before its time. */
static int chmod_beneath(const struct chmod *m, const char *path)
{
	const struct message_tree request = {
		.flags = MESSAGE_TREE_SKIP_LINKS, .path = {(const uint8_t *)path, strlen(path)}};
	struct chmod_found found = {.client = m->client};
	int err = calls_tree(m->client->session, &request, chmod_found, &found);

	if (err == -ENOMEM)
		client_no_memory(m->client);
	else if (err)
		client_report(m->client, path, err);
	while (found.count) {
		const struct chmod_name *n = &found.names[--found.count];
		char *inner = err ? NULL : remote_join(path, n->name);

		if (inner)
			err = chmod_add(m, inner, n->mode, n->directory, true);
		else if (!err)
			err = client_no_memory(m->client);
		free(inner);
		free(n->name);
	}
	free(found.names);
	return err;
}

static int chmod_path(const struct chmod *m, const char *path)
{
	struct client *c = m->client;
	struct message_attr attr = {0};
	int err = 0;

	if (m->text || m->recursive) {
		err = c->session ? calls_stat(c->session, path, &attr) : -ENOTCONN;
		if (err)
			return c->session ? client_report(c, path, err) : err;
	}
	if (m->recursive && attr.type == MESSAGE_DIRECTORY)
		err = chmod_beneath(m, path);
	return err ? err : chmod_add(m, path, attr.mode, attr.type == MESSAGE_DIRECTORY, false);
}

int command_chmod(struct client *c, const struct lexer_command *line)
{
	struct chmod m = {.client = c};
	struct names names = {0};
	size_t i = 1;
	int kind, err, e;

	/* "-w" is a mode */
	if (!strcmp(line->words[i].text, "-R")) {
		m.recursive = true;
		i++;
	}
	if (i < line->count && !strcmp(line->words[i].text, "--"))
		i++;
	if (line->count - i < 2)
		return change_usage(c, line);
	kind = mode_parse(line->words[i].text, &m.mode);
	if (kind < 0) {
		report_usage(&c->report, "%s: is not a mode, as in 644 or u+x,go-w",
			line->words[i].text);
		return kind;
	}
	m.text = kind ? NULL : line->words[i].text;
	m.mask = umask(0);
	umask(m.mask);
	err = command_expand_remote(c, line, i + 1, &names);
	m.changes = names.count ? changes_new(c) : NULL;
	for (size_t k = 0; m.changes && k < names.count && c->session; k++) {
		e = chmod_path(&m, names.list[k]);
		err = err ? err : e;
	}
	e = m.changes ? changes_end(m.changes) : 0;
	changes_free(m.changes);
	names_fini(&names);
	return err ? err : e;
}

/* ---- touch ---- */

/* Flags in front, with their values.  The first other word, or -EINVAL, reported. */
static int touch_flags(
	struct client *c, const struct lexer_command *line, struct message_change *change)
{
	struct timespec when;
	size_t i = 1;

	*change = (struct message_change){.flags = MESSAGE_CHANGE_NOW | MESSAGE_CHANGE_CREATE};
	for (; i < line->count && line->words[i].text[0] == '-' && line->words[i].text[1]; i++) {
		const char *flag = line->words[i].text, *value;
		int err;

		if (!strcmp(flag, "--"))
			return (int)i + 1;
		if (!strcmp(flag, "-c")) {
			change->flags &= (uint8_t)~MESSAGE_CHANGE_CREATE;
			continue;
		}
		if (!strcmp(flag, "-h")) {
			change->flags &= (uint8_t)~MESSAGE_CHANGE_CREATE;
			change->flags |= MESSAGE_CHANGE_LINK;
			continue;
		}
		if ((strcmp(flag, "-d") != 0 && strcmp(flag, "-t") != 0) || i + 1 == line->count)
			return change_usage(c, line);
		value = line->words[++i].text;
		err = flag[1] == 'd' ? stamp_parse_date(value, &when)
				     : stamp_parse_short(value, time(NULL), &when);
		if (err) {
			report_usage(&c->report, "%s: is not a time, as in %s", value,
				flag[1] == 'd' ? "'2026-11-24 03:18:00.5', 2026-11-24T03:18Z or "
						 "@1795490280.5"
					       : "202611240318.00");
			return err;
		}
		change->flags &= (uint8_t)~MESSAGE_CHANGE_NOW;
		change->flags |= MESSAGE_CHANGE_MTIME;
		change->mtime_s = when.tv_sec;
		change->mtime_ns = (uint32_t)when.tv_nsec;
	}
	return (int)i;
}

int command_touch(struct client *c, const struct lexer_command *line)
{
	struct message_change change;
	struct changes *changes;
	struct names names = {0};
	int first = touch_flags(c, line, &change), err, e;

	if (first < 0)
		return first;
	if ((size_t)first == line->count)
		return change_usage(c, line);
	err = command_expand_remote(c, line, (size_t)first, &names);
	changes = names.count ? changes_new(c) : NULL;
	for (size_t i = 0; changes && i < names.count && c->session; i++) {
		e = changes_add(changes, names.list[i], change);
		err = err ? err : e;
	}
	e = changes ? changes_end(changes) : 0;
	changes_free(changes);
	names_fini(&names);
	return err ? err : e;
}

/* ---- ln ---- */

int command_ln(struct client *c, const struct lexer_command *line)
{
	struct calls *s;
	const char *target, *last;
	struct message_attr attr;
	char *path, *name = NULL;
	unsigned mask;
	size_t len;
	int first = command_flags(c, line, "s", &mask), err;

	if (first < 0)
		return first;
	if (!mask || line->count - (size_t)first != 2) {
		report_usage(&c->report, "usage: ln -s TARGET PATH (other names of a file, hard "
					 "links, are made by get and put with -H)");
		return -EINVAL;
	}
	s = client_session(c);
	if (!s)
		return -ENOTCONN;
	target = line->words[first].text;
	path = command_remote(c, &line->words[first + 1]);
	if (!path)
		return -ENOMEM;
	/* into a directory it goes under the target's name, as with ln(1) */
	err = calls_stat(s, path, &attr);
	if (err && calls_lost(s)) {
		client_report(c, path, err);
	} else if (!err && attr.type == MESSAGE_DIRECTORY) {
		last = remote_last(target, &len);
		last = strndup(last, len);
		name = last ? remote_join(path, last) : NULL;
		free((char *)(uintptr_t)last);
		err = name ? 0 : client_no_memory(c);
	} else {
		err = 0;
	}
	if (!err) {
		err = calls_make_link(s, target, name ? name : path);
		if (err)
			client_report(c, name ? name : path, err);
	}
	free(name);
	free(path);
	return err;
}
