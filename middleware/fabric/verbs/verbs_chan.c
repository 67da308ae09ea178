/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_chan: a channel as a whole: its beginning, how it ends, and what people may
 * read of it.
 *
 * An end has several heralds: the peer's disconnect, a failed completion, an event of the device,
 * the user.  Whoever comes first sets the state; the user is told once; the device is told to
 * flush.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/log.h"
#include "fabric/verbs/verbs_impl.h"

#define DRAIN_TICK_MS 1
#define WATCH_TICK_MS 250
#define CLOSE_WAIT_MS 2000 /* for the peer's answer to our disconnect */
#define NUDGE_MS 10u       /* 10, 40, 160, 640 ms apart */
#define NUDGES 4u
#define FLUSH_WAIT_MS 100 /* for somebody who says why requests are flushed */

int verbs_chan_new(
	struct verbs *verbs, struct verbs_eq *eq, struct rdma_cm_id *id, struct verbs_chan **out)
{
	struct verbs_chan *chan = calloc(1, sizeof *chan);
	int err;

	if (!chan)
		return -ENOMEM;
	chan->base.fabric = &verbs->base;
	chan->eq = eq;
	err = verbs_device_get(verbs, id->verbs, &chan->device);
	if (err) {
		free(chan);
		return err;
	}
	chan->id = id;
	id->context = chan;
	verbs_qp_caps(chan);
	LIST_INSERT_HEAD(&verbs->chans, chan, link);
	*out = chan;
	return 0;
}

/* ---- the end ---- */

static void tear(struct verbs_chan *chan)
{
	/* Moves the queue pair to its error state first, so that everything posted flushes. */
	if (!atomic_exchange(&chan->torn, true) && rdma_disconnect(chan->id))
		log_debug("verbs: disconnect: error %d", errno); /* the peer was faster */
}

bool verbs_chan_end(struct verbs_chan *chan, int error)
{
	int state;
	bool was_open;

	pthread_mutex_lock(&chan->eq->lock);
	state = atomic_load(&chan->state);
	was_open = state == VERBS_CONNECTED || state == VERBS_CLOSING;
	if (was_open) {
		atomic_store(&chan->state, VERBS_ENDED);
		verbs_eq_push(chan->eq, &chan->disconnected, FABRIC_EVENT_DISCONNECTED, &chan->base,
			error);
	}
	pthread_mutex_unlock(&chan->eq->lock);
	if (was_open) {
		tear(chan);
		verbs_kick(VERBS_OF(chan));
	}
	return was_open;
}

void verbs_chan_suspect(struct verbs_chan *chan)
{
	const int state = atomic_load(&chan->state);

	if ((state == VERBS_CONNECTED || state == VERBS_CLOSING) &&
		!atomic_exchange(&chan->flushed, true))
		verbs_kick(VERBS_OF(chan));
}

void verbs_chan_failed(struct verbs_chan *chan, const struct ibv_wc *raw)
{
	char peer[ADDR_TEXT_MAX];

	if (raw->status == IBV_WC_WR_FLUSH_ERR) {
		verbs_chan_suspect(chan);
		return;
	}
	if (!verbs_chan_end(chan, verbs_name_error(raw->status)))
		return;
	addr_format((const struct sockaddr *)&chan->base.peer, peer);
	log_warning("verbs: %s, queue pair %u to %s: %s (status %d, vendor's %#x)",
		ibv_get_device_name(chan->device->context->device), raw->qp_num, peer,
		ibv_wc_status_str(raw->status), raw->status, raw->vendor_err);
}

static bool is_drained(const struct verbs_ring *ring)
{
	return atomic_load(&ring->done) == atomic_load(&ring->posted);
}

/* True: `ms` have passed since the first call. */
static bool waited(uint64_t *deadline_ns, uint64_t now, unsigned ms)
{
	if (!*deadline_ns)
		*deadline_ns = now + ms * NS_PER_MS;
	return now >= *deadline_ns;
}

static int tick_closing(struct verbs_chan *chan, uint64_t now)
{
	if (!atomic_load(&chan->torn)) {
		verbs_cq_progress(chan->cq);
		if (!is_drained(&chan->sends))
			return DRAIN_TICK_MS;
		tear(chan);
	}
	if (!waited(&chan->deadline_ns, now, CLOSE_WAIT_MS))
		return WATCH_TICK_MS;
	verbs_chan_end(chan, 0);
	return -1;
}

/* Devices flush what is posted; those that are gone do not, nor does siw always. */
static int tick_ended(struct verbs_chan *chan, uint64_t now)
{
	if (!chan->cq || !(chan->device->siw || chan->device->dead))
		return -1;
	verbs_cq_progress(chan->cq);
	if (is_drained(&chan->sends) && is_drained(&chan->recvs))
		return -1;
	if (!waited(&chan->flush_ns, now, FLUSH_WAIT_MS))
		return FLUSH_WAIT_MS / 2;
	verbs_cq_flush(chan->cq, chan);
	return -1;
}

/*
 * The accepting side's siw takes the socket over only after its reply has left.  What we send
 * before that stays in the socket until something comes behind it; so, while nothing comes back,
 * something does, a few times.
 */
