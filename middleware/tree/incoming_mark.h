/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_mark: whether a transfer of many files goes on with one that was cut short
 * (tree/tree_mark), and leaves its own mark behind.
 *
 * Of the transfer's thread.  `dir` is the destination, the same in each call.
 */
#ifndef TREE_INCOMING_MARK_H
#define TREE_INCOMING_MARK_H

#include "proto/transfer.h"

#include <stdbool.h>
#include <time.h>

struct incoming_mark {
	char first[256];        /* the first name that came, up to its '/' */
	struct tree_mark *mark; /* NULL: nothing is gone on with */
	bool tried;             /* to have one */
	bool busy;              /* somebody else has it */
	struct timespec began;  /* the transfer did */
};

void incoming_mark_init(struct incoming_mark *);
/* A file of this name has come.  Several have a mark: it is made with the second one, or with the
 * first if that is a directory, where it is `wanted`. */
void incoming_mark_meet(struct incoming_mark *, int dir, const struct transfer_file *,
	const char *name, bool wanted);
/* Whether the file has landed at `path` beneath `top` in the transfer that this one goes on with,
 * and is as it would be now. */
bool incoming_mark_covers(
	const struct incoming_mark *, const struct transfer_file *, int top, const char *path);
/* All has come: the mark goes. */
void incoming_mark_drop(struct incoming_mark *);
/* The transfer is `over`, or was cut short; the mark stays for whoever goes on, where it is to be
 * `kept`. */
void incoming_mark_end(struct incoming_mark *, int dir, bool over, bool kept);

#endif
