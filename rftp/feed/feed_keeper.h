/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/feed/feed_keeper: ends the commands of a feed when rftp itself cannot: because it was
 * killed, or ended by a second Ctrl-C.
 *
 * A small process of its own session that reads from a pipe which commands there are.  When the
 * pipe ends it ends what is left.
 */
#ifndef RFTP_FEED_KEEPER_H
#define RFTP_FEED_KEEPER_H

#include <sys/types.h>

struct feed_keeper { /* {0}: not started; all that follows then does nothing */
	pid_t pid;
	int fd; /* the pipe's writing end */
};

int feed_keeper_start(struct feed_keeper *);
/* The process group is one of ours, or has ended. */
void feed_keeper_add(const struct feed_keeper *, pid_t group);
void feed_keeper_remove(const struct feed_keeper *, pid_t group);
void feed_keeper_stop(struct feed_keeper *);

#endif
