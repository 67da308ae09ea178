/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/compare: two trees, name by name: what has to be copied so that the second becomes the
 * first, and what is in the second alone.
 *
 * Both lists come in the order of walks (tree/selection).  Pure.
 */
#ifndef TREE_COMPARE_H
#define TREE_COMPARE_H

#include "proto/message_tree.h"
#include "tree/selection.h"

#include <stdbool.h>

#define COMPARE_SUM_BYTES 16u

struct compare_entry {
	char *name, *target; /* target: of a link; else NULL */
	uint8_t type;        /* enum message_file_type */
	uint16_t failed;     /* not 0, a status: it could not be looked at, or into */
	/* Only what the list has of it belongs to the tree: it is neither copied nor removed as a
	 * whole. */
	bool part;
	/* A directory of the first tree that is copied without what is in it, unless the list has
	 * that as well. */
	bool alone;
	uint16_t mode;
	uint32_t mtime_ns;
	int64_t mtime_s;
	uint64_t size;
	/* What was asked for beyond these (proto/message_tree.h): */
	uint8_t has;                       /* enum message_tree_has */
	const struct compare_owner *owner; /* the list's; NULL: not known */
	uint64_t extra, inode;
	uint64_t change; /* struct message_seen's; 0: not known */
	uint64_t disk;   /* of it, what takes room at least; 0 of one that has holes */
	/* What the caller may know beside the listing: */
	/* Of a file that has other names, which are not one file in the second tree (yet): the
	 * first of them.  Else NULL. */
	struct compare_entry *leader;
	unsigned round; /* the caller's */
	bool has_sum;   /* of what is in it: files of equal sums and sizes are the same */
	bool renamed;   /* it has this name since it was listed */
	bool touched;   /* a directory that has another time since */
	uint8_t sum[COMPARE_SUM_BYTES];
};

struct compare_owner {
	struct compare_owner *next;
	uint32_t uid, gid;
	char *user, *group; /* "": only the number is known */
};

struct compare_list { /* zeroed: empty */
	struct compare_entry *entries;
	size_t count, room;
	size_t failed;                /* of them */
	struct compare_entry top;     /* the directory itself; its name is "", or NULL: not known */
	struct compare_owner *owners; /* that entries have, the last one first */
};

/* Appends one, copied; one without a name is the top.  0; -ENOMEM; -EPROTO: it does not come behind
 * the last one. */
int compare_list_add(struct compare_list *, const struct message_tree_entry *);
/* Appends one as it is, wherever its place would be; its name is taken over.  0 or -ENOMEM. */
int compare_list_append(struct compare_list *, const struct compare_entry *);
/* The entry of a name, of a list in the order of walks; NULL: none. */
struct compare_entry *compare_list_find(const struct compare_list *, const char *name);
/* What an entry of a regular file was seen as. */
struct message_seen compare_seen(const struct compare_entry *);
/* Whether the list has the name with just this modification time. */
bool compare_list_has(
	const struct compare_list *, const char *name, int64_t mtime_s, uint32_t mtime_ns);
void compare_list_fini(struct compare_list *);

/* When two files are taken for the same. */
enum compare_level {
	COMPARE_MTIME,  /* size and time are; one of whole seconds equals any in that second */
	COMPARE_SIZE,   /* the size is */
	COMPARE_EXISTS, /* always */
	COMPARE_DIGEST, /* the sum is */
};

struct compare_names {
	const struct compare_entry **entries; /* of a list, which outlives it */
	size_t count, room;
};

/* What is the same in both trees but for mode or time, or what else was asked for. */
struct compare_pair {
	const struct compare_entry *from; /* of the first tree's list, which outlives it */
	const struct compare_entry *to;   /* likewise, of the second's; NULL: of directories */
	bool mode, mtime;                 /* what differs */
	bool owner, other;                /* other: attributes, lists, or that it is a hard link */
};
struct compare_pairs {
	struct compare_pair *entries;
	size_t count, room;
};

struct compare_plan { /* zeroed before */
	/* Names to be copied; of a directory that the second tree lacks all that is in it; one that
	 * ends in '/' is a directory that is there, or comes alone, or a file that is the same: it
	 * gets mode and time, and what else was asked for. */
	struct selection copy;
	/* What of those with a '/' behind differs beyond mode and time; the files are among `same`.
	 */
	struct compare_pairs beside;
	uint64_t files, bytes, largest_bytes; /* of the files among them */
	/* What they need room for at least, and what goes when they replace those of the second
	 * tree
	 */
	uint64_t disk_bytes, replaced_bytes;
	/* Files and links that get mode or time, and are not copied: they are among `same`. */
	struct compare_pairs attrs;
	/* In the second tree, and in the way of what comes: another kind of thing.  Removed before
	 * anything is copied. */
	struct compare_names in_the_way;
	/* Directories of the second tree that are in the way, and have to stay since only a part of
	 * them is the tree's: what is called so in the first one is not copied. */
	struct compare_names blocked;
	/* In the second tree alone, of a directory only itself. */
	struct compare_names extra;
	uint64_t extra_names; /* with all that is in directories */
	uint64_t same;        /* files that are as they should be */
	uint64_t special; /* in the first tree, and neither file, directory nor link: not copied */
	/* Of these, those in no directory that is copied, so that no transfer comes across them;
	 * and the first one's name, which is the list's. */
	uint64_t special_apart;
	const char *first_apart;
};

struct compare_params {
	enum compare_level level;
	/* What is extra is about to go: directories that it is in are among `copy`, to get their
	 * times back. */
	bool remove;
	mode_t mode_mask;  /* bits of a file's mode that can be kept at all */
	bool owner, group; /* these count, of what may be given to others */
	bool numeric;      /* by number, whatever the names are */
	/* A file's mode is a part of its list: it is set with that. */
	bool lists;
};
/* Whether modes and times count, too. */
bool compare_is_judged(enum compare_level);
/* Of files of the first tree that are one file there, under names of which the second tree has
 * some: whether they are one there, too; else each has its `leader`.  The list is not added to from
 * then on.  0 or -ENOMEM. */
int compare_links(struct compare_list *from, const struct compare_list *to);
/* Of one name of both, what differs beyond mode and time, as far as it counts. */
struct compare_pair compare_beside(const struct compare_entry *from, const struct compare_entry *to,
	const struct compare_params *);
/* 0 or -ENOMEM.  `copy` is sorted. */
int compare_make(const struct compare_list *from, const struct compare_list *to,
	const struct compare_params *, struct compare_plan *);
void compare_plan_fini(struct compare_plan *);
/* One of `attrs`, both of files, is not what was listed any more: it is copied, too.  The caller's
 * to sort `copy` when all have been said.  0 or -ENOMEM. */
int compare_plan_copy_too(struct compare_plan *, const struct compare_pair *);
/* The room that the plan needs beyond what it frees on its way. */
uint64_t compare_plan_room(const struct compare_plan *);

#endif
