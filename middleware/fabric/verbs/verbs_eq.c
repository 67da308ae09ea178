/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_eq: event queues between the fabric's thread and the user's, and listeners.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fabric/verbs/verbs_impl.h"

#define BACKLOG 128

/* ---- the queue ---- */

void verbs_eq_push(struct verbs_eq *eq, struct verbs_event *event, enum fabric_event_type type,
	struct fabric_chan *chan, int error)
{
	assert(!event->queued);
	event->ev.type = type;
	event->ev.chan = chan;
	event->ev.error = error;
	event->queued = true;
	if (TAILQ_EMPTY(&eq->events))
		verbs_fd_raise(eq->fd);
	TAILQ_INSERT_TAIL(&eq->events, event, link);
}

void verbs_eq_drop(struct verbs_eq *eq, struct verbs_event *event)
{
	if (!event->queued)
		return;
	event->queued = false;
	TAILQ_REMOVE(&eq->events, event, link);
	if (TAILQ_EMPTY(&eq->events))
		verbs_fd_clear(eq->fd);
}

int verbs_eq_get(struct fabric_eq *base, struct fabric_event *ev)
{
	struct verbs_eq *eq = (struct verbs_eq *)base;
	struct verbs_event *first;

	pthread_mutex_lock(&eq->lock);
	first = TAILQ_FIRST(&eq->events);
	if (first) {
		*ev = first->ev;
		ev->owner = ev->chan->owner;
		verbs_eq_drop(eq, first);
	}
	pthread_mutex_unlock(&eq->lock);
	return first != NULL;
}

int verbs_eq_fd(const struct fabric_eq *eq)
{
	return ((const struct verbs_eq *)eq)->fd;
}

int verbs_eq_new(struct fabric *base, struct fabric_eq **out)
{
	struct verbs *verbs = (struct verbs *)base;
	struct epoll_event event = {.events = EPOLLIN};
	struct verbs_eq *eq = calloc(1, sizeof *eq);
	int err;

	if (!eq)
		return -ENOMEM;
	eq->base.fabric = base;
	TAILQ_INIT(&eq->events);
	eq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (eq->fd < 0) {
		err = -errno;
		goto err_eq;
	}
	eq->channel = rdma_create_event_channel();
	if (!eq->channel) {
		err = -errno;
		goto err_fd;
	}
	err = verbs_fd_nonblock(eq->channel->fd);
	if (!err && epoll_ctl(verbs->epoll, EPOLL_CTL_ADD, eq->channel->fd, &event) < 0)
		err = -errno;
	if (err)
		goto err_channel;
	pthread_mutex_init(&eq->lock, NULL);
	pthread_mutex_lock(&verbs->lock);
	LIST_INSERT_HEAD(&verbs->eqs, eq, link);
	pthread_mutex_unlock(&verbs->lock);
	*out = &eq->base;
	return 0;

err_channel:
	rdma_destroy_event_channel(eq->channel);
err_fd:
	close(eq->fd);
err_eq:
	free(eq);
	return err;
}

void verbs_eq_free(struct fabric_eq *base)
{
	struct verbs_eq *eq = (struct verbs_eq *)base;
	struct verbs *verbs = VERBS_OF(eq);

	assert(LIST_EMPTY(&eq->listeners));
	pthread_mutex_lock(&verbs->lock);
	LIST_REMOVE(eq, link);
	epoll_ctl(verbs->epoll, EPOLL_CTL_DEL, eq->channel->fd, NULL);
	rdma_destroy_event_channel(eq->channel);
	pthread_mutex_unlock(&verbs->lock);
	close(eq->fd);
	pthread_mutex_destroy(&eq->lock);
	free(eq);
}

/* ---- listeners ---- */

static bool is_wildcard(const struct sockaddr *sa)
{
	static const struct in6_addr any6;

	if (sa->sa_family == AF_INET6)
		return !memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, &any6, sizeof any6);
	return !((const struct sockaddr_in *)sa)->sin_addr.s_addr;
}

