/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal_impl.h: a journal's state.
 *
 *   journal.c         the two files, the lock, and what is written
 *   journal_recall.c  what is read, and proved by the partial file
 *   journal_gaps.c    of a file with holes, what is not proved becomes a hole
 *
 * Included by these only.
 */
#ifndef TREE_JOURNAL_IMPL_H
#define TREE_JOURNAL_IMPL_H

#include "tree/journal.h"
#include "tree/journal_record.h"

#include <sys/types.h>

struct journal {
	int dir, fd;
	char path[JOURNAL_PATH_BYTES]; /* in dir */
	char name[JOURNAL_NAME_MAX + 1];
	struct journal_file file; /* its name is `name`, its block what is noted from now on */
	off_t end;                /* where the next record goes */
	bool noted;               /* there is something in it */
	bool broken;              /* it could not be written */
	bool holes;               /* the file has some: zeros of it are not written */
	int fault;                /* what is not proved of such a file could not be made a hole */
	struct recall *recall;    /* that is under way */
};

/* One that was left behind is of the same source. */
bool journal_is_same(const struct journal *, const struct journal_file *);
/* One that is not called again.  Takes NULL. */
void journal_recall_free(struct recall *);
/* Adds a record that says what the file is: what is before it counts no more. */
void journal_begin(struct journal *);

#endif
