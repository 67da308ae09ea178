/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_queue: the event queues and completion queues of the soft fabric.
 *
 * Both hand things from progress threads to one user's thread under a short lock, and write to an
 * eventfd only when somebody would wait for it.  Events live in their channels and completions in a
 * ring that was sized when channels reserved their depths: neither allocates, neither overflows.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fabric/soft/soft_impl.h"

static void fd_raise(int fd)
{
	const uint64_t one = 1;

	/* Can only fail when the counter is full: then it is readable anyway. */
	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

static void fd_lower(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		return;
}

/* ---- eq ---- */

int soft_eq_new(struct fabric *fabric, struct fabric_eq **out)
{
	struct soft_eq *eq = calloc(1, sizeof(*eq));
	int err;

	if (!eq)
		return -ENOMEM;
	eq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (eq->fd < 0) {
		err = -errno;
		free(eq);
		return err;
	}
	eq->base.fabric = fabric;
	pthread_mutex_init(&eq->lock, NULL);
	TAILQ_INIT(&eq->events);
	*out = &eq->base;
	return 0;
}

void soft_eq_free(struct fabric_eq *fabric_eq)
{
	struct soft_eq *eq = (struct soft_eq *)fabric_eq;

	soft_eq_drop_requests(eq, NULL);
	pthread_mutex_destroy(&eq->lock);
	close(eq->fd);
	free(eq);
}

int soft_eq_fd(const struct fabric_eq *eq)
{
	return ((const struct soft_eq *)eq)->fd;
}

/* Takes an event out; under the lock. */
static void eq_remove(struct soft_eq *eq, struct soft_event *event)
{
	TAILQ_REMOVE(&eq->events, event, link);
	event->queued = false;
	if (TAILQ_EMPTY(&eq->events))
		fd_lower(eq->fd);
}

int soft_eq_get(struct fabric_eq *fabric_eq, struct fabric_event *ev)
{
	struct soft_eq *eq = (struct soft_eq *)fabric_eq;
	struct soft_event *event;

	pthread_mutex_lock(&eq->lock);
	event = TAILQ_FIRST(&eq->events);
	if (event) {
		memset(ev, 0, sizeof(*ev));
		ev->type = event->type;
		ev->chan = &event->chan->base;
		ev->owner = ev->chan->owner;
		ev->listener = event->listener;
		ev->error = event->error;
		if (ev->type == FABRIC_EVENT_REQUEST || ev->type == FABRIC_EVENT_REJECTED ||
			ev->type == FABRIC_EVENT_CONNECTED) {
			memcpy(ev->priv, event->chan->priv, event->chan->priv_len);
			ev->priv_len = event->chan->priv_len;
		}
		eq_remove(eq, event);
	}
	pthread_mutex_unlock(&eq->lock);
	return event ? 1 : 0;
}

void soft_eq_push(struct soft_eq *eq, struct soft_event *event)
{
	bool was_empty;

	pthread_mutex_lock(&eq->lock);
	assert(!event->queued);
	was_empty = TAILQ_EMPTY(&eq->events);
	TAILQ_INSERT_TAIL(&eq->events, event, link);
	event->queued = true;
	if (was_empty)
		fd_raise(eq->fd);
	pthread_mutex_unlock(&eq->lock);
}

void soft_eq_purge(struct soft_eq *eq, struct soft_chan *chan)
{
	pthread_mutex_lock(&eq->lock);
	for (int i = 0; i < 2; i++)
		if (chan->events[i].queued)
			eq_remove(eq, &chan->events[i]);
	pthread_mutex_unlock(&eq->lock);
}

/* The channel of some request in the queue; the user has not seen it and never will. */
static struct soft_chan *eq_take_request(struct soft_eq *eq, const struct fabric_listener *listener)
{
	struct soft_chan *chan = NULL;
	struct soft_event *event;

	pthread_mutex_lock(&eq->lock);
	TAILQ_FOREACH(event, &eq->events, link)
	{
		if (event->type != FABRIC_EVENT_REQUEST)
			continue;
		if (listener && event->listener != listener)
			continue;
		chan = event->chan;
		eq_remove(eq, event);
		break;
	}
	pthread_mutex_unlock(&eq->lock);
	return chan;
}

void soft_eq_drop_requests(struct soft_eq *eq, const struct fabric_listener *listener)
{
	struct soft_chan *chan;

	while ((chan = eq_take_request(eq, listener)))
		soft_chan_free(&chan->base);
}

/* ---- cq ---- */

int soft_cq_new(struct fabric_pd *pd, uint32_t depth, struct fabric_cq **out)
{
	struct soft_cq *cq = calloc(1, sizeof(*cq) + (size_t)depth * sizeof(cq->ring[0]));
	int err;

	if (!cq)
		return -ENOMEM;
	cq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cq->fd < 0) {
		err = -errno;
		free(cq);
		return err;
	}
	cq->base.fabric = pd->fabric;
	cq->depth = depth;
	atomic_init(&cq->refs, 1);
	pthread_mutex_init(&cq->lock, NULL);
	*out = &cq->base;
	return 0;
}

