/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/removal: a directory with all that is in it goes, a while at a time.
 *
 * Symbolic links are removed, never followed: what the directory was when the call began confines
 * it.  Two descriptors at most, whatever the depth.
 */
#ifndef TREE_REMOVAL_H
#define TREE_REMOVAL_H

#include <stdbool.h>
#include <stdint.h>

struct removal {
	uint64_t removed; /* names, so far */
	bool more;        /* the time was over first: call it once more */
	char *fault;      /* after an error: the path that could not be removed; free() it */
};

/*
 * Removes what `path` beneath `top` (beneath.h) names, also a file or a link.  Ends some time after
 * `until_ns` of clock_now_ns.  0 or -errno: what came before the fault is gone by then.  -ENOENT:
 * there is nothing of that name; -EINVAL: it is the top itself, or ends in "..".  What goes is
 * taken off the count, if there is one (tree/space).  Blocks.
 */
struct space_share;
int removal_run(
	int top, const char *path, uint64_t until_ns, struct space_share *, struct removal *);

#endif
