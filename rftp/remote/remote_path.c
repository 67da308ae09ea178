/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/remote_path.c: remote paths as text, and patterns of them.  The requests are those of
 * session/calls_names.
 */
#include "rftp/remote/remote_path.h"

#include "rftp/ui/text.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

char *remote_join(const char *cwd, const char *path)
{
	struct text joined = {0};

	if (*path != '/') {
		text_puts(&joined, cwd);
		if (*path && (!joined.len || cwd[strlen(cwd) - 1] != '/'))
			text_putc(&joined, '/');
	}
	text_puts(&joined, path);
	return text_take(&joined);
}

char *remote_join_pattern(const char *cwd, const char *pattern)
{
	struct text escaped = {0};
	char *safe, *joined = NULL;

	for (; *cwd; cwd++) {
		if (strchr("*?[]\\", *cwd))
			text_putc(&escaped, '\\');
		text_putc(&escaped, *cwd);
	}
	safe = text_take(&escaped);
	if (safe)
		joined = remote_join(safe, pattern);
	free(safe);
	return joined;
}

char *remote_normalize(char *path)
{
	char *out = path;

	for (const char *in = path; *in;) {
		size_t len;

		in += strspn(in, "/");
		len = strcspn(in, "/");
		if (!len)
			break;
		if (len == 2 && in[0] == '.' && in[1] == '.') {
			while (out > path && *--out != '/')
				;
		} else if (len != 1 || in[0] != '.') {
			*out++ = '/'; /* never overtakes `in`: it had a '/' too */
			memmove(out, in, len);
			out += len;
		}
		in += len;
	}
	if (out == path)
		*out++ = '/';
	*out = '\0';
	return path;
}

const char *remote_last(const char *path, size_t *len)
{
	const char *end = path + strlen(path), *start;

	while (end > path && end[-1] == '/')
		end--;
	start = end;
	while (start > path && start[-1] != '/')
		start--;
	*len = (size_t)(end - start);
	return start;
}

/* ---- patterns ---- */

bool remote_has_magic(const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern == '\\' && pattern[1])
			pattern++;
		else if (strchr("*?[", *pattern))
			return true;
	}
	return false;
}

struct paths {
	char **list;
	size_t count;
};

static int paths_add(struct paths *paths, char *path)
{
	char **list = path ? realloc(paths->list, (paths->count + 1) * sizeof *list) : NULL;

	if (!list) {
		free(path);
		return -ENOMEM;
	}
	paths->list = list;
	list[paths->count++] = path;
	return 0;
}

void remote_glob_free(char **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(list[i]);
	free(list);
}

static char *remote_unescape(const char *pattern, size_t len)
{
	struct text out = {0};

	for (size_t i = 0; i < len; i++) {
		if (pattern[i] == '\\' && i + 1 < len)
			i++;
		text_putc(&out, pattern[i]);
	}
	return text_take(&out);
}

/* The names in `dir` that one component's pattern matches; `last`: of any kind, else directories
 * and what may be links to them. */
static int remote_glob_dir(
	struct calls *s, const char *dir, const char *component, bool last, struct paths *out)
{
	struct calls_list list;
	int err = calls_list(s, dir, &list);

	if (err == -ENOENT || err == -EACCES || err == -ENOTDIR)
		return 0; /* as a shell's pattern: nothing matches there */
	if (err)
		return err;
	for (size_t i = 0; i < list.count && !err; i++) {
		const struct calls_entry *e = &list.entries[i];

		if (!last && e->attr.type != MESSAGE_DIRECTORY && e->attr.type != MESSAGE_SYMLINK)
			continue;
		if (!fnmatch(component, e->name, FNM_PERIOD))
			err = paths_add(out, remote_join(dir, e->name));
	}
	calls_list_free(&list);
	return err;
}

/* All of `from`, each followed by one more component. */
static int remote_glob_step(
	struct calls *s, struct paths *from, const char *component, bool last, struct paths *to)
{
	bool magic = remote_has_magic(component);
	int err = 0;

	for (size_t i = 0; i < from->count && !err; i++) {
		char *name;

		if (magic) {
			err = remote_glob_dir(s, from->list[i], component, last, to);
			continue;
		}
		name = remote_unescape(component, strlen(component));
		err = name ? paths_add(to, remote_join(from->list[i], name)) : -ENOMEM;
		free(name);
	}
	return err;
}

/* Names behind the last special one were not looked up yet. */
static int remote_glob_existing(struct calls *s, struct paths *paths)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < paths->count; i++) {
		struct message_attr attr;

		if (!err)
			err = calls_stat(s, paths->list[i], &attr);
		if (!err)
			paths->list[kept++] = paths->list[i];
		else
			free(paths->list[i]);
		if (err == -ENOENT || err == -EACCES || err == -ENOTDIR)
			err = 0;
	}
	paths->count = kept;
	return err;
}

int remote_glob(struct calls *s, const char *pattern, char ***out, size_t *count)
{
	struct paths now = {0}, next;
	bool magic = false;
	int err;

	*out = NULL;
	*count = 0;
	if (!remote_has_magic(pattern)) {
		err = paths_add(&now, remote_unescape(pattern, strlen(pattern)));
		goto done;
	}
	err = paths_add(&now, strdup("/"));
	while (!err && *(pattern += strspn(pattern, "/"))) {
		size_t len = strcspn(pattern, "/");
		char *component = strndup(pattern, len);

		pattern += len;
		next = (struct paths){0};
		magic = component && remote_has_magic(component);
		err = component ? remote_glob_step(
					  s, &now, component, !pattern[strspn(pattern, "/")], &next)
				: -ENOMEM;
		free(component);
		remote_glob_free(now.list, now.count);
		now = next;
	}
	if (!err && !magic)
		err = remote_glob_existing(s, &now);
	if (!err && !now.count)
		err = -ENOENT;
done:
	if (err) {
		remote_glob_free(now.list, now.count);
		return err;
	}
	*out = now.list;
	*count = now.count;
	return 0;
}
