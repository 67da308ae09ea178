/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming: a directory, one file name, a stream or nothing as the sink of a transfer
 * (struct transfer_sink).  Names from the peer are checked (transfer_name_ok) and resolved beneath
 * the destination, never outside, also through symbolic links; files land as tree/landing says.
 * Modes and times come along, and what else is taken (tree/incoming_keep), that of a directory when
 * all in it has arrived; an export's top keeps its own.
 */
#ifndef TREE_INCOMING_H
#define TREE_INCOMING_H

#include "tree/asked.h"
#include "tree/compare.h"
#include "tree/incoming_place.h"
#include "tree/outcome.h"

struct incoming;

enum incoming_kind {
	INCOMING_INTO,   /* `path` is an existing directory: names go beneath it */
	INCOMING_AS,     /* `path` is the new name of what arrives under the name "": a file, or a
			    directory that is made (names then go beneath it) */
	INCOMING_STREAM, /* one file or stream, written in order to `fd` */
	INCOMING_NULL,   /* bench: discarded */
};

/* When what arrives is flushed to stable storage. */
enum incoming_fsync {
	INCOMING_FSYNC_NEVER, /* by the host, when it likes */
	INCOMING_FSYNC_END,   /* before the transfer is said to be over */
	INCOMING_FSYNC_FILE,  /* each file before it is said to be there */
};

struct incoming_params {
	enum incoming_kind kind;
	int top;          /* beneath.h: an export or AT_FDCWD */
	const char *path; /* copied */
	int fd;           /* INCOMING_STREAM; stays the caller's */
	bool replace;
	/* The file is written in place: INCOMING_AS, of one file; `replace` and what is about other
	 * than its bytes count for nothing. */
	struct incoming_place in_place;
	bool preallocate; /* struct end_file_params' */
	bool update;      /* what is there and not older than what comes is kept: -EEXIST */
	/* Files get set-user-ID and set-group-ID, too: they are the user's own.  Else it is noted
	 * that they do not. */
	bool set_id;
	/* A file that is there, and stays, may get what a peer says of it beside its bytes, where
	 * `replace`; else the peer says what nobody asked for: -EBADMSG. */
	bool attributes;
	/* Of such a file what was compared, at the peer and here: where it gets another time, both
	 * are as they were then, or it stays as it is (-ESTALE): with the time of other bytes it
	 * would be taken for these.  The caller's; NULL: nobody knows. */
	const struct compare_list *listed_there, *listed_here;
	uint16_t keep; /* enum transfer_has: what is taken from the peer beyond mode and time */
	/* Left-behind temporary files are removed from the directories that files go to. */
	bool sweep;
	/* Files of at least so many bytes leave behind what arrived of them when the transfer is
	 * cut short, and go on from there (tree/journal), and of many files those that have landed
	 * do not come again (tree/tree_mark): -EALREADY; 0: none does. */
	uint64_t resume_bytes;
	/* What the peer was asked for, where it is the peer who names what comes: anything else is
	 * refused.  The caller's; NULL: it may name what it likes. */
	struct asked *asked;
	int cancel_fd; /* of a STREAM: readable when nobody wants more of it; -1: none */
	enum incoming_fsync fsync;
	bool readback;             /* files are read back from the disk, and compared */
	struct space_share *space; /* what they may fill (tree/space); NULL: nobody counts */
	enum end_direct direct;
	/* Outcome of each name, once: its path as opened here.  May be NULL. */
	void (*done)(void *ctx, const struct outcome *);
	void *ctx;
};

/* -ENOENT, -ENOTDIR, -EXDEV ...: the destination cannot be one. */
int incoming_new(const struct incoming_params *, struct incoming **out);
void incoming_free(struct incoming *);
/* What came did not come by a transfer, which says so itself: nobody goes on with it. */
void incoming_is_over(struct incoming *);
const struct transfer_sink *incoming_sink(struct incoming *);

#endif
