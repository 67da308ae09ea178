/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_room: whether a destination has room for all that is to come, before it comes.
 *
 * Refuses only what cannot fit: what goes when files are replaced, and what an earlier transfer
 * left there to be gone on with, counts as room.  What is not known counts as enough: a file system
 * that may compress, or lies elsewhere, and trees in which others are mounted.
 */
#ifndef TREE_INCOMING_ROOM_H
#define TREE_INCOMING_ROOM_H

#include "transfer/transfer.h"

struct incoming;

/* As `room` of struct transfer_sink; ctx: the struct incoming. */
int incoming_room(void *ctx, const struct transfer_room *, char text[512]);
/* Of a file that did not fit: what there is, and what it needs; the text stays as it is where there
 * is enough by now.  Looks at nothing that is there, so that it costs two calls. */
void incoming_room_say(const struct incoming *, uint64_t bytes, char text[512]);

#endif
