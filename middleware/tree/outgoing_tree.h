/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_tree: what the walk of a directory that is sent is confined beneath.
 *
 * An export's names are confined beneath the export.  The user's own are not, but a tree of them is
 * confined beneath its directory, which is opened once: whoever swaps a directory in it for a link
 * during the walk must not lead us out.
 */
#ifndef TREE_OUTGOING_TREE_H
#define TREE_OUTGOING_TREE_H

#include <stdatomic.h>
#include <stdbool.h>

struct outgoing_tree {
	atomic_uint users;
	int top;          /* beneath.h: an export's, or the user's directory itself */
	const char *path; /* of the tree's directory beneath it */
	const char *root; /* of the tree's directory, as it was named; the caller keeps it */
	bool own;         /* `top` is ours to close */
};

/* `top`: an export or AT_FDCWD; `path` outlives the tree.  It has one user.  0 or -errno. */
int outgoing_tree_open(int top, const char *path, struct outgoing_tree **out);
struct outgoing_tree *outgoing_tree_take(struct outgoing_tree *); /* one user more: itself */
/* One less, from any thread; the last one closes it.  Takes NULL. */
void outgoing_tree_give(struct outgoing_tree *);
/* The path of a walked name as it is known outside; the caller frees it.  NULL: no memory. */
char *outgoing_tree_path(const struct outgoing_tree *, const char *path);

#endif