static void cq_put(struct soft_cq *cq)
{
	if (atomic_fetch_sub(&cq->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&cq->lock);
	close(cq->fd);
	free(cq);
}

void soft_cq_free(struct fabric_cq *fabric_cq)
{
	struct soft_cq *cq = (struct soft_cq *)fabric_cq;

	pthread_mutex_lock(&cq->lock);
	cq->closed = true;
	pthread_mutex_unlock(&cq->lock);
	cq_put(cq);
}

int soft_cq_poll(struct fabric_cq *fabric_cq, struct fabric_wc *wc, int max)
{
	struct soft_cq *cq = (struct soft_cq *)fabric_cq;
	int count = 0;

	pthread_mutex_lock(&cq->lock);
	for (; count < max && cq->count; count++) {
		const struct soft_completion *done = &cq->ring[cq->head];
		struct soft_chan *chan = soft_chan_of(done->wc.chan);

		/* Only now may the request's place be posted to again, or the ring could overflow.
		 */
		atomic_fetch_sub_explicit(done->is_send ? &chan->send_used : &chan->recv_used, 1,
			memory_order_release);
		wc[count] = done->wc;
		cq->head = cq->head + 1 == cq->depth ? 0 : cq->head + 1;
		cq->count--;
	}
	pthread_mutex_unlock(&cq->lock);
	return count;
}

int soft_cq_arm(struct fabric_cq *fabric_cq)
{
	struct soft_cq *cq = (struct soft_cq *)fabric_cq;

	fd_lower(cq->fd);
	pthread_mutex_lock(&cq->lock);
	cq->armed = true;
	pthread_mutex_unlock(&cq->lock);
	return 0;
}

int soft_cq_fd(const struct fabric_cq *cq)
{
	return ((const struct soft_cq *)cq)->fd;
}

void soft_cq_ack(struct fabric_cq *fabric_cq)
{
	fd_lower(((struct soft_cq *)fabric_cq)->fd);
}

void soft_cq_nudge(struct soft_cq *cq)
{
	bool raise;

	pthread_mutex_lock(&cq->lock);
	raise = cq->armed;
	cq->armed = false;
	pthread_mutex_unlock(&cq->lock);
	if (raise)
		fd_raise(cq->fd);
}

void soft_cq_push(struct soft_cq *cq, const struct fabric_wc *wc, bool is_send)
{
	bool raise = false;

	pthread_mutex_lock(&cq->lock);
	if (!cq->closed) {
		uint32_t at = cq->head + cq->count;

		assert(cq->count < cq->depth);
		cq->ring[at < cq->depth ? at : at - cq->depth] =
			(struct soft_completion){.wc = *wc, .is_send = is_send};
		cq->count++;
		raise = cq->armed;
		cq->armed = false;
	}
	pthread_mutex_unlock(&cq->lock);
	/*
	 * After the lock, or who wakes up would wait for it first.  An arm in between has seen the
	 * completion, or will when it polls: then this is only one waking too many.
	 */
	if (raise)
		fd_raise(cq->fd);
}

int soft_cq_reserve(struct soft_cq *cq, uint32_t depth)
{
	int err = 0;

	pthread_mutex_lock(&cq->lock);
	if (depth > cq->depth - cq->reserved)
		err = -EINVAL;
	else
		cq->reserved += depth;
	pthread_mutex_unlock(&cq->lock);
	if (!err)
		atomic_fetch_add(&cq->refs, 1);
	return err;
}

void soft_cq_leave(struct soft_cq *cq, struct soft_chan *chan, uint32_t depth)
{
	uint32_t kept = 0;

	pthread_mutex_lock(&cq->lock);
	for (uint32_t i = 0; i < cq->count; i++) {
		const struct soft_completion done = cq->ring[(cq->head + i) % cq->depth];

		if (done.wc.chan != &chan->base)
			cq->ring[(cq->head + kept++) % cq->depth] = done;
	}
	cq->count = kept;
	cq->reserved -= depth;
	pthread_mutex_unlock(&cq->lock);
	cq_put(cq);
}
