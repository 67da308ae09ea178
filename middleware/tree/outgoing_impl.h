/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_impl.h: a source's state, and what its files ask of each other.
 *
 *   outgoing.c       what was added, its sizes, and what the transfer asks about an item
 *   outgoing_next.c  which item is the next one
 *
 * Included by these only.
 */
#ifndef TREE_OUTGOING_IMPL_H
#define TREE_OUTGOING_IMPL_H

#include "tree/outgoing.h"
#include "tree/outgoing_item.h"

enum outgoing_kind {
	OUTGOING_FILE,
	OUTGOING_DIRECTORY,
	OUTGOING_STREAM,
	OUTGOING_NULL,
	OUTGOING_FAILED,
};

struct outgoing_root {
	enum outgoing_kind kind;
	char *path, *name;
	int top; /* file, directory: that the path is beneath */
	const char *place;
	int fd;         /* stream: borrowed */
	uint64_t bytes; /* null */
	int error;      /* failed */
};

struct outgoing {
	struct outgoing_params params;
	struct outgoing_root *roots;
	size_t count, room, at;
	struct walk *walk;          /* of roots[at - 1] */
	struct outgoing_tree *tree; /* that it walks, or that names are selected from */
	struct selection selection;
	char *selected_from; /* NULL: nothing is selected */
	const char *selected_place;
	bool selected_itself;
	size_t lost_len;   /* of a directory on the way that cannot be entered, the outermost; 0 */
	bool entered_file; /* a selected file with a '/' behind: it has no end */
	struct outgoing_keep keep;
	struct outgoing_links *links; /* NULL: second names are files of their own */
	uint32_t number;              /* that the item asked for will have */
	struct transfer_source source;
	uint8_t root_list[TRANSFER_OFFER_ROOTS_MAX]; /* the source's room has it */
};

/* ---- outgoing.c ---- */

/* How item `number` of the transfer is sent; where it is, is for the caller to say. */
struct outgoing_from outgoing_from(struct outgoing *, uint32_t number);

/* ---- outgoing_next.c: as `next` of struct transfer_source ---- */

int outgoing_next(void *ctx, struct transfer_item *);

#endif
