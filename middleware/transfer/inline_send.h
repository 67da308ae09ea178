/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/inline_send: the files of a source, each in one request (PUT), several under way: no
 * data channels, and one round trip for all.
 */
#ifndef TRANSFER_INLINE_SEND_H
#define TRANSFER_INLINE_SEND_H

#include "session/calls_inline.h"
#include "transfer/transfer.h"

struct inline_send_params {
	const char *path; /* at the server */
	uint32_t flags;   /* MESSAGE_PUT_FLAGS */
	uint32_t most;    /* bytes of a file, at most MESSAGE_INLINE_MAX */
	/* What is left, for a transfer to have it; one of the two:
	 * by the number of the item, from 0.  `done` is told of it, and *leaving set meanwhile:
	 * nothing has happened to it; */
	bool *left, *leaving;
	/* or the items themselves.  Nothing is left then because the server refuses it: that ends
	 * with VERDICT_TRANSFER. */
	struct inline_rest *rest;
};

/* Items that were left, and what the source gives after them, as a source.  Zeros at first; _fini
 * tells `done` of items that nobody took. */
struct inline_rest {
	struct transfer_source source;
	const struct transfer_source *from;
	struct transfer_item *items;
	unsigned at, count, room;
};
void inline_rest_fini(struct inline_rest *);

/*
 * Items are left that cannot be read, or are not for this way, and those that the server refuses
 * before it looks at the file.  `done` tells of all others, their status as a transfer's.  As
 * transfer_send, with stats->verdict of VERDICT_TRANSFER, too: the server lets nobody put anything
 * there, as a transfer would learn as well.
 */
enum verdict_scope inline_send(struct calls *, const struct inline_send_params *,
	const struct transfer_source *, struct transfer_stats *);

#endif
