/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_remote_path: remote paths as text, and patterns against a server that lists what it likes.
 *
 * Input: two strings, each ended by a NUL: a directory and a path or pattern; then the names of
 * listings, one behind the other, each ended by a NUL, each listing by an empty name.
 */
#include "rftp/remote/remote_path.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#define NAMES_MAX 8

static struct fuzz_input listings;
static unsigned requests;

/* ---- the server ---- */

int calls_list(struct calls *c, const char *path, struct calls_list *list)
{
	(void)c;
	must(path[0] == '/');
	*list = (struct calls_list){0};
	if (!listings.left || requests++ > 64)
		return -ENOENT;
	list->entries = calloc(NAMES_MAX, sizeof *list->entries);
	must(list->entries);
	while (list->count < NAMES_MAX && listings.left) {
		char *name = fuzz_string(&listings);
		const struct wire_bytes bytes = {(const uint8_t *)name, strlen(name)};

		if (!message_name_ok(bytes)) { /* none that a reply could have */
			free(name);
			break;
		}
		list->entries[list->count++] = (struct calls_entry){
			.attr.type = name[0] & 1 ? MESSAGE_DIRECTORY : MESSAGE_FILE, .name = name};
	}
	return 0;
}

void calls_list_free(struct calls_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->entries[i].name);
	free(list->entries);
	*list = (struct calls_list){0};
}

int calls_stat(struct calls *c, const char *path, struct message_attr *attr)
{
	(void)c;
	must(path[0] == '/');
	*attr = (struct message_attr){.type = MESSAGE_FILE};
	return requests++ & 1 ? -ENOENT : 0;
}

/* ---- what must hold ---- */

static void check_normal(const char *path)
{
	must(path[0] == '/');
	for (const char *p = path; *p; p++) {
		size_t len;

		if (*p != '/')
			continue;
		len = strcspn(p + 1, "/");
		must(len || !strcmp(path, "/"));
		must(!(len == 1 && p[1] == '.') && !(len == 2 && p[1] == '.' && p[2] == '.'));
	}
}

static void fuzz_path(const char *cwd, const char *path)
{
	char *joined = remote_join(cwd, path), *again;
	const char *last;
	size_t len;

	must(joined);
	must(path[0] != '/' || !strcmp(joined, path));
	last = remote_last(joined, &len);
	must(last >= joined && last + len <= joined + strlen(joined) && !memchr(last, '/', len));
	if (joined[0] == '/') {
		remote_normalize(joined);
		check_normal(joined);
		again = strdup(joined);
		must(again && !strcmp(remote_normalize(again), joined));
		free(again);
	}
	free(joined);
}

static void fuzz_pattern(const char *cwd, const char *path)
{
	char *pattern = remote_join_pattern(cwd, path), **paths;
	size_t count;
	int err;

	must(pattern);
	must(remote_has_magic(path) || path[0] == '/' || !remote_has_magic(pattern));
	err = pattern[0] == '/' ? remote_glob(NULL, pattern, &paths, &count) : -ENOENT;
	must(!err || err == -ENOENT);
	if (!err) {
		must(count);
		for (size_t i = 0; i < count; i++)
			must(paths[i][0] == '/');
		remote_glob_free(paths, count);
	}
	free(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	char *cwd = fuzz_string(&in), *path = fuzz_string(&in);

	listings = in;
	requests = 0;
	fuzz_path(cwd, path);
	fuzz_pattern(cwd[0] == '/' ? cwd : "/d[1]*", path);
	free(cwd);
	free(path);
	return 0;
}
