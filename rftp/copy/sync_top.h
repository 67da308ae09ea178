/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_top: the mode and time of the directory that a sync makes what another one is.
 *
 * The top of an export is its administrator's, and stays as it is.
 */
#ifndef RFTP_SYNC_TOP_H
#define RFTP_SYNC_TOP_H

#include "rftp/copy/sync.h"
#include "tree/compare.h"

/* Before names in it are changed: one of ours that would keep us out does not any more.  Whether
 * its mode was another one before, *was, which is owed to it. */
bool sync_top_open(
	struct client *, const struct sync_params *, struct compare_list *to, unsigned *was);
/* Gives it back the mode that it had; at the server only while there is a session. */
void sync_top_close(struct client *, const struct sync_params *, unsigned was);

/* What it gets when all in it is done, which has `changed` its time, in *pair.  false: nothing. */
struct sync_top {
	const struct compare_list *from, *to;
	const struct compare_params *compare;
	bool changed;
};
bool sync_top_differs(struct client *, const struct sync_params *, const struct sync_top *,
	struct compare_pair *pair);

/* Whether the directory that names are to go into is there: *missing.  0 or -errno (reported). */
int sync_top_find(struct client *, const struct sync_params *, bool *missing);

#endif
