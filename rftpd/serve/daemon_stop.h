/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon_stop: how the daemon ends: signals, the transfers that may go on for a time,
 * and what does not end by itself.
 */
#ifndef RFTPD_DAEMON_STOP_H
#define RFTPD_DAEMON_STOP_H

#include "rftpd/serve/daemon.h"

/* Takes SIGTERM, SIGINT and SIGHUP, which are blocked already, in the loop.  0 or -errno. */
int daemon_stop_watch(struct daemon *);
/* As at the first SIGTERM: takes nobody any more, lets transfers go on for a time, then ends. */
void daemon_stop_drain(struct daemon *);
/* When something is to be done about it though nothing happens; UINT64_MAX: never. */
uint64_t daemon_stop_next_ns(const struct daemon *);
/* Once a round.  0, or -ETIMEDOUT: what does not end is left as it is. */
int daemon_stop_tend(struct daemon *, uint64_t now_ns);
/* The last thing, when all sessions have ended: whether exports and tasks are waited for.  A
 * sweeper may be in a file system that does not answer. */
bool daemon_stop_waits(struct daemon *);

#endif
