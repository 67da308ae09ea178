/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_disks: the file systems that something was written to, each once, to be flushed
 * when all has come.
 */
#ifndef TREE_INCOMING_DISKS_H
#define TREE_INCOMING_DISKS_H

#include <sys/types.h>

#define INCOMING_DISKS_MAX 16u

struct incoming_disks { /* zeroed: none */
	struct {
		dev_t device;
		int fd;
	} disks[INCOMING_DISKS_MAX];
	unsigned count;
	int error; /* one of them could not be noted */
};

/* Something is written to this file, which stays the caller's. */
void incoming_disks_note(struct incoming_disks *, int fd);
/* Blocks until all of them have what was written.  0 or -errno; -EMFILE: one was not noted. */
int incoming_disks_flush(const struct incoming_disks *);
void incoming_disks_fini(struct incoming_disks *);

#endif
