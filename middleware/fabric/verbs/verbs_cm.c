/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_cm: connections by librdmacm: dialling, connecting, accepting, refusing, and
 * what the connection manager's events mean for a channel.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/log.h"
#include "fabric/verbs/verbs_impl.h"

#define READS_MAX 8u   /* at once, each way; devices may do less */
#define RETRIES 6      /* of an unanswered packet; 7 means for ever on some devices */
#define RNR_RETRIES 0  /* credits keep receives posted: a SEND without one is an error */
#define ACK_TIMEOUT 17 /* 4.096 us * 2^17 = 0.54 s an attempt, so a dead peer shows within 4 s */
#define REJECTED_BY_USER 28 /* InfiniBand's reason code: "consumer reject" */
#define EVENTS_AT_ONCE 256  /* then others may have the lock */
#define PORTS_TRIED 16

/* ---- dialling ---- */

/* Waits for one step of resolving. */
static int await(
	struct rdma_event_channel *channel, enum rdma_cm_event_type wanted, uint64_t deadline)
{
	struct rdma_cm_event *event;
	int err;

	while (rdma_get_cm_event(channel, &event)) {
		struct pollfd readable = {.fd = channel->fd, .events = POLLIN};

		if (errno != EAGAIN)
			return -errno;
		err = poll(&readable, 1, clock_until_ms(deadline));
		if (!err)
			return -ETIMEDOUT;
		if (err < 0 && errno != EINTR)
			return -errno;
	}
	err = 0;
	if (event->event != wanted)
		err = event->status < 0 ? event->status : -EHOSTUNREACH;
	rdma_ack_cm_event(event);
	return err;
}

static int resolve(struct rdma_cm_id *id, const struct sockaddr *dst, const struct sockaddr *src,
	uint64_t deadline)
{
	int err;

	/* librdmacm's prototype lacks const; it does not write */
	if (rdma_resolve_addr(
		    id, (struct sockaddr *)src, (struct sockaddr *)dst, clock_until_ms(deadline)))
		return -errno;
	err = await(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, deadline);
	if (err)
		return err;
	if (rdma_resolve_route(id, clock_until_ms(deadline)))
		return -errno;
	return await(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, deadline);
}

/* Takes what the kernel says when no device leads there: which word it has depends on the way it
 * found out. */
static int dial_error(int err)
{
	return err == -EADDRNOTAVAIL || err == -ENXIO || err == -EINVAL ? -ENODEV : err;
}

static void limit_reads(struct verbs_chan *chan, unsigned in, unsigned out)
{
	const struct ibv_device_attr *limits = &chan->device->limits;

	if (in > (unsigned)limits->max_qp_rd_atom)
		in = (unsigned)limits->max_qp_rd_atom;
	if (out > (unsigned)limits->max_qp_init_rd_atom)
		out = (unsigned)limits->max_qp_init_rd_atom;
	chan->reads_in = (uint8_t)(in < READS_MAX ? in : READS_MAX);
	chan->reads_out = (uint8_t)(out < READS_MAX ? out : READS_MAX);
	chan->base.caps.has_read = chan->reads_out > 0;
	chan->base.caps.max_reads = chan->reads_out;
}

static void set_ack_timeout(struct rdma_cm_id *id)
{
	uint8_t timeout = ACK_TIMEOUT;

	/* iWARP has none: TCP has its own */
	if (id->verbs->device->transport_type != IBV_TRANSPORT_IWARP &&
		rdma_set_option(
			id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout))
		log_debug("verbs: the kernel's own ack time-out: error %d", errno);
}

/*
 * siw connects by TCP from the port that rdma_cm chose, and rdma_cm does not know which ports TCP
 * has in use, or has had a minute ago: connecting would fail.
 */
