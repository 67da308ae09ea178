/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/traits: what a listing tells of a name beyond mode, time and size, so that two trees can be
 * compared: owner and group, extended attributes, access control lists, which names are one file.
 *
 * Attributes and lists are told as one number: whoever finds another one sends them, and need not
 * know how they differ.  A file is opened for them; one that may not be read has no number.
 */
#ifndef TREE_TRAITS_H
#define TREE_TRAITS_H

#include "proto/message_tree.h"

#include <sys/stat.h>

struct traits;

/* `flags`: of MESSAGE_TREE_*, what is wanted; none: *out is NULL.  0 or -ENOMEM. */
int traits_new(uint32_t flags, struct traits **out);
void traits_free(struct traits *); /* takes NULL */

struct traits_name {
	int top;          /* beneath.h */
	const char *path; /* beneath it */
	bool follow;      /* a symbolic link is what it leads to */
	const struct stat *st;
};

/* Sets what was asked for in an entry that was looked at; it points into the traits until the next
 * call.  Takes NULL, which sets nothing.  0 or -ENOMEM. */
int traits_look(struct traits *, const struct traits_name *, struct message_tree_entry *);

#endif
