/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/sweeper: removes what transfers left behind that were cut off by the end of their process:
 * at the start of the daemon and once a day, in a thread that has the disk when others leave it.
 */
#ifndef RFTPD_SWEEPER_H
#define RFTPD_SWEEPER_H

#include "base/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct sweeper {
	int top;
	uint64_t keep_s;
	struct worker worker;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	atomic_bool stop;
};

/* Sweeps beneath a directory, which stays the caller's; what another transfer can go on with is
 * kept for `keep_s`.  Without a thread it is not done, and that is logged.  Signals are blocked
 * already. */
void sweeper_start(struct sweeper *, int top, uint64_t keep_s);
/* Does nothing if it was not started. */
void sweeper_stop(struct sweeper *);

#endif
