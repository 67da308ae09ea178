/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/parent.c: see parent.h.
 */
#include "tree/parent.h"

#include "tree/beneath.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes of the directory's path, with the slash. */
static size_t parent_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

static bool parent_is(const struct parent *p, const char *path, size_t length)
{
	return p->open && length == p->length && !memcmp(p->path, path, length);
}

bool parent_has(const struct parent *p, const char *path)
{
	return parent_is(p, path, parent_length(path));
}

static bool parent_is_name(const char *last)
{
	return *last && strcmp(last, ".") != 0 && strcmp(last, "..") != 0;
}

int parent_open(struct parent *p, int top, const char *path, const char **last)
{
	size_t length = parent_length(path);
	char name[256], *grown;

	*last = path + length;
	if (!parent_is_name(*last))
		return -EINVAL;
	if (strlen(*last) > NAME_MAX)
		return -ENAMETOOLONG;
	if (parent_is(p, path, length))
		return p->fd;
	parent_close(p);
	if (length + 1 > p->room) {
		grown = realloc(p->path, 2 * (length + 1));
		if (!grown)
			return -ENOMEM;
		p->path = grown;
		p->room = 2 * (length + 1);
	}
	p->fd = beneath_open_parent(top, path, name);
	if (p->fd < 0)
		return p->fd;
	memcpy(p->path, path, length);
	p->length = length;
	p->open = true;
	return p->fd;
}

void parent_close(struct parent *p)
{
	if (p->open)
		close(p->fd);
	p->open = false;
	p->fd = -1;
}

void parent_fini(struct parent *p)
{
	parent_close(p);
	free(p->path);
	*p = (struct parent){0};
}
