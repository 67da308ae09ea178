/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/poller: epoll, with the caller's objects behind descriptors.
 *
 * A watch that is removed while its event waits in the same round is not called; what it is
 * embedded in must stay until the round ends (poller_wait returns).
 */
#ifndef RFTPD_POLLER_H
#define RFTPD_POLLER_H

#include <stdbool.h>

struct poller {
	int fd;
};

struct watch {
	int fd; /* -1: not watched */
	void (*ready)(void *owner);
	void *owner;
};

int poller_init(struct poller *);
void poller_fini(struct poller *);

/* Calls ready(owner) in poller_wait while `fd` is readable.  0 or -errno. */
int poller_add(struct poller *, struct watch *, int fd, void (*ready)(void *owner), void *owner);
/* Calls it while there is room to write instead, from now on. */
int poller_want_room(struct poller *, struct watch *);
/* Does nothing when it is not watched.  Before the fd is closed. */
void poller_remove(struct poller *, struct watch *);

/* One round: waits for at most timeout_ms (-1: for ever) and calls what is ready.  0 or -errno. */
int poller_wait(struct poller *, int timeout_ms);

#endif
