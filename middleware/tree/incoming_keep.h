/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_keep: what of a FILE's attributes a sink takes from its peer.
 *
 * Mode and time always; set-user-ID and set-group-ID of files, owner, group, attributes and lists
 * as it is told.  What is not taken is as if it had not come.
 */
#ifndef TREE_INCOMING_KEEP_H
#define TREE_INCOMING_KEEP_H

#include "proto/transfer.h"
#include "tree/metadata.h"

struct incoming_keep {
	bool set_id;           /* struct metadata's */
	uint16_t has;          /* enum transfer_has: what is taken */
	struct owners *owners; /* made when there is need of it */
};

/* What a file gets.  It points to what the FILE points to, each string terminated.  0 or -ENOMEM.
 */
int incoming_keep_metadata(struct incoming_keep *, const struct transfer_file *, struct metadata *);
void incoming_keep_fini(struct incoming_keep *);

#endif
