/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/wakeup: see wakeup.h.
 */
#include "base/wakeup.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int wakeup_init(struct wakeup *w)
{
	w->armed = w->waits = false;
	w->signalled = 0;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w->fd < 0 ? -errno : 0;
}

void wakeup_fini(struct wakeup *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

void wakeup_disarm(struct wakeup *w)
{
	/* who took the mark off writes */
	if (w->waits && !atomic_exchange(&w->armed, false))
		w->signalled++;
	w->waits = false;
}

void wakeup_arm(struct wakeup *w)
{
	uint64_t count;

	wakeup_disarm(w);
	/* not written yet: then it wakes once for nothing, and is read next time.  One that took
	 * the mark long ago may still have to write when another has. */
	if (w->signalled && read(w->fd, &count, sizeof count) > 0)
		w->signalled -= (unsigned)count;
	w->waits = true;
	/* Exchanges, both here and in wakeup_signal: the later of two sees all that was done before
	 * the earlier.  A store here could pass the look behind it. */
	atomic_exchange(&w->armed, true);
}

void wakeup_signal(struct wakeup *w)
{
	const uint64_t one = 1;

	if (atomic_exchange(&w->armed, false) && write(w->fd, &one, sizeof one) < 0)
		assert(errno == EAGAIN);
}