static int bind_and_listen(struct rdma_cm_id *id, const struct sockaddr *sa)
{
	struct sockaddr_storage addr = {0};
	int only = 1;

	memcpy(&addr, sa,
		sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : sizeof(struct sockaddr_in));
	/* IPv4 has listeners of its own, as with the other fabrics */
	if (sa->sa_family == AF_INET6)
		rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof only);
	if (rdma_bind_addr(id, (struct sockaddr *)&addr))
		return -errno;
	if (!id->verbs && !is_wildcard(sa))
		return -ENODEV;
	return rdma_listen(id, BACKLOG) ? -errno : 0;
}

int verbs_listen(struct fabric_eq *base, const struct sockaddr *sa, socklen_t len,
	struct fabric_listener **out)
{
	struct verbs_eq *eq = (struct verbs_eq *)base;
	struct verbs *verbs = VERBS_OF(eq);
	struct verbs_listener *listener = calloc(1, sizeof *listener);
	const struct sockaddr *bound;
	int err;

	(void)len; /* checked for the family */
	if (!listener)
		return -ENOMEM;
	listener->base.fabric = base->fabric;
	listener->eq = eq;
	/* No request is looked at before the listener is in its list. */
	pthread_mutex_lock(&verbs->lock);
	if (rdma_create_id(eq->channel, &listener->id, listener, RDMA_PS_TCP)) {
		err = -errno;
		goto err_listener;
	}
	err = bind_and_listen(listener->id, sa);
	if (err)
		goto err_id;
	bound = rdma_get_local_addr(listener->id);
	memcpy(&listener->addr, bound,
		bound->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					     : sizeof(struct sockaddr_in));
	LIST_INSERT_HEAD(&eq->listeners, listener, link);
	pthread_mutex_unlock(&verbs->lock);
	*out = &listener->base;
	return 0;

err_id:
	rdma_destroy_id(listener->id);
err_listener:
	pthread_mutex_unlock(&verbs->lock);
	free(listener);
	return err;
}

int verbs_listener_addr(const struct fabric_listener *base, struct sockaddr_storage *out)
{
	const struct verbs_listener *listener = (const struct verbs_listener *)base;
	struct verbs *verbs = VERBS_OF(listener);
	bool lost;

	pthread_mutex_lock(&verbs->lock);
	lost = listener->lost;
	pthread_mutex_unlock(&verbs->lock);
	*out = listener->addr;
	return lost ? -ENODEV : 0;
}

/* The oldest request of the listener that its user has not seen. */
static struct verbs_chan *unseen(struct verbs_eq *eq, const struct verbs_listener *listener)
{
	struct verbs_chan *chan = NULL;
	struct verbs_event *event;

	pthread_mutex_lock(&eq->lock);
	TAILQ_FOREACH(event, &eq->events, link)
	{
		if (event->ev.type == FABRIC_EVENT_REQUEST &&
			event->ev.listener == &listener->base) {
			chan = (struct verbs_chan *)event->ev.chan;
			break;
		}
	}
	pthread_mutex_unlock(&eq->lock);
	return chan;
}

void verbs_listener_free(struct fabric_listener *base)
{
	struct verbs_listener *listener = (struct verbs_listener *)base;
	struct verbs *verbs = VERBS_OF(listener);
	struct verbs_chan *chan;

	pthread_mutex_lock(&verbs->lock);
	LIST_REMOVE(listener, link); /* no request comes from here on */
	pthread_mutex_unlock(&verbs->lock);
	if (listener->id)
		rdma_destroy_id(
			listener->id); /* the kernel refuses what it has not handed out yet */
	while ((chan = unseen(listener->eq, listener))) {
		rdma_reject(chan->id, NULL, 0);
		verbs_chan_destroy(chan);
	}
	free(listener);
}
