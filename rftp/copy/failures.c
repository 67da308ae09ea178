/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/failures: see failures.h.
 */
#include "rftp/copy/failures.h"

#include "tree/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MAX 100u                /* more are only counted */
#define KEPT_BYTES_MAX (64ull << 20) /* of names */

void failures_fini(struct failures *f)
{
	text_fini(&f->names);
	text_fini(&f->shown);
	f->count = 0;
}

void failures_add(struct failures *f, struct wire_bytes name, const char *shown, const char *why)
{
	f->count++;
	if (f->names.len + name.len > KEPT_BYTES_MAX)
		return;
	text_add(&f->names, (const char *)name.data, name.len);
	text_putc(&f->names, '\0');
	if (f->count > TOLD_MAX)
		return;
	text_printf(&f->shown, "%s: %s", shown, why);
	text_putc(&f->shown, '\0');
}

void failures_tell(const struct failures *f, struct report *r, bool several)
{
	const char *line = text_str(&f->shown);
	unsigned told = 0;

	if (!f->count || !several || report_json(r) || f->shown.failed)
		return;
	report_note(r, "%ju failed:", (uintmax_t)f->count);
	for (; line < f->shown.data + f->shown.len; line += strlen(line) + 1, told++)
		report_note(r, "  %s", line);
	if (f->count > told)
		report_note(r, "  and %ju more", (uintmax_t)f->count - told);
}

int failures_write(const struct failures *f, const char *path, struct report *r)
{
	const char *name = text_str(&f->names), *end = name + f->names.len;
	FILE *out = fopen(path, "w");
	uint64_t left_out = f->names.failed ? f->count : 0;
	int err = 0;

	for (; out && !f->names.failed && name < end; name += strlen(name) + 1) {
		/* neither a name with a line's end in it, nor one that stands for all of it */
		if (!*name || strchr(name, '\n'))
			left_out++;
		else if (fprintf(out, "%s\n", name) < 0)
			break;
	}
	if (!out || ferror(out) || fflush(out))
		err = errno ? -errno : -EIO;
	if (out && fclose(out) && !err)
		err = -errno;
	if (err)
		report_errorf(r, err, path, "writing the names of what failed: %s", strerror(-err));
	else if (left_out)
		report_note(
			r, "%s: %ju names that failed are not in it", path, (uintmax_t)left_out);
	return err;
}

/* One name as a rule, that is matched from the top on: what has a meaning in a pattern is escaped.
 */
static int failures_rule(
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
static int failures_rules(struct filter *filter, const char *name, size_t len, char *why)
{
	int err = 0;

	for (size_t i = 1; i < len && !err; i++)
		if (name[i] == '/')
			err = failures_rule(filter, name, i, "/", why);
	if (!err)
		err = failures_rule(filter, name, len, "", why);
	return err ? err : failures_rule(filter, name, len, "/***", why);
}

int failures_read(const char *path, struct filter *filter, char *why, size_t size)
{
	FILE *in = fopen(path, "r");
	char *line = NULL, reason[FILTER_WHY_MAX] = "";
	size_t room = 0, names = 0;
	ssize_t len;
	int err = in ? 0 : -errno;

	while (!err && (len = getline(&line, &room, in)) > 0) {
		len -= line[len - 1] == '\n';
		if (!len || line[0] == '/' || memchr(line, '\0', (size_t)len))
			continue;
		err = failures_rules(filter, line, (size_t)len, reason);
		names++;
	}
	if (!err && in && ferror(in))
		err = -EIO;
	if (!err && !names)
		err = -ENODATA;
	if (!err)
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
