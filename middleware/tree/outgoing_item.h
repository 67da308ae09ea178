/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_item: one item that is sent: its names, its descriptor, and what it was when it was
 * opened.
 */
#ifndef TREE_OUTGOING_ITEM_H
#define TREE_OUTGOING_ITEM_H

#include "transfer/transfer.h"
#include "tree/compare.h"
#include "tree/outgoing_keep.h"
#include "tree/outgoing_links.h"
#include "tree/outgoing_tree.h"

#include <sys/stat.h>

/* An item on its way: the transfer's cookie. */
struct outgoing_item {
	char *path, *name, *target;
	const char *place; /* of the root that it belongs to */
	void *kept;        /* tree/outgoing_keep's */
	int fd;            /* for the check; -1 = none */
	struct stat before;
	/* while it is closed: where it is */
	struct outgoing_tree *tree; /* NULL: not in one */
	int top;
	const char *beneath; /* in `path` */
	int flags;           /* O_NOFOLLOW or 0 */
};

/* A regular file, until something else is said.  `path`: as it is known outside; `name`: beneath
 * the destination; both are copied.  0 or -ENOMEM. */
int outgoing_item_new(const char *path, const char *name, struct transfer_item *);
void outgoing_item_free(struct outgoing_item *); /* takes NULL */

void outgoing_item_attributes(struct transfer_item *, const struct stat *);
/* Of what has none: those of a file that is made now. */
void outgoing_item_now(struct transfer_item *);

struct outgoing_from {
	int top;          /* beneath.h */
	const char *path; /* beneath it */
	int flags;        /* O_NOFOLLOW or 0 */
	enum end_direct direct;
	struct outgoing_keep *keep;
	struct outgoing_links *links; /* NULL: a file's other names are files of their own */
	uint32_t number;              /* of the item in the transfer */
	bool dense;                   /* holes are read, and sent as zeros */
	const struct compare_list *listed, *listed_there; /* struct outgoing_params' */
};

/* Leaves the item's file closed: it is where `from` says, and its path there is the last `length`
 * bytes of the item's; or in a tree, of which it becomes a user (NULL: it is in none). */
void outgoing_item_close(struct transfer_item *, const struct outgoing_from *,
	struct outgoing_tree *, size_t length);
/* It needs its tree no more. */
void outgoing_item_leave(struct outgoing_item *);
/* Opens the item's file, or makes the item a hard link to one that was opened before.  0 or -errno:
 * -EISDIR, -ENXIO: it is no file. */
int outgoing_item_open(struct transfer_item *, const struct outgoing_from *);
/* The same of a descriptor, which it takes over; of `from` not the place counts. */
int outgoing_item_adopt(
	struct transfer_item *, const struct outgoing_from *, int fd, const struct stat *);
/* Whether a file can be sent: 0, or as of outgoing_item_open. */
int outgoing_item_is_file(int fd, const struct stat *);
/* At least a page of it is not on the disk. */
bool outgoing_item_is_sparse(const struct stat *);
/* -ESTALE: it has changed; -EAGAIN: its size and time are what they were, but something was done to
 * it: it was renamed, linked, given another mode, or written to and given its old time. */
int outgoing_item_compare(const struct stat *before, const struct stat *now);
/* Makes it a symbolic link, and reads what that says.  0 or -errno; -ESTALE: it is none. */
int outgoing_item_read_link(struct transfer_item *, const struct outgoing_from *);
/* What a directory is sent with beyond mode and time.  0 or -errno. */
int outgoing_item_keep_directory(struct transfer_item *, const struct outgoing_from *);
/* A file's mode and time, and what is sent beyond these, but no bytes; or a hard link to one that
 * was met before.  0 or -errno; -ESTALE: it is not what was listed. */
int outgoing_item_read_attributes(struct transfer_item *, const struct outgoing_from *);
/* Whether its file is what it was: 0; -ESTALE, -EAGAIN as above; -errno. */
int outgoing_item_check(const struct transfer_item *);

/* What a symbolic link leads to: 0 when it is a regular file. */
int outgoing_item_leads_to(int top, const char *path, struct stat *);

#endif
