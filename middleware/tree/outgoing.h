/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing: files and directory trees as the source of a transfer (struct transfer_source).
 *
 * Give it the names; it walks, opens, checks that a file did not change while it was read, and
 * hands each outcome on.  Order: as added; a directory before what is in it and once more behind
 * that, its entries sorted by name.  Symbolic links in a tree are sent as links, or followed, or
 * left out; anything else that is neither file nor directory is told of, and not sent (where it was
 * added itself: -ENXIO).
 * Entries named like tree/temporary's are left out of walks.
 * With `top` AT_FDCWD a tree is confined beneath the directory that was added: a link in it that
 * leads out is -EXDEV.
 */
#ifndef TREE_OUTGOING_H
#define TREE_OUTGOING_H

#include "tree/compare.h"
#include "tree/outcome.h"
#include "tree/selection.h"
#include "tree/walk.h"

struct outgoing;

struct outgoing_params {
	int top;               /* beneath.h: an export, or AT_FDCWD for the user's own names */
	bool recursive;        /* else a directory is an error of that name (-EISDIR) */
	enum walk_links links; /* in trees; what is added itself is followed */
	/* Names beneath the destination that are left out, in silence; also of what is added.  The
	 * caller's; NULL: none. */
	const struct filter *filter;
	enum end_direct direct;
	uint16_t keep;    /* enum transfer_has: what is sent beyond mode and time */
	bool numeric_ids; /* owners by number alone */
	bool hard_links;  /* a file's second name is sent as a link to the first, not as a file */
	bool attributes;  /* of a selected file with a '/' behind all but its bytes is sent */
	/* Of such a file what it was compared as: with another modification time it has changed,
	 * and is not sent (-ESTALE), as its time would be that of other bytes.  The caller's; NULL:
	 * nobody knows. */
	const struct compare_list *listed;
	/* And what there is at the sink, which checks that its file still is that.  Likewise. */
	const struct compare_list *listed_there;
	bool dense;  /* holes are read, and sent as zeros: for a sink that keeps order */
	bool reread; /* files are read once more from the disk, and compared with what was sent */
	/* While sizes are added up (outgoing_measure): so many files so far, and bytes.  May be
	 * NULL.
	 */
	void (*measured)(void *ctx, uint64_t files, uint64_t bytes);
	/* Outcome of each name, once: its local path.  May be NULL. */
	void (*done)(void *ctx, const struct outcome *);
	void *ctx;
};

int outgoing_new(const struct outgoing_params *, struct outgoing **out);
void outgoing_free(struct outgoing *);
/* A file or directory to send.  `name`: what it is called beneath the destination ("" = it is the
 * destination; a directory then sends its entries beneath "").  Looks at it now (for the totals):
 * -ENOENT, -EISDIR, ... . */
int outgoing_add(struct outgoing *, const char *path, const char *name);
/* The same beneath another `top`; `place` says which one to those who are told of outcomes, and
 * outlives the outgoing. */
int outgoing_add_from(
	struct outgoing *, int top, const char *place, const char *path, const char *name);
/* What was asked for with others and cannot be had: an item that fails so, and keeps none of them
 * back. */
int outgoing_add_failed(struct outgoing *, const char *path, const char *name, int error);
/* Some names of a directory beneath `top`, and the directories on the way to them; of a directory
 * among them, where `recursive`, all that is in it.  They are called so beneath the destination.
 * Takes over what is in the selection, which is sorted.  Once, and nothing else is added.  0 or
 * -errno. */
struct outgoing_selected {
	int top;
	const char *place; /* as of outgoing_add_from */
	const char *directory;
	struct selection *selection;
	bool itself; /* in the end the directory: what it has, as its end tells it */
	uint64_t files, bytes, largest_bytes; /* hints: MESSAGE_UNKNOWN if not known */
	uint64_t disk_bytes;                  /* and struct transfer_room's */
	bool net;
};
int outgoing_add_selected(struct outgoing *, const struct outgoing_selected *);
/* A stream (stdin); `fd` stays the caller's. */
int outgoing_add_stream(struct outgoing *, int fd, const char *name);
/* `bytes` of memory: bench. */
int outgoing_add_null(struct outgoing *, uint64_t bytes);
/* Adds the sizes of whole trees up, where `recursive` (walks them once, names only). */
void outgoing_measure(struct outgoing *);

/* The source for transfer_send; lives as long as the outgoing. */
const struct transfer_source *outgoing_source(struct outgoing *);

#endif