static bool port_taken(struct rdma_cm_id *id)
{
	const struct sockaddr *sa = rdma_get_local_addr(id);
	bool taken;
	int fd;

	if (id->verbs->device->transport_type != IBV_TRANSPORT_IWARP)
		return false;
	fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	taken = bind(fd, sa,
			sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						  : sizeof(struct sockaddr_in)) < 0 &&
		errno == EADDRINUSE;
	close(fd);
	return taken;
}

/* An id on the way to `dst`; its events come on `channel`. */
static int find_way(struct rdma_event_channel *channel, const struct sockaddr *dst,
	const struct sockaddr *src, uint64_t deadline, struct rdma_cm_id **out)
{
	struct rdma_cm_id *id;
	int err;

	for (unsigned i = 1;; i++) {
		if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
			return -errno;
		err = dial_error(resolve(id, dst, src, deadline));
		if (!err && !id->verbs)
			err = -ENODEV;
		if (!err && (i == PORTS_TRIED || !port_taken(id))) {
			*out = id;
			return 0;
		}
		rdma_destroy_id(id);
		if (err)
			return err;
	}
}

int verbs_dial(struct fabric_eq *base, const struct sockaddr *dst, const struct sockaddr *src,
	int timeout_ms, struct fabric_chan **out)
{
	struct verbs_eq *eq = (struct verbs_eq *)base;
	struct verbs *verbs = VERBS_OF(eq);
	uint64_t deadline =
		clock_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * NS_PER_MS;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct verbs_chan *chan;
	struct rdma_cm_id *id = NULL;
	int err;

	if (!channel)
		return -errno;
	err = verbs_fd_nonblock(channel->fd);
	if (!err)
		err = find_way(channel, dst, src, deadline, &id);
	if (err)
		goto out_channel;
	set_ack_timeout(id);
	pthread_mutex_lock(&verbs->lock);
	err = rdma_migrate_id(id, eq->channel) ? -errno : verbs_chan_new(verbs, eq, id, &chan);
	if (!err) {
		memcpy(&chan->base.peer, dst,
			dst->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : sizeof(struct sockaddr_in));
		limit_reads(chan, READS_MAX, READS_MAX);
		*out = &chan->base;
	}
	pthread_mutex_unlock(&verbs->lock);
	if (err)
		rdma_destroy_id(id);
out_channel:
	rdma_destroy_event_channel(channel);
	return err;
}

/* ---- the outcome of connect and accept ---- */

/* CONNECTED, REJECTED or FAILED, once.  Whether it was wanted. */
static bool settle(struct verbs_chan *chan, enum fabric_event_type type, int error,
	const struct rdma_conn_param *param)
{
	struct fabric_event *ev = &chan->outcome.ev;
	bool wanted;

	pthread_mutex_lock(&chan->eq->lock);
	wanted = atomic_load(&chan->state) == VERBS_CONNECTING;
	if (wanted) {
		ev->priv_len = 0;
		if (param && param->private_data && !chan->passive) {
			ev->priv_len = param->private_data_len < FABRIC_PRIVATE_MAX
					       ? param->private_data_len
					       : FABRIC_PRIVATE_MAX;
			memcpy(ev->priv, param->private_data, ev->priv_len);
		}
		atomic_store(&chan->state,
			type == FABRIC_EVENT_CONNECTED ? VERBS_CONNECTED : VERBS_FAILED);
		verbs_eq_push(chan->eq, &chan->outcome, type, &chan->base, error);
	} else if (chan->passive && atomic_load(&chan->state) == VERBS_NEW) {
		chan->early_error = error;
	}
	pthread_mutex_unlock(&chan->eq->lock);
	if (wanted && type != FABRIC_EVENT_CONNECTED)
		verbs_qp_flush(chan);
	return wanted;
}

static int check_ready(const struct verbs_chan *chan, bool passive)
{
	return chan->cq && chan->passive == passive && atomic_load(&chan->state) == VERBS_NEW
		       ? 0
		       : -EINVAL;
}

