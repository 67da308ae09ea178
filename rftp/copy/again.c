/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/again: see again.h.
 */
#include "rftp/copy/again.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void again_fini(struct again *a)
{
	text_fini(&a->sources);
	a->names = false;
}

static bool is_source(const char *line)
{
	return line[0] == '/' || (line[0] == '.' && line[1] == '/');
}

void again_source(struct text *out, const char *source)
{
	if (!is_source(source))
		text_puts(out, "./");
	text_puts(out, source);
}

bool again_has(const struct again *a, const char *source)
{
	const char *line = text_str(&a->sources), *end = line + a->sources.len;
	struct text own = {0};
	bool has = false;

	if (!a->sources.len)
		return false;
	again_source(&own, source);
	for (; line < end && !has; line += strlen(line) + 1)
		has = !strcmp(line, text_str(&own));
	text_fini(&own);
	return has;
}

bool again_is_sources(const struct again *a)
{
	return a->sources.len && !a->names;
}

/* One name as a rule, that is matched from the top on: what has a meaning in a pattern is escaped.
 */
static int again_rule(
	struct filter *filter, const char *name, size_t len, const char *behind, char *why)
{
	struct text pattern = {0};
	int err;

	text_putc(&pattern, '/');
	for (size_t i = 0; i < len; i++) {
		if (strchr("*?[\\", name[i]))
			text_putc(&pattern, '\\');
		text_putc(&pattern, name[i]);
	}
	text_puts(&pattern, behind);
	err = pattern.failed ? -ENOMEM : filter_add_pattern(filter, true, text_str(&pattern), why);
	text_fini(&pattern);
	return err;
}

/* A name, the directories that lead to it, and all that is in it if it is one. */
static int again_rules(struct filter *filter, const char *name, size_t len, char *why)
{
	int err = 0;

	for (size_t i = 1; i < len && !err; i++)
		if (name[i] == '/')
			err = again_rule(filter, name, i, "/", why);
	if (!err)
		err = again_rule(filter, name, len, "", why);
	return err ? err : again_rule(filter, name, len, "/***", why);
}

static int again_add(
	struct again *a, struct filter *filter, const char *line, size_t len, char *why)
{
	if (is_source(line)) {
		text_add(&a->sources, line, len + 1);
		return a->sources.failed ? -ENOMEM : 0;
	}
	a->names = true;
	return again_rules(filter, line, len, why);
}

int again_read(struct again *a, const char *path, struct filter *filter, char *why, size_t size)
{
	FILE *in = fopen(path, "r");
	char *line = NULL, reason[FILTER_WHY_MAX] = "";
	size_t room = 0;
	ssize_t len;
	int err = in ? 0 : -errno;

	while (!err && (len = getline(&line, &room, in)) > 0) {
		len -= line[len - 1] == '\n';
		line[len] = '\0';
		if (len && !memchr(line, '\0', (size_t)len))
			err = again_add(a, filter, line, (size_t)len, reason);
	}
	if (!err && in && ferror(in))
		err = -EIO;
	if (!err && !a->names && !a->sources.len)
		err = -ENODATA;
	if (!err && a->names)
		err = filter_add_pattern(filter, false, "*", reason);
	if (err)
		snprintf(why, size, "%s: %s", path,
			err == -ENODATA ? "no names are in it"
			: *reason       ? reason
					: strerror(-err));
	free(line);
	if (in)
		fclose(in);
	return err;
}
