/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/parent: the directory that a name is in, kept open for the next name.
 *
 * Names of a tree come directory by directory, so nearly all of them find theirs open, and cost no
 * walk from the top.
 */
#ifndef TREE_PARENT_H
#define TREE_PARENT_H

#include <stdbool.h>
#include <stddef.h>

struct parent { /* zeros: not open */
	bool open;
	int fd;
	char *path; /* of the directory beneath the top, with a slash behind it; "": the top */
	size_t length, room;
};

/*
 * Opens the directory of `path` beneath `top` (beneath.h), which must be the same for all calls
 * between two closes, to work in it: readable, if we may, so that it can be flushed.  *last is the
 * rest of `path`, a name without '/', never "", "." or "..".  The descriptor, which stays the
 * parent's, or -errno.
 */
int parent_open(struct parent *, int top, const char *path, const char **last);
/* Whether a path is in the directory that is open. */
bool parent_has(const struct parent *, const char *path);
void parent_close(struct parent *); /* also one that is not open; it can be used again */
void parent_fini(struct parent *);  /* closes it, too */

#endif
