/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_tree.c: owns the descriptor of the user's directory while it is walked.
 */
#include "tree/outgoing_tree.h"

#include "tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int outgoing_tree_open(int top, const char *path, struct outgoing_tree **out)
{
	struct outgoing_tree *tree = calloc(1, sizeof(*tree));
	int fd;

	*out = NULL;
	if (!tree)
		return -ENOMEM;
	tree->users = 1;
	tree->top = top;
	tree->path = tree->root = path;
	if (top == AT_FDCWD) {
		/* a link that the user named is followed; what is in the directory cannot lead out
		 * of it */
		fd = beneath_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
		if (fd < 0) {
			free(tree);
			return fd;
		}
		tree->top = fd;
		tree->path = "";
		tree->own = true;
	}
	*out = tree;
	return 0;
}

struct outgoing_tree *outgoing_tree_take(struct outgoing_tree *tree)
{
	atomic_fetch_add(&tree->users, 1);
	return tree;
}

void outgoing_tree_give(struct outgoing_tree *tree)
{
	if (!tree || atomic_fetch_sub(&tree->users, 1) != 1)
		return;
	if (tree->own)
		close(tree->top);
	free(tree);
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
