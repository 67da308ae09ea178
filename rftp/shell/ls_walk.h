/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/ls_walk: what is in directories of the server, in the order in which ls tells it.
 *
 * Many are asked for before the first has answered, so that a tree takes as many round trips as it
 * is deep, and a bounded number wait to be told.  How a directory is told is the caller's.
 */
#ifndef RFTP_SHELL_LS_WALK_H
#define RFTP_SHELL_LS_WALK_H

#include "rftp/remote/client.h"
#include "session/calls_list.h"

struct ls_walk;

struct ls_walk_params {
	bool recursive; /* and what is in their directories, each behind the one that it is in */
	bool hidden;    /* those whose names begin with a dot, too */
	/* The list may be sorted otherwise, which is then the order of its directories, too. */
	void (*sort)(void *ctx, struct calls_list *);
	/* The title is NULL where none was given. */
	void (*tell)(void *ctx, const char *path, const char *title, const struct calls_list *);
	void *ctx;
};

/* The parameters are copied.  NULL: no memory, reported. */
struct ls_walk *ls_walk_new(struct client *, const struct ls_walk_params *);
/* One more directory; what is beneath it is called by its title.  0 or -ENOMEM, reported. */
int ls_walk_add(struct ls_walk *, const char *path, const char *title);
/* All that were added.  0 or the first -errno, each reported; ends early when interrupted. */
int ls_walk_run(struct ls_walk *);
void ls_walk_free(struct ls_walk *);

#endif
