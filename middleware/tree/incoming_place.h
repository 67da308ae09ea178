/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_place: a file that is written in place, behind its end or at an offset, in order,
 * and without a temporary name.
 *
 * There is nothing to undo: of a transfer that is cut short, or fails, what was written stays, and
 * that is the beginning of what was sent, each block of it verified.
 */
#ifndef TREE_INCOMING_PLACE_H
#define TREE_INCOMING_PLACE_H

#include "end/end.h"

#include <stdbool.h>
#include <stdint.h>

struct space_share;

struct incoming_place {
	bool wanted;
	bool create;     /* a file that is not there is made, empty */
	uint64_t offset; /* UINT64_MAX: behind the end, wherever that is at each write */
};

/* Opens the file for it: 0, an end that keeps order, and its descriptor, which is the end's.
 * `bytes` are about to come; UINT64_MAX: nobody knows.  -ENXIO: no regular file; -EDQUOT; other
 * -errno as of opening. */
int incoming_place_open(int top, const char *path, const struct incoming_place *,
	struct space_share *, uint64_t bytes, struct end **end, int *fd);

#endif
