/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/bell: see bell.h.
 */
#include "base/bell.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int bell_init(struct bell *b)
{
	b->armed = b->waits = false;
	b->rung = 0;
	b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return b->fd < 0 ? -errno : 0;
}

void bell_fini(struct bell *b)
{
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
}

void bell_disarm(struct bell *b)
{
	/* who took the mark off writes */
	if (b->waits && !atomic_exchange(&b->armed, false))
		b->rung++;
	b->waits = false;
}

void bell_arm(struct bell *b)
{
	uint64_t count;

	bell_disarm(b);
	/* not written yet: then it wakes once for nothing, and is read next time.  One that took
	 * the mark long ago may still have to write when another has. */
	if (b->rung && read(b->fd, &count, sizeof count) > 0)
		b->rung -= (unsigned)count;
	b->waits = true;
	/* Exchanges, both here and in the ring: the later of two sees all that was done before the
	 * earlier.  A store here could pass the look behind it. */
	atomic_exchange(&b->armed, true);
}

void bell_ring(struct bell *b)
{
	const uint64_t one = 1;

	if (atomic_exchange(&b->armed, false) && write(b->fd, &one, sizeof one) < 0)
		assert(errno == EAGAIN);
}
