/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/inline_receive: small files, each asked for in one request (GET), several under way: no
 * data channels, and one round trip for all.
 */
#ifndef TRANSFER_INLINE_RECEIVE_H
#define TRANSFER_INLINE_RECEIVE_H

#include "session/calls_inline.h"
#include "transfer/transfer.h"

struct inline_file {
	const char *path; /* at the server */
	const char *name; /* that the sink is offered it under */
	bool left;        /* it did not come: a transfer may have it */
};

struct inline_receive_params {
	uint32_t flags; /* MESSAGE_GET_FLAGS */
	uint32_t most;  /* bytes of a file, at most MESSAGE_INLINE_MAX */
	bool in_order;  /* what comes behind one that is left is left, too */
};

/* As calls_ahead, of what inline_receive asks first for a file at `path`. */
void inline_receive_ahead(struct calls *, const struct inline_receive_params *, const char *path);

/*
 * The sink has `whole`; its `done` tells of those that came, and, where there are several, of those
 * that the server has not, as TRANSFER_AT_SOURCE.  As transfer_receive; with stats->verdict of
 * VERDICT_TRANSFER, too: the server has not the one that was asked for.
 */
enum verdict_scope inline_receive(struct calls *, const struct inline_receive_params *,
	struct inline_file *, unsigned count, const struct transfer_sink *,
	struct transfer_stats *);

#endif
