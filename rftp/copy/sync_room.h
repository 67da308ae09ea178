/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_room: whether the local directory has room for what a sync copies to it.
 */
#ifndef RFTP_SYNC_ROOM_H
#define RFTP_SYNC_ROOM_H

#include "rftp/copy/sync.h"
#include "tree/compare.h"

/* Before anything is asked for.  0, or -ENOSPC (reported). */
int sync_room(struct client *, const struct sync_params *, const struct compare_plan *);

#endif
