/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_room: whether a destination has room for all that is to come, before it comes.
 *
 * Refuses only what cannot fit: what goes when files are replaced, and what an earlier transfer
 * left there to be gone on with, counts as room.  What is not known counts as enough.
 */
#ifndef TREE_INCOMING_ROOM_H
#define TREE_INCOMING_ROOM_H

#include "transfer/transfer.h"

/* As `room` of struct transfer_sink; ctx: the struct incoming. */
int incoming_room(void *ctx, const struct transfer_room *, char text[512]);

#endif
