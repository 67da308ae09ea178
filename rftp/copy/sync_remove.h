/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_remove: what the destination has and the source has not goes.
 */
#ifndef RFTP_SYNC_REMOVE_H
#define RFTP_SYNC_REMOVE_H

#include "tree/compare.h"
#include "rftp/copy/sync.h"

/* All of these names, of which each has its event; what cannot be removed is reported, and the
 * others are, which are added to *removed.  0 or -errno: it is over. */
int sync_remove(struct client *, const struct sync_params *, const struct compare_names *,
	uint64_t *removed);

#endif
