/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_digest: what of a sync is decided by sums of files, computed where they lie.
 */
#ifndef RFTP_SYNC_DIGEST_H
#define RFTP_SYNC_DIGEST_H

#include "rftp/copy/sync.h"
#include "tree/compare.h"

/* The sums of all files that have the same name and size in both lists: they stand in the lists
 * then.  One that cannot be read has none, and is found out when it is copied.  0 or -errno,
 * reported. */
int sync_digest_same(struct client *, const struct sync_params *, struct compare_list *from,
	struct compare_list *to);

/*
 * Files of the destination alone that are files of the source alone under another name: they are
 * renamed there, or, for a dry run, that is printed as commands; and the list says so then, with
 * the directories that were made for it.  A file of each kind is taken once; empty ones are left
 * out.  What cannot be renamed is copied.  0 or -errno, reported.
 */
int sync_digest_renames(struct client *, const struct sync_params *, struct compare_list *from,
	struct compare_list *to);

#endif
