/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_leftovers: what transfers that were cut off have left at the server.
 */
#ifndef SESSION_CALLS_LEFTOVERS_H
#define SESSION_CALLS_LEFTOVERS_H

#include "proto/message_leftovers.h"
#include "session/calls.h"

/* One of them, which is good until it returns: 0 or -errno: no more of them is wanted, and the
 * session ends, since they come all the same.  NULL: the server is still looking. */
typedef int calls_leftover(void *ctx, const struct message_leftover *);

/* Calls `found` with each, in order.  Blocks.  0 or -errno with calls_error, or that of `found`. */
int calls_leftovers(
	struct calls *, const struct message_leftovers *, calls_leftover *found, void *ctx);

#endif
