/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/leftover: partial files with their journals whose writer is gone: what they are, and
 * removing them.
 */
#ifndef TREE_LEFTOVER_H
#define TREE_LEFTOVER_H

#include <stdbool.h>
#include <stdint.h>

#define LEFTOVER_KEEP_S (7u * 24 * 60 * 60) /* unless somebody says otherwise */

struct leftover {
	char name[256];         /* of the file that was to arrive */
	uint64_t size;          /* that it would have */
	uint64_t partial_bytes; /* what the partial file takes on the disk */
	uint64_t noted_bytes;   /* what the journal says is there of it */
	int64_t changed_s;      /* when it was last written to */
	bool busy;              /* somebody writes to it now */
};

/* Whether a name is that of a journal or of a partial file. */
bool leftover_is_name(const char *name);

/* What a journal of that name says.  0; -ENODATA: nothing; -errno: it cannot be read. */
int leftover_get(int dir, const char *journal, struct leftover *);

/* Of a journal's or a partial file's name: removes both, if nobody writes to them and the last note
 * is older than `keep_s`, or if one of them is there alone.  0: *bytes is what that gave back;
 * -EBUSY: somebody writes to them; -EAGAIN: it is too young, or goes with its journal; -errno. */
int leftover_sweep(int dir, const char *name, uint64_t keep_s, uint64_t *bytes);

#endif