static int tick_nudge(struct verbs_chan *chan, uint64_t now)
{
	if (chan->passive || !chan->device->siw || chan->nudges == NUDGES ||
		atomic_load(&chan->recvs.done))
		return WATCH_TICK_MS;
	if (atomic_load(&chan->sends.posted) &&
		waited(&chan->nudge_ns, now, NUDGE_MS << 2 * chan->nudges)) {
		verbs_qp_nudge(chan);
		chan->nudge_ns = 0;
		chan->nudges++;
	}
	return (int)NUDGE_MS;
}

int verbs_chan_tick(struct verbs_chan *chan, uint64_t now)
{
	const int state = atomic_load(&chan->state);

	if (state == VERBS_ENDED || state == VERBS_FAILED)
		return tick_ended(chan, now);
	if (state == VERBS_CONNECTING && chan->passive) {
		verbs_cq_progress_if_idle(
			chan->cq); /* for verbs_cm_heard: the user waits for an event */
		return WATCH_TICK_MS;
	}
	if (state != VERBS_CONNECTED && state != VERBS_CLOSING)
		return -1;
	if (state == VERBS_CONNECTED || !atomic_load(&chan->torn))
		verbs_cq_progress_if_idle(
			chan->cq); /* the user may sleep while its queue pair fails */
	if (atomic_load(&chan->flushed)) {
		if (!waited(&chan->deadline_ns, now, FLUSH_WAIT_MS))
			return FLUSH_WAIT_MS / 2;
		verbs_chan_end(chan, -ECONNRESET);
		return -1;
	}
	return state == VERBS_CLOSING ? tick_closing(chan, now) : tick_nudge(chan, now);
}

void verbs_chan_disconnect(struct fabric_chan *base)
{
	struct verbs_chan *chan = (struct verbs_chan *)base;
	bool was_open = false;

	pthread_mutex_lock(&chan->eq->lock);
	switch (atomic_load(&chan->state)) {
	case VERBS_CONNECTED:
		atomic_store(&chan->state, VERBS_CLOSING);
		was_open = true;
		break;
	case VERBS_CONNECTING:
		atomic_store(&chan->state, VERBS_FAILED);
		chan->outcome.ev.priv_len = 0;
		verbs_eq_push(chan->eq, &chan->outcome, FABRIC_EVENT_FAILED, base, -ECONNABORTED);
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&chan->eq->lock);
	if (!was_open)
		return;
	/* The thread waits for the send queue, which must report its last request for that. */
	if (chan->silent_run && verbs_qp_mark(chan))
		verbs_chan_end(chan, -EIO);
	verbs_kick(VERBS_OF(chan));
}

void verbs_chan_destroy(struct verbs_chan *chan)
{
	struct verbs *verbs = VERBS_OF(chan);
	int state;

	/* First out of the thread's sight and out of reach of events: the kernel may take its time
	 * with the rest (siw waits for a peer's answer), and others must not wait for it. */
	pthread_mutex_lock(&verbs->lock);
	LIST_REMOVE(chan, link);
	chan->id->context = NULL;
	pthread_mutex_lock(&chan->eq->lock);
	state = atomic_load(&chan->state);
	atomic_store(&chan->state, VERBS_ENDED);
	verbs_eq_drop(chan->eq, &chan->request);
	verbs_eq_drop(chan->eq, &chan->outcome);
	verbs_eq_drop(chan->eq, &chan->disconnected);
	pthread_mutex_unlock(&chan->eq->lock);
	pthread_mutex_unlock(&verbs->lock);
	if (state == VERBS_CONNECTED || state == VERBS_CLOSING)
		tear(chan);
	if (chan->cq) {
		verbs_cq_forget(chan->cq, chan);
		verbs_cq_release(chan->cq, chan->bank, chan->sends.depth + chan->recvs.depth);
	}
	rdma_destroy_id(chan->id); /* waits until the thread is done with its events */
	pthread_mutex_lock(&verbs->lock);
	verbs_device_put(verbs, chan->device);
	pthread_mutex_unlock(&verbs->lock);
	free(chan->sends.slots);
	free(chan->recvs.slots);
	free(chan);
}

void verbs_chan_free(struct fabric_chan *base)
{
	verbs_chan_destroy((struct verbs_chan *)base);
}

/* ---- for people ---- */

void verbs_chan_describe(const struct fabric_chan *base, char *out, size_t size)
{
	const struct verbs_chan *chan = (const struct verbs_chan *)base;
	const struct rdma_cm_id *id = chan->id;
	struct ibv_context *context = chan->device->context;
	struct ibv_port_attr port = {0};
	char gid[INET6_ADDRSTRLEN] = "unknown", local[ADDR_TEXT_MAX];
	unsigned mtu = 0;

	if (!ibv_query_port(context, id->port_num, &port))
		mtu = verbs_name_mtu(port.active_mtu);
	if (chan->device->iwarp) { /* its GIDs mean nothing, nor does its MTU: TCP is below */
		addr_format(rdma_get_local_addr(chan->id), local);
		snprintf(out, size, "%s port %u, %s, %s", ibv_get_device_name(context->device),
			id->port_num, local, verbs_name_transport(context, &port));
		return;
	}
	inet_ntop(AF_INET6, id->route.addr.addr.ibaddr.sgid.raw, gid, sizeof gid);
	snprintf(out, size, "%s port %u, GID %s, MTU %u, %s", ibv_get_device_name(context->device),
		id->port_num, gid, mtu, verbs_name_transport(context, &port));
}
