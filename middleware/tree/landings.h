/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/landings: many small files and links beneath one directory, made real together: as
 * tree/landing does it one by one, but with one flush for many.
 *
 * Each file is written under a hidden temporary name.  Then the data of all are flushed, then each
 * gets mode, time and name, then each directory is flushed, unless nothing is to be.  Whatever
 * fails, fails alone; only a directory that cannot be flushed takes all that got their names in it.
 */
#ifndef TREE_LANDINGS_H
#define TREE_LANDINGS_H

#include "tree/flush.h"
#include "tree/metadata.h"
#include "tree/space.h"

#include <stdint.h>

struct landings_file {
	const char *path;   /* beneath the top; what is missing on the way is made */
	const char *target; /* of a link; NULL: it is a file */
	const uint8_t *data;
	uint64_t bytes;
	struct metadata metadata;
	/* the outcome: 0 or -errno, as of landing_open and landing_commit */
	int err;
	char *text; /* malloc'd: a note, or what failed; NULL: nothing to say, or it was not begun
		     */
	unsigned long dir; /* landings.c's */
};

struct landings_params {
	int top;                   /* beneath.h */
	struct space_share *space; /* as of landing_params */
	unsigned open_max; /* descriptors at once, of directories, too; there are at least two */
	struct flush_costs *costs;
	bool unsynced; /* neither the files nor their directories are flushed */
};

/* All in the caller's thread: it blocks.  What is there already is replaced. */
void landings_run(const struct landings_params *, struct landings_file *, unsigned count);

#endif
