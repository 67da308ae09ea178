/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/selection: some names of a tree, in the order in which a walk would come to them, with the
 * directories on the way.
 *
 * Before the first name in a directory that directory is entered, and after the last it is left, so
 * that whoever makes them can give them their mode and time in the end.  Pure.
 */
#ifndef TREE_SELECTION_H
#define TREE_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

struct selection { /* zeroed: empty */
	char **names;
	size_t count, room, at;
	/* on the way through: */
	char *way;  /* the directory that it is in, "" for the top */
	char *told; /* the name that the last step gave */
};

enum selection_step {
	SELECTION_END,
	SELECTION_ENTER, /* a directory on the way to what comes next */
	SELECTION_NAME,
	SELECTION_LEAVE,
};

/* The order of walks: a directory before what is in it, and that before its next neighbour. */
int selection_order(const char *a, const char *b);

void selection_fini(struct selection *);
/* A name: components with '/' between, none empty.  With one more '/' behind it is a directory
 * itself, without what is in it: it is entered and left (or whatever the caller makes of what is no
 * directory).  Copied.  0 or -ENOMEM. */
int selection_add(struct selection *, const char *name, size_t len);
/* All are there (so far): sorts them; each comes once, and none that is beneath another one.  0,
 * -ENOMEM. */
int selection_sort(struct selection *);
/* The next step, and the name that it is about, which is good until the next one. */
enum selection_step selection_next(struct selection *, const char **name);
/* After SELECTION_ENTER: what was entered is a name with a '/' behind, and nothing in it was added.
 */
bool selection_is_last(const struct selection *);

#endif
