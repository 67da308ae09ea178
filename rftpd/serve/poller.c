/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/poller: see poller.h.
 */
#include "rftpd/serve/poller.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 64

int poller_init(struct poller *p)
{
	p->fd = epoll_create1(EPOLL_CLOEXEC);
	return p->fd < 0 ? -errno : 0;
}

void poller_fini(struct poller *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

int poller_add(struct poller *p, struct watch *w, int fd, void (*ready)(void *owner), void *owner)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

	if (epoll_ctl(p->fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	w->fd = fd;
	w->ready = ready;
	w->owner = owner;
	return 0;
}

int poller_want_room(struct poller *p, struct watch *w)
{
	struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = w};

	return epoll_ctl(p->fd, EPOLL_CTL_MOD, w->fd, &ev) < 0 ? -errno : 0;
}

void poller_remove(struct poller *p, struct watch *w)
{
	if (w->fd < 0)
		return;
	epoll_ctl(p->fd, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -1;
}

int poller_wait(struct poller *p, int timeout_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(p->fd, events, EVENTS_MAX, timeout_ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		struct watch *w = events[i].data.ptr;

		if (w->fd >= 0)
			w->ready(w->owner);
	}
	return 0;
}
