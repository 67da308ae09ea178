/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/targets.c: owns the names.  Says nothing to the user.
 */
#include "rftp/copy/targets.h"

#include "rftp/remote/remote_path.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *targets_name(const char *path, size_t *len)
{
	const char *last = remote_last(path, len);

	if (last[*len] == '/' || (*len == 1 && last[0] == '.') ||
		(*len == 2 && !memcmp(last, "..", 2)))
		*len = 0;
	return last;
}

void targets_init(struct targets *n)
{
	*n = (struct targets){0};
}

void targets_fini(struct targets *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->entries[i].name);
	free(n->entries);
	targets_init(n);
}

int targets_add(struct targets *n, const char *name, size_t len, const char *source)
{
	struct targets_entry *entries;
	char *copy;

	if (n->count == n->room) {
		entries = realloc(n->entries, (n->room * 2 + 16) * sizeof *entries);
		if (!entries)
			return -ENOMEM;
		n->entries = entries;
		n->room = n->room * 2 + 16;
	}
	copy = strndup(name, len);
	if (!copy)
		return -ENOMEM;
	n->entries[n->count++] = (struct targets_entry){.name = copy, .source = source};
	return 0;
}

int targets_add_directory(struct targets *n, const char *source)
{
	DIR *dir = opendir(source);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return 0;
	while (!err && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			err = targets_add(n, entry->d_name, strlen(entry->d_name), source);
	closedir(dir);
	return err;
}

static int targets_compare(const void *a, const void *b)
{
	return strcmp(
		((const struct targets_entry *)a)->name, ((const struct targets_entry *)b)->name);
}

const struct targets_entry *targets_clash(struct targets *n)
{
	if (n->count < 2)
		return NULL;
	qsort(n->entries, n->count, sizeof *n->entries, targets_compare);
	for (size_t i = 1; i < n->count; i++)
		if (!strcmp(n->entries[i - 1].name, n->entries[i].name))
			return &n->entries[i - 1];
	return NULL;
}
