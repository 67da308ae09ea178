/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/loop/loop_listen: addresses and listeners of the loop fabric: where two sides meet.  Does
 * not know what becomes of them then (loop_conn.c).
 */
#include "fabric/loop/loop_impl.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"

/* ---- addresses ---- */

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
		&((const struct sockaddr_in6 *)b)->sin6_addr);
}

static bool any_host(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

struct loop_listener *loop_listener_find(struct loop *loop, const struct sockaddr_storage *dst)
{
	struct loop_listener *listener;

	LIST_FOREACH(listener, &loop->listeners, link)
	{
		if (listener->addr.ss_family == dst->ss_family &&
			addr_port((const struct sockaddr *)&listener->addr) ==
				addr_port((const struct sockaddr *)dst) &&
			(any_host(&listener->addr) || any_host(dst) ||
				same_host(&listener->addr, dst)))
			return listener;
	}
	return NULL;
}

void loop_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof *to);
	memcpy(to, from,
		from->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					   : sizeof(struct sockaddr_in6));
}

void loop_addr_next_port(struct loop *loop, struct sockaddr_storage *addr)
{
	addr_set_port((struct sockaddr *)addr, loop->next_port);
	loop->next_port = loop->next_port == UINT16_MAX ? 49152 : loop->next_port + 1;
}

/* ---- listening ---- */

int loop_listen(struct fabric_eq *base, const struct sockaddr *sa, socklen_t len,
	struct fabric_listener **out)
{
	struct loop_eq *eq = (struct loop_eq *)base;
	struct loop *loop = LOOP_OF(eq);
	struct loop_listener *listener = calloc(1, sizeof *listener);
	int err = 0;

	(void)len; /* checked: a whole sockaddr of its family */
	if (!listener)
		return -ENOMEM;
	listener->base.fabric = base->fabric;
	listener->eq = eq;
	loop_addr_copy(&listener->addr, sa);

	pthread_mutex_lock(&loop->lock);
	if (addr_port(sa)) {
		if (loop_listener_find(loop, &listener->addr))
			err = -EADDRINUSE;
	} else {
		unsigned tries = 1u << 16;

		do
			loop_addr_next_port(loop, &listener->addr);
		while (loop_listener_find(loop, &listener->addr) && --tries);
		if (!tries)
			err = -EADDRINUSE;
	}
	if (!err)
		LIST_INSERT_HEAD(&loop->listeners, listener, link);
	pthread_mutex_unlock(&loop->lock);
	if (err) {
		free(listener);
		return err;
	}
	*out = &listener->base;
	return 0;
}

int loop_listener_addr(const struct fabric_listener *listener, struct sockaddr_storage *out)
{
	*out = ((const struct loop_listener *)listener)->addr;
	return 0;
}

void loop_listener_free(struct fabric_listener *base)
{
	struct loop_listener *listener = (struct loop_listener *)base;
	struct loop *loop = LOOP_OF(listener);
	struct loop_chan *chan, *next;

	pthread_mutex_lock(&loop->lock);
	LIST_REMOVE(listener, link);
	/* Nobody was told of these: they are ours to refuse.  Their memory was never posted, so the
	 * wire holds none of them and the list is still while we walk it. */
	for (chan = LIST_FIRST(&loop->chans); chan; chan = next) {
		next = LIST_NEXT(chan, link);
		if (chan->listener == listener)
			loop_chan_destroy(chan);
	}
	pthread_mutex_unlock(&loop->lock);
	free(listener);
}
