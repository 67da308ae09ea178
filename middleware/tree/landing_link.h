/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/landing_link: one arriving name that has no bytes of its own: a symbolic link, or another
 * name of a file that landed.
 */
#ifndef TREE_LANDING_LINK_H
#define TREE_LANDING_LINK_H

#include "tree/landing.h"

/* A symbolic link in place of a file: all at once.  A link or file that is there is replaced, also
 * a link to a directory.  Errors as of landing_open and landing_commit, `text` as of the latter;
 * only owner, group and time of `metadata` count. */
int landing_link(const struct landing_params *, const char *target, char text[512]);
/* The same of a name in an open directory, which is not flushed. */
int landing_link_at(const struct landing_params *, int dir, const char *last, const char *target,
	char text[512]);
struct landing_file {     /* one that is there */
	const char *path; /* beneath the same top */
	dev_t dev;
	ino_t ino;
};
/* Another name of a file that landed: all at once, in place of a file or link that is there.
 * -ESTALE: what has the file's path is another file.  Errors and `text` as of landing_link. */
int landing_hard_link(const struct landing_params *, const struct landing_file *, char text[512]);

#endif
