/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/leftovers: all that transfers which were cut off have left in a directory and all
 * directories beneath it, one after the other, and removing it.  What a running transfer uses
 * stays: it holds a lock, under which what goes is removed.
 *
 * The names are those of tree/journal, tree/tree_mark and tree/temporary.  One thread at a time.
 */
#ifndef TREE_LEFTOVERS_H
#define TREE_LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>

struct leftovers;

struct space_share;
struct leftovers_params {
	int top; /* beneath.h; stays the caller's */
	const char *path;
	bool remove;    /* what nobody uses */
	uint64_t age_s; /* and was not written to for so long */
	struct space_share *space;
};

enum leftovers_kind {
	LEFTOVERS_DIRECTORY = 1, /* none: a directory that cannot be looked into */
	LEFTOVERS_FILE,          /* a partial file with its journal: can be gone on with */
	LEFTOVERS_PART,          /* one that cannot */
	LEFTOVERS_TREE,          /* of a transfer of several files */
};
enum leftovers_state {
	LEFTOVERS_IDLE = 1,
	LEFTOVERS_BUSY,   /* a transfer uses it */
	LEFTOVERS_UNSURE, /* one may: of another host, or not to be looked at */
	LEFTOVERS_REMOVED,
};

struct leftovers_item {
	enum leftovers_kind kind;
	enum leftovers_state state;
	int error;                           /* why it could not be looked at, or removed; or 0 */
	int64_t changed_s;                   /* when it was last written to */
	uint64_t disk_bytes;                 /* that it takes */
	uint64_t verified_bytes, size_bytes; /* of the file: noted as right, and all; or 0 */
	char name[256];   /* what it belongs to, in the same directory; "": not known */
	const char *path; /* its own, beneath the directory; until the next call */
};

/* 0; -ENOTDIR, or -errno of looking at it. */
int leftovers_new(const struct leftovers_params *, struct leftovers **out);
void leftovers_free(struct leftovers *); /* takes NULL */
/* The next one: 1; 0: there is none; -EAGAIN: `until_ns` of clock_now_ns is over; -ENOMEM, or
 * -errno: the directory itself cannot be read. */
int leftovers_next(struct leftovers *, uint64_t until_ns, struct leftovers_item *);

#endif
