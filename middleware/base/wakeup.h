/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/wakeup: wakes one thread that sleeps on descriptors, and costs next to nothing while it is
 * awake.
 *
 * The sleeper: arm, look once more whether there is something to do, poll the fd, disarm.  Others:
 * make what there is to do visible, then signal.  Either the sleeper sees it when it looks, or the
 * signal finds the sleeper armed; however many signal, one that armed once is written to once.
 */
#ifndef BASE_WAKEUP_H
#define BASE_WAKEUP_H

#include <stdbool.h>

struct wakeup {
	int fd; /* for poll only; -1: none could be made */
	_Atomic bool armed;
	bool waits;         /* the sleeper's: armed and not disarmed */
	unsigned signalled; /* the sleeper's: so many have written to the fd, or are about to */
};

int wakeup_init(struct wakeup *);
void wakeup_fini(struct wakeup *);

void wakeup_arm(struct wakeup *);
void wakeup_disarm(struct wakeup *);
/* From any thread. */
void wakeup_signal(struct wakeup *);

#endif
