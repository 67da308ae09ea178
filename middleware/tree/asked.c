/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/asked: see asked.h.
 */
#include "tree/asked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void asked_fini(struct asked *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->names[i].name);
	free(a->names);
	*a = (struct asked){0};
}

int asked_add(struct asked *a, const char *name, size_t len, const char *path)
{
	struct asked_name *names = a->names;

	if (a->count == a->room) {
		names = realloc(names, (2 * a->room + 8) * sizeof *names);
		if (!names)
			return -ENOMEM;
		a->names = names;
		a->room = 2 * a->room + 8;
	}
	names[a->count] = (struct asked_name){.name = strndup(name, len), .path = path};
	if (!names[a->count].name)
		return -ENOMEM;
	a->count++;
	a->sorted = false;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct asked_name *)a)->name, ((const struct asked_name *)b)->name);
}

static int compare_bytes(const void *bytes, const void *name)
{
	const struct wire_bytes *key = bytes;
	const char *other = ((const struct asked_name *)name)->name;
	size_t len = strlen(other);
	int order = memcmp(key->data, other, key->len < len ? key->len : len);

	return order ? order : key->len < len ? -1 : key->len > len;
}

struct asked_name *asked_find(struct asked *a, struct wire_bytes file)
{
	const uint8_t *slash = a->tree && file.len ? memchr(file.data, '/', file.len) : NULL;
	struct wire_bytes first = {file.data, slash ? (size_t)(slash - file.data) : file.len};

	if (!a->count)
		return NULL;
	if (!a->sorted)
		qsort(a->names, a->count, sizeof *a->names, compare);
	a->sorted = true;
	if (!*a->names->name && (a->tree || !file.len))
		return a->names; /* sorted, it is the first */
	return file.len ? bsearch(&first, a->names, a->count, sizeof *a->names, compare_bytes)
			: NULL;
}

bool asked_take(struct asked *a, const struct transfer_file *file)
{
	struct asked_name *name = asked_find(a, file->name);

	if (!name || (!a->tree && (name->came || (transfer_is_bare(file) &&
							 file->kind != TRANSFER_FILE_HARD_LINK))))
		return false;
	name->came = true;
	return true;
}