static struct rdma_conn_param make_param(
	const struct verbs_chan *chan, const void *priv, size_t priv_len)
{
	return (struct rdma_conn_param){
		.private_data = priv,
		.private_data_len = (uint8_t)priv_len,
		.responder_resources = chan->reads_in,
		.initiator_depth = chan->reads_out,
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RNR_RETRIES,
	};
}

/* The connection manager may know at once what comes as an event else. */
static int settle_failed(struct verbs_chan *chan, int error)
{
	settle(chan, FABRIC_EVENT_FAILED, error, NULL);
	return 0;
}

int verbs_chan_connect(struct fabric_chan *base, const void *priv, size_t priv_len)
{
	struct verbs_chan *chan = (struct verbs_chan *)base;
	struct rdma_conn_param param = make_param(chan, priv, priv_len);

	if (check_ready(chan, false))
		return -EINVAL;
	atomic_store(&chan->state, VERBS_CONNECTING);
	return rdma_connect(chan->id, &param) ? settle_failed(chan, -errno) : 0;
}

int verbs_chan_accept(struct fabric_chan *base, const void *priv, size_t priv_len)
{
	struct verbs_chan *chan = (struct verbs_chan *)base;
	struct rdma_conn_param param = make_param(chan, priv, priv_len);
	int early;

	if (check_ready(chan, true))
		return -EINVAL;
	pthread_mutex_lock(&chan->eq->lock);
	atomic_store(&chan->state, VERBS_CONNECTING);
	early = chan->doomed ? -ECONNRESET : chan->early_error;
	pthread_mutex_unlock(&chan->eq->lock);
	if (early)
		return settle_failed(chan, early);
	if (rdma_accept(chan->id, &param))
		return settle_failed(chan, -errno);
	verbs_kick(VERBS_OF(chan));
	return 0;
}

int verbs_chan_reject(struct fabric_chan *base, const void *priv, size_t priv_len)
{
	struct verbs_chan *chan = (struct verbs_chan *)base;

	if (!chan->passive || atomic_load(&chan->state) != VERBS_NEW)
		return -EINVAL;
	if (rdma_reject(chan->id, priv, (uint8_t)priv_len))
		log_debug("verbs: reject: error %d", errno); /* the peer is gone; as it should be */
	verbs_chan_destroy(chan);
	return 0;
}

/* ---- events ---- */

static struct verbs_listener *listener_of(struct verbs_eq *eq, const struct rdma_cm_id *id)
{
	struct verbs_listener *listener;

	LIST_FOREACH(listener, &eq->listeners, link)
	{
		if (listener->id == id)
			return listener;
	}
	return NULL;
}

/* A peer connects.  0: the new id has a channel; else it is refused. */
static int request(struct verbs *verbs, struct verbs_eq *eq, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;
	struct verbs_listener *listener = listener_of(eq, event->listen_id);
	const struct sockaddr *peer = rdma_get_peer_addr(event->id);
	struct fabric_event *ev;
	struct verbs_chan *chan;
	int err;

	if (!listener)
		return -ECONNREFUSED;
	err = verbs_chan_new(verbs, eq, event->id, &chan);
	if (err)
		return err;
	chan->passive = true;
	memcpy(&chan->base.peer, peer,
		peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					    : sizeof(struct sockaddr_in));
	limit_reads(chan, param->responder_resources, param->initiator_depth);
	set_ack_timeout(chan->id);
	ev = &chan->request.ev;
	ev->listener = &listener->base;
	ev->priv_len = param->private_data_len < FABRIC_PRIVATE_MAX ? param->private_data_len
								    : FABRIC_PRIVATE_MAX;
	if (param->private_data)
		memcpy(ev->priv, param->private_data, ev->priv_len);
	else
		ev->priv_len = 0;
	pthread_mutex_lock(&eq->lock);
	verbs_eq_push(eq, &chan->request, FABRIC_EVENT_REQUEST, &chan->base, 0);
	pthread_mutex_unlock(&eq->lock);
	return 0;
}

