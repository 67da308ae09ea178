/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_list: what both directories of a sync have in them, listed at the same time: the
 * server lists its own while we list ours.
 */
#ifndef RFTP_SYNC_LIST_H
#define RFTP_SYNC_LIST_H

#include "rftp/copy/sync.h"
#include "tree/compare.h"
#include "tree/filter.h"

struct sync_list {
	const struct filter *filter;
	struct compare_list *from, *to; /* empty */
	bool missing;                   /* set: the destination is not there, which is no error */
};

/* 0 or -errno, reported. */
int sync_list_both(struct client *, const struct sync_params *, struct sync_list *);

#endif
