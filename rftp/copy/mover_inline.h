/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/mover_inline: small files of a command as single requests, before anything is asked
 * that only a transfer needs: whether they may be, and their outcomes as a transfer's.
 */
#ifndef RFTP_MOVER_INLINE_H
#define RFTP_MOVER_INLINE_H

#include "rftp/copy/mover.h"
#include "session/calls_inline.h"
#include "transfer/inline_receive.h"

/* More files than that, or more bytes in all, are worth data channels. */
#define MOVER_INLINE_FILES CALLS_INLINE_FILES
#define MOVER_INLINE_BYTES CALLS_INLINE_BYTES

/* Whether small files go so by these settings, where the server takes them. */
bool mover_inline_suits(const struct settings *);
/* Bytes that a file may have; 0: not now: data channels are open, the server has no such requests,
 * or what the user wants is for transfers. */
uint32_t mover_inline_most(const struct mover *);

/* Up to how many files that are got are not slower so than by a transfer, which takes less time for
 * each of them, and more until the first is there; 0 over a long way where the client fetches the
 * replies (pull), each for a round trip of its own. */
unsigned mover_inline_files(const struct mover *);

struct mover_inline_put {
	struct outgoing *outgoing; /* whose `done` is mover_file_done */
	const char *path;          /* at the server; with a '/' behind it, a directory */
	bool *left;                /* by item: it is for a transfer, and was not told of */
	const char *object;        /* names the whole */
};
/* 0 or -errno, as mover_send. */
int mover_inline_put(struct mover *, const struct mover_inline_put *);
/* Whether trees, whose sizes the outgoing knows, are few small files. */
bool mover_inline_fits(const struct mover *, struct outgoing *);
/* These, beneath a directory at the server.  0 or -errno, as mover_send. */
int mover_inline_tree(struct mover *, struct outgoing *, const char *directory);
/* As calls_ahead: the request for one file, before it is known whether it is a small one. */
void mover_inline_get_ahead(const struct settings *, struct calls *, const char *path);
/* Files that the incoming is asked for.  0 or -errno, as mover_receive; each says whether it is
 * left; in order, all behind one that is left are, too. */
int mover_inline_get(struct mover *, struct incoming *, struct inline_file *, unsigned count,
	bool in_order, const char *object);

#endif
