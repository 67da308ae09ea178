/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_cm_connect: the connecting side of a connection: dialling, the MPA request, what
 * the reply says.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "fabric/soft/soft_cm_impl.h"

int soft_dial(struct fabric_eq *eq, const struct sockaddr *dst, const struct sockaddr *src,
	int timeout_ms, struct fabric_chan **out)
{
	struct soft_chan *chan;
	int err = soft_chan_new((struct soft *)eq->fabric, &chan);

	(void)timeout_ms; /* nothing is resolved before connect */
	if (err)
		return err;
	memcpy(&chan->base.peer, dst, soft_addr_bytes(dst));
	chan->eq = (struct soft_eq *)eq;
	chan->fd = socket(dst->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (chan->fd < 0) {
		err = -errno;
		goto err_chan;
	}
	if (src && bind(chan->fd, src, soft_addr_bytes(src)) < 0) {
		err = -errno;
		goto err_fd;
	}
	*out = &chan->base;
	return 0;

err_fd:
	close(chan->fd);
err_chan:
	soft_chan_free_now(chan);
	return err;
}

void soft_chan_reach(struct fabric_chan *base)
{
	struct soft_chan *chan = (struct soft_chan *)base;
	const struct sockaddr *dst = (const struct sockaddr *)&chan->base.peer;

	soft_socket_tune(chan->fd);
	if (connect(chan->fd, dst, soft_addr_bytes(dst)) < 0 && errno != EINPROGRESS)
		chan->reach_error = -errno;
	chan->reached = true;
}

void soft_cm_connect(struct soft_chan *chan)
{
	int err;

	if (!chan->reached)
		soft_chan_reach(&chan->base);
	err = chan->reach_error;

	chan->phase = SOFT_PHASE_TCP;
	chan->deadline_ns = soft_cm_deadline(chan->soft);
	soft_chan_move(chan, &chan->thread->connecting);
	if (!err)
		err = soft_cm_watch(chan);
	if (err)
		soft_chan_break(chan, err, FABRIC_FLUSHED);
}

void soft_cm_send_request(struct soft_chan *chan)
{
	const struct soft_config *config = &chan->soft->config;
	const struct mpa_frame request = {
		.kind = MPA_REQUEST,
		.revision = config->revision1 ? 1 : 2,
		.enhanced = !config->revision1,
		.crc = config->crc,
		.ird = SOFT_READS_MAX,
		.ord = SOFT_READS_MAX,
		.priv = chan->priv,
		.priv_len = chan->priv_len,
	};
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(chan->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (!error && !chan->tx.ready)
		return; /* not yet connected */
	if (!error)
		error = -soft_cm_send_frame(chan, &request);
	if (error) {
		soft_chan_break(chan, -error, FABRIC_FLUSHED);
		return;
	}
	soft_cm_note_local(chan);
	chan->phase = SOFT_PHASE_READ_REPLY;
}

static void connect_rejected(struct soft_chan *chan, const struct mpa_frame *reply)
{
	struct soft_event *event = &chan->events[0];

	soft_cm_note_private(chan, reply);
	/* One event only: this one, not FAILED. */
	pthread_mutex_lock(&chan->lock);
	chan->started = false;
	pthread_mutex_unlock(&chan->lock);
	soft_chan_break(chan, -ECONNREFUSED, FABRIC_FLUSHED);
	event->type = FABRIC_EVENT_REJECTED;
	event->error = -ECONNREFUSED;
	event->listener = NULL;
	soft_eq_push(chan->eq, event);
}

void soft_cm_take_reply(struct soft_chan *chan)
{
	struct mpa_frame reply;
	int err = soft_cm_read_frame(chan, MPA_REPLY, &reply);

	if (!err)
		return;
	if (err < 0) {
		soft_chan_break(chan, err, FABRIC_FLUSHED);
		return;
	}
	if (reply.priv_len > FABRIC_PRIVATE_MAX || reply.revision < 1 || reply.revision > 2) {
		soft_chan_break(chan, -EPROTO, FABRIC_FLUSHED);
		return;
	}
	if (reply.reject) {
		connect_rejected(chan, &reply);
		return;
	}
	if (reply.markers) {
		log_debug("soft: the peer demands markers");
		soft_chan_break(chan, -EPROTO, FABRIC_FLUSHED);
		return;
	}
	if (reply.enhanced && !chan->soft->config.revision1) {
		if (reply.ord > SOFT_READS_MAX) {
			log_debug("soft: the peer wants %u reads at once", reply.ord);
			soft_chan_break(chan, -EPROTO, FABRIC_FLUSHED);
			return;
		}
		chan->ird = reply.ord;
		chan->ord = soft_cm_depth(reply.ird, SOFT_READS_MAX);
	}
	pthread_mutex_lock(&chan->lock);
	chan->crc = reply.crc || chan->soft->config.crc;
	pthread_mutex_unlock(&chan->lock);
	soft_cm_agree_on_reads(chan);
	soft_cm_note_private(chan, &reply);
	soft_cm_begin(chan, true);
}
