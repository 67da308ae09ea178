/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_tree: what is in a directory of the server, and in all directories beneath it.
 */
#ifndef SESSION_CALLS_TREE_H
#define SESSION_CALLS_TREE_H

#include "proto/message_tree.h"
#include "session/calls.h"

/* One entry, which is good until it returns: 0 or -errno: no more of them is wanted, and the
 * session ends, since they come all the same. */
typedef int calls_tree_entry(void *ctx, const struct message_tree_entry *);

/* Calls `entry` with each, in order.  Blocks.  0 or -errno with calls_error, or that of `entry`. */
int calls_tree(struct calls *, const struct message_tree *, calls_tree_entry *entry, void *ctx);

#endif