/* The peer's answer was no, or there was nobody to give one. */
static void rejected(struct verbs_chan *chan, const struct rdma_cm_event *event)
{
	/* InfiniBand says why; iWARP says only "refused" (TCP) or "reset" (MPA's reject) */
	bool by_user = chan->device->iwarp ? event->status != -ECONNREFUSED
					   : event->status == REJECTED_BY_USER;

	if (chan->passive)
		settle(chan, FABRIC_EVENT_FAILED, -ECONNRESET, NULL);
	else if (by_user)
		settle(chan, FABRIC_EVENT_REJECTED, -ECONNREFUSED, &event->param.conn);
	else
		settle(chan, FABRIC_EVENT_FAILED, -ECONNREFUSED, NULL);
}

static void established(
	struct verbs *verbs, struct verbs_chan *chan, const struct rdma_cm_event *event)
{
	if (settle(chan, FABRIC_EVENT_CONNECTED, 0, &event->param.conn))
		verbs_kick(verbs);
	else if (atomic_load(&chan->state) != VERBS_CONNECTED)
		rdma_disconnect(chan->id); /* the user does not want it any more */
}

void verbs_cm_heard(struct verbs_chan *chan)
{
	if (!settle(chan, FABRIC_EVENT_CONNECTED, 0, NULL))
		return;
	rdma_notify(chan->id, IBV_EVENT_COMM_EST);
	verbs_kick(VERBS_OF(chan));
}

static void disconnected(struct verbs_chan *chan)
{
	settle(chan, FABRIC_EVENT_FAILED, -ECONNRESET, NULL); /* if it was not connected yet */
	verbs_chan_end(chan, 0);
	/* Once more if it was called before: the peer waits for an answer to its own. */
	atomic_store(&chan->torn, true);
	rdma_disconnect(chan->id);
}

static void chan_event(
	struct verbs *verbs, struct verbs_chan *chan, const struct rdma_cm_event *event)
{
	int error = event->status < 0 ? event->status : -ECONNABORTED;

	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		established(verbs, chan, event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		rejected(chan, event);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		settle(chan, FABRIC_EVENT_FAILED, event->status < 0 ? event->status : -EHOSTUNREACH,
			NULL);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		settle(chan, FABRIC_EVENT_FAILED, error, NULL);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		disconnected(chan);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (!chan->device->removed) /* each of its channels has the event */
			log_error("verbs: %s was removed",
				ibv_get_device_name(chan->device->context->device));
		chan->device->removed = true;
		chan->device->dead = true;
		settle(chan, FABRIC_EVENT_FAILED, -ENODEV, NULL);
		verbs_chan_end(chan, -ENODEV);
		break;
	default:
		log_debug("verbs: %s, status %d", rdma_event_str(event->event), event->status);
	}
}

void verbs_cm_events(struct verbs *verbs, struct verbs_eq *eq)
{
	struct rdma_cm_event *event;

	for (int i = 0; i < EVENTS_AT_ONCE && !rdma_get_cm_event(eq->channel, &event); i++) {
		struct rdma_cm_id *refused = NULL;
		struct verbs_listener *listener = NULL;

		log_debug("verbs: %s, status %d", rdma_event_str(event->event), event->status);
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			if (request(verbs, eq, event))
				refused = event->id;
		} else if ((listener = listener_of(eq, event->id))) {
			listener->lost = event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
			log_warning("verbs: listener: %s, status %d", rdma_event_str(event->event),
				event->status);
		} else if (event->id->context) {
			chan_event(verbs, event->id->context, event);
		}
		rdma_ack_cm_event(
			event); /* before anybody may destroy its id: they need the lock */
		if (refused) {
			rdma_reject(refused, NULL, 0);
			rdma_destroy_id(refused);
		}
		if (listener && listener->lost) {
			/* the kernel may not let go of a device before we have closed it */
			rdma_destroy_id(listener->id);
			listener->id = NULL;
		}
	}
}
