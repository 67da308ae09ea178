/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/files_from.c: see files_from.h.
 */
#include "rftp/copy/files_from.h"

#include "proto/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The plain form of a name: no '/' in front, none twice, no "." components; `*slash`: there was one
 * behind it.  The length, or -EINVAL: a "..".  Changes `name`. */
static ssize_t files_from_plain(char *name, bool *slash)
{
	char *out = name, *at = name;

	*slash = false;
	while (*at) {
		size_t len;

		at += strspn(at, "/");
		if (!*at)
			break;
		len = strcspn(at, "/");
		if (len == 2 && !memcmp(at, "..", 2))
			return -EINVAL;
		*slash = at[len] == '/' || (len == 1 && *at == '.');
		if (len && !(len == 1 && *at == '.')) {
			if (out != name)
				*out++ = '/';
			memmove(out, at, len);
			out += len;
		}
		at += len;
	}
	*out = '\0';
	return out - name;
}

/* One name of the list.  0 or -errno, reported. */
static int files_from_add(struct client *c, struct selection *out, char *line)
{
	bool slash;
	ssize_t len = files_from_plain(line, &slash);

	if (len < 0) {
		report_error(&c->report, EXIT_CODE_USAGE, STATUS_INVALID, line,
			"a name of --files-from leads out of the directory");
		return (int)len;
	}
	if (len && !transfer_name_ok((struct wire_bytes){(const uint8_t *)line, (size_t)len})) {
		report_error(&c->report, EXIT_CODE_OK, STATUS_NAME, line, NULL);
		return -ENAMETOOLONG;
	}
	if (!len) /* the directory itself */
		return 0;
	if (slash && !c->settings.recursive)
		line[len++] = '/'; /* there is room: it had one behind it */
	return selection_add(out, line, (size_t)len) ? client_no_memory(c) : 0;
}

int files_from_read(struct client *c, struct selection *out)
{
	const struct settings *s = &c->settings;
	const bool standard = !strcmp(s->files_from, "-");
	const int end = s->from0 ? '\0' : '\n';
	FILE *in = standard ? stdin : fopen(s->files_from, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int err = 0;

	if (standard && c->stdin_taken) {
		report_usage(
			&c->report, "--files-from=-: standard input gives the commands already");
		return -EINVAL;
	}
	if (!in) {
		err = -errno;
		report_errorf(&c->report, err, s->files_from, "%s", strerror(-err));
		return err;
	}
	while (!err && (len = getdelim(&line, &room, end, in)) > 0) {
		len -= line[len - 1] == end;
		line[len] = '\0';
		if (!len || (!s->from0 && (*line == '#' || *line == ';')))
			continue;
		if (memchr(line, '\0', (size_t)len)) {
			report_error(&c->report, EXIT_CODE_USAGE, STATUS_INVALID, s->files_from,
				"has NULs in its names: is it a list for --from0?");
			err = -EINVAL;
		} else {
			err = files_from_add(c, out, line);
		}
	}
	if (!err && ferror(in)) {
		err = -EIO;
		report_errorf(&c->report, err, s->files_from, "cannot be read");
	}
	free(line);
	if (!standard)
		fclose(in);
	if (!err && selection_sort(out))
		err = client_no_memory(c);
	return err;
}

/* Whether `name` is on the way (*way) to the selected one, or that, or beneath it; 0: it is; else
 * how it stands to all of these.  *self: the selected one is meant without what is in it. */
static int files_from_order(const char *name, const char *selected, bool *way, bool *self)
{
	size_t len = strlen(name), whole = strlen(selected);

	*self = whole && selected[whole - 1] == '/';
	whole -= *self;
	*way = len < whole;
	if (!strncmp(name, selected, len < whole ? len : whole) &&
		(len == whole || (len < whole && selected[len] == '/') ||
			(!*self && len > whole && name[whole] == '/')))
		return 0;
	return selection_order(name, selected);
}

void files_from_restrict(struct compare_list *list, const struct selection *selection, bool source)
{
	size_t kept = 0, at = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct compare_entry *e = &list->entries[i];
		bool way = false, self = false;
		int order = -1;

		/* both are in one order */
		while (at < selection->count &&
			(order = files_from_order(e->name, selection->names[at], &way, &self)) > 0)
			at++;
		/* what leads nowhere is no way */
		if (!order && at < selection->count &&
			(!source || !way || e->type == MESSAGE_DIRECTORY)) {
			self &= !way && e->type == MESSAGE_DIRECTORY;
			/* what is in it stays, and so does it */
			e->part = way || (self && !source);
			e->alone = self && source;
			list->entries[kept++] = *e;
			continue;
		}
		list->failed -= e->failed;
		free(e->name);
		free(e->target);
	}
	list->count = kept;
}
