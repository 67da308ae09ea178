/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/bell: wakes one thread that sleeps on descriptors, and costs next to nothing while it is
 * awake.
 *
 * The sleeper: arm, look once more whether there is something to do, poll the fd, disarm.  Others:
 * make what there is to do visible, then ring.  Either the sleeper's look sees it, or the ring sees
 * it armed; however many ring, a sleeper that armed once is written to once.
 */
#ifndef BASE_BELL_H
#define BASE_BELL_H

#include <stdbool.h>

struct bell {
	int fd; /* for poll only; -1: none could be made */
	_Atomic bool armed;
	bool waits;    /* the sleeper's: armed and not disarmed */
	unsigned rung; /* the sleeper's: so many have written to the fd, or are about to */
};

int bell_init(struct bell *);
void bell_fini(struct bell *);

void bell_arm(struct bell *);
void bell_disarm(struct bell *);
/* From any thread. */
void bell_ring(struct bell *);

#endif
