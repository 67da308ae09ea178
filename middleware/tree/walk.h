/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/walk: the names of a directory tree in order: a directory before what is in it, and once
 * more behind that; entries sorted by their bytes.
 *
 * Holds the names of the directories it is in, and no descriptor between calls, or one where it
 * looks at each entry.  Leaves out
 * the names of tree/temporary, unless they are asked for.  One that is followed
 * into a directory above it is -ELOOP.  The start may be a link itself.
 */
#ifndef TREE_WALK_H
#define TREE_WALK_H

#include "tree/filter.h"

#include <stdbool.h>
#include <sys/stat.h>

struct walk;

enum walk_links {          /* symbolic links in a tree */
	WALK_LINKS_KEEP,   /* are links */
	WALK_LINKS_FOLLOW, /* are what they lead to */
	WALK_LINKS_SKIP,   /* are left out */
};

enum walk_kind {
	WALK_DIRECTORY, /* `st` is set; its entries come next */
	WALK_LEAVE,     /* of a directory whose entries have come, `st` as it was before them */
	WALK_FILE,      /* was a regular file when it was listed */
	WALK_LINK,      /* a symbolic link; one that is followed leads to no directory */
	WALK_OTHER,     /* a device, FIFO, socket */
};

struct walk_entry {
	enum walk_kind kind;
	int error;        /* -errno: a directory that cannot be read, a link into one above it */
	const char *path; /* beneath `top`; both until the next call */
	const char *name; /* beneath the destination */
	/* of a directory: of one that is left only its mode and time are set; with walk_look of
	 * each entry that has no error */
	struct stat st;
};

/* `path`: a directory beneath `top` (beneath.h); `name`: what to call it.  0 or -ENOMEM. */
int walk_new(int top, const char *path, const char *name, enum walk_links, struct walk **out);
/* Names that the filter excludes are left out, and of directories all that is in them; the start is
 * not asked about.  Before the first walk_next; NULL: none is excluded.  It stays the caller's. */
void walk_set_filter(struct walk *, const struct filter *);
/* The directory itself: nothing that is in it is told. */
void walk_alone(struct walk *);
/* Looks at each entry: `st` is set of files and links, too, and what has gone meanwhile does not
 * come.  Before the first walk_next. */
void walk_look(struct walk *);
/* The names of tree/temporary come, too.  Before the first walk_next. */
void walk_hidden(struct walk *);
void walk_free(struct walk *);
/* The next name: 1; 0 at the end; -ENOMEM. */
int walk_next(struct walk *, struct walk_entry *);

#endif
