/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_keep: what an item is sent with beyond mode and time: owner, group, attributes,
 * lists.
 */
#ifndef TREE_OUTGOING_KEEP_H
#define TREE_OUTGOING_KEEP_H

#include "transfer/transfer.h"

#include <pthread.h>
#include <sys/stat.h>

struct outgoing_keep {
	uint16_t has;          /* enum transfer_has: what is sent, where a file has it */
	bool numeric;          /* numbers alone, no names of users and groups */
	struct owners *owners; /* made when there is need of it; */
	pthread_mutex_t lock;  /* with this, since several threads read files */
};

/* Owner and group, of anything.  0 or -ENOMEM; what the item then points to is in *kept, which is
 * the caller's to free, here and below. */
int outgoing_keep_owner(
	struct outgoing_keep *, const struct stat *, struct transfer_file *, void **kept);
/* Attributes and lists as well, of an open file or directory. */
int outgoing_keep_all(
	struct outgoing_keep *, int fd, const struct stat *, struct transfer_file *, void **kept);
void outgoing_keep_fini(struct outgoing_keep *);

#endif
