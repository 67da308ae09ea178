/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_device: the devices that objects of this fabric use, and what they report by
 * themselves.  Does not open devices: librdmacm does.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "fabric/verbs/verbs_impl.h"

/*
 * The kernel's software iWARP, in which some things are not as the verbs have them: receives must
 * have a piece of memory; a SEND may complete before a READ that was posted before it, and arrive
 * before one of the peer's is looked at; a READ is asked for no right, and one whose address wraps
 * ends the connection without a word; requests that are posted while a connection breaks may never
 * complete; what the connecting side sends at once may lie unseen at the accepting side until more
 * comes; it connects from a port that TCP may have in use; a short request that is not inline may
 * break its connection; a listener is gone when a peer closes before it was accepted; and a process
 * gets some sixty queue pairs only.
 */
#define SIW_VENDOR_ID 0x626d74u

static const char *name_of(const struct verbs_device *device)
{
	return ibv_get_device_name(device->context->device);
}

int verbs_device_get(struct verbs *verbs, struct ibv_context *context, struct verbs_device **out)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct verbs_device *device;
	int err;

	LIST_FOREACH(device, &verbs->devices, link)
	{
		if (device->context == context) {
			device->users++;
			*out = device;
			return 0;
		}
	}
	device = calloc(1, sizeof *device);
	if (!device)
		return -ENOMEM;
	device->users = 1;
	device->context = context;
	device->iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
	device->held = rdma_get_devices(NULL);
	if (!device->held) {
		err = -errno;
		goto err_device;
	}
	err = -ibv_query_device(context, &device->limits);
	if (!err)
		err = verbs_fd_nonblock(context->async_fd);
	if (!err && epoll_ctl(verbs->epoll, EPOLL_CTL_ADD, context->async_fd, &event) < 0)
		err = -errno;
	if (err) {
		log_error("verbs: %s: cannot be used: error %d", name_of(device), -err);
		goto err_held;
	}
	device->siw = device->iwarp && device->limits.vendor_id == SIW_VENDOR_ID;
	device->reads_into_exposed = device->iwarp && !device->siw;
	LIST_INSERT_HEAD(&verbs->devices, device, link);
	*out = device;
	return 0;

err_held:
	rdma_free_devices(device->held);
err_device:
	free(device);
	return err;
}

void verbs_device_put(struct verbs *verbs, struct verbs_device *device)
{
	if (--device->users)
		return;
	LIST_REMOVE(device, link);
	epoll_ctl(verbs->epoll, EPOLL_CTL_DEL, device->context->async_fd, NULL);
	rdma_free_devices(device->held);
	free(device);
}

void verbs_close_gone(void)
{
	struct ibv_context **all = rdma_get_devices(NULL); /* looks which there are now */

	if (all)
		rdma_free_devices(all);
}

/* ---- asynchronous events ---- */

static void end_all(struct verbs *verbs, const struct verbs_device *device,
	const struct ibv_cq *bank, int error)
{
	struct verbs_chan *chan;

	LIST_FOREACH(chan, &verbs->chans, link)
	{
		if (chan->device == device && (!bank || chan->bank == bank))
			verbs_chan_end(chan, error);
	}
}

static struct verbs_chan *chan_of(struct verbs *verbs, const struct ibv_qp *qp)
{
	struct verbs_chan *chan;

	LIST_FOREACH(chan, &verbs->chans, link)
	{
		if (chan->id->qp == qp)
			return chan;
	}
	return NULL;
}

static void handle(
	struct verbs *verbs, struct verbs_device *device, const struct ibv_async_event *event)
{
	const char *what = ibv_event_type_str(event->event_type);
	struct verbs_chan *chan;

	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		chan = chan_of(verbs, event->element.qp);
		if (chan && verbs_chan_end(chan,
				    event->event_type == IBV_EVENT_QP_ACCESS_ERR ? -EACCES : -EIO))
			log_warning("verbs: %s, queue pair %u: %s", name_of(device),
				event->element.qp->qp_num, what);
		break;
	case IBV_EVENT_COMM_EST:
		/* data came before the last message of the handshake, which may be lost */
		chan = chan_of(verbs, event->element.qp);
		if (chan)
			rdma_notify(chan->id, IBV_EVENT_COMM_EST);
		break;
	case IBV_EVENT_CQ_ERR:
		log_error("verbs: %s: a completion queue overflowed or failed: %s", name_of(device),
			what);
		end_all(verbs, device, event->element.cq, -EIO);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		log_error("verbs: %s: %s", name_of(device), what);
		device->dead = true;
		end_all(verbs, device, NULL, -ENODEV);
		break;
	case IBV_EVENT_PORT_ERR:
		log_warning(
			"verbs: %s port %d: %s", name_of(device), event->element.port_num, what);
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
		log_info("verbs: %s port %d: %s", name_of(device), event->element.port_num, what);
		break;
	default:
		log_debug("verbs: %s: %s", name_of(device), what);
	}
}

void verbs_device_events(struct verbs *verbs, struct verbs_device *device)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(device->context, &event)) {
		handle(verbs, device, &event);
		ibv_ack_async_event(
			&event); /* before anybody may destroy its object: they need the lock */
	}
}
