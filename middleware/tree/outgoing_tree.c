/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_tree.c: owns the descriptor of the user's directory while it is walked.
 */
#include "tree/outgoing_tree.h"

#include "tree/beneath.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int outgoing_tree_open(int top, const char *path, struct outgoing_tree *tree)
{
	int fd;

	*tree = (struct outgoing_tree){.top = top, .path = path, .root = path};
	if (top != AT_FDCWD)
		return 0;
	/* a link that the user named is followed; what is in the directory can not lead out of it
	 */
	fd = beneath_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	tree->top = fd;
	tree->path = "";
	tree->own = true;
	return 0;
}

void outgoing_tree_close(struct outgoing_tree *tree)
{
	if (tree->own)
		close(tree->top);
	tree->own = false;
}

char *outgoing_tree_path(const struct outgoing_tree *tree, const char *path)
{
	size_t length = strlen(tree->root), size = length + strlen(path) + 2;
	char *whole;

	if (!tree->own)
		return strdup(path);
	whole = malloc(size);
	if (whole)
		snprintf(whole, size, "%s%s%s", tree->root,
			*path && length && tree->root[length - 1] != '/' ? "/" : "", path);
	return whole;
}
