/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_attrs: files and links of a sync that are the same but for mode or time get these,
 * and nothing of them is copied.
 */
#ifndef RFTP_SYNC_ATTRS_H
#define RFTP_SYNC_ATTRS_H

#include "rftp/copy/sync.h"
#include "tree/compare.h"

/* The pairs are the plan's, or of directories (NULL).  A file that is not what was compared any
 * more keeps its time, or it would be taken for the source's from then on: the plan has it copied.
 * 0 or -errno: it is over.  What could not be changed is reported, and the others are. */
int sync_attrs(struct client *, const struct sync_params *, const struct compare_pairs *,
	struct compare_plan *);

#endif
