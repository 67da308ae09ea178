/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_keep: names at the destination that the filter excludes stay, and with them the
 * directories that they are in, which the listings show without them; and what of a plan is told
 * beside it.
 */
#ifndef RFTP_SYNC_KEEP_H
#define RFTP_SYNC_KEEP_H

#include "rftp/copy/mover.h"
#include "rftp/copy/sync.h"
#include "tree/compare.h"
#include "tree/filter.h"

/* What a plan is made from. */
struct sync_keep {
	const struct sync_params *params;
	const struct filter *filter;
	const struct compare_list *from;
	struct compare_list *to;
	const struct compare_params *compare;
};

/* Looks into the directories that the plan removes.  If excluded names are in them the list `to`
 * says so, and the plan is made anew.  0 or -errno, reported. */
int sync_keep_excluded(struct client *, const struct sync_keep *, struct compare_plan *);

/* What has no place since a directory stays there: an error each. */
void sync_keep_tell(struct client *, const struct sync_params *, const struct compare_plan *);
/* Counts the devices, FIFOs and sockets that the transfer does not come across. */
void sync_keep_special(struct mover *, const struct sync_params *, const struct compare_plan *);

#endif
