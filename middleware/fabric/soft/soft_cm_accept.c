/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_cm_accept: the accepting side of a connection: sockets whose MPA request has not
 * come yet, the request, the reply that accepts or rejects.
 */
#include <errno.h>

#include "base/addr.h"
#include "base/log.h"
#include "fabric/soft/soft_cm_impl.h"

void soft_cm_drop_half_open(struct soft_thread *thread, const char *why)
{
	struct soft_chan *chan = TAILQ_FIRST(&thread->half_open);
	char text[ADDR_TEXT_MAX];

	addr_format((const struct sockaddr *)&chan->base.peer, text);
	log_debug("soft: %s dropped before its MPA request: %s", text, why);
	soft_chan_dispose(chan);
}

void soft_cm_adopt(struct soft_chan *chan)
{
	struct soft_thread *thread = chan->thread;

	chan->phase = SOFT_PHASE_READ_REQUEST;
	chan->deadline_ns = soft_cm_deadline(chan->soft);
	if (thread->half_open_count >= chan->soft->half_open_max)
		soft_cm_drop_half_open(thread, "too many at once");
	soft_chan_move(chan, &thread->half_open);
	if (soft_cm_watch(chan) < 0)
		soft_chan_dispose(chan);
}

void soft_cm_drop(struct soft_chan *chan, const char *why)
{
	char text[ADDR_TEXT_MAX];

	addr_format((const struct sockaddr *)&chan->base.peer, text);
	log_debug("soft: %s dropped: %s", text, why);
	soft_chan_dispose(chan);
}

/* Why the request cannot be answered with an accept, whatever the user thinks; NULL: it can. */
static const char *request_refusal(const struct mpa_frame *request)
{
	if (request->revision < 1 || request->revision > 2)
		return "unknown MPA revision";
	if (request->markers)
		return "it demands markers";
	if (request->priv_len > FABRIC_PRIVATE_MAX)
		return "too much private data";
	return NULL;
}

static void request_note(struct soft_chan *chan, const struct mpa_frame *request)
{
	chan->revision = request->revision == 1 ? 1 : 2;
	chan->enhanced = request->enhanced;
	chan->crc = request->crc || chan->soft->config.crc;
	if (request->enhanced) {
		chan->ird = soft_cm_depth(request->ord, SOFT_READS_MAX);
		chan->ord = soft_cm_depth(request->ird, SOFT_READS_MAX);
	}
	soft_cm_agree_on_reads(chan); /* the user may look as soon as it has the request */
	if (!request->enhanced)
		return;
	/* Of the messages by which an initiator shows that it is ready, a write costs least. */
	chan->peer_to_peer = request->peer_to_peer;
	chan->rtr_read = request->peer_to_peer && request->rtr_read && !request->rtr_write;
	chan->rtr_write = request->peer_to_peer && !chan->rtr_read;
}

void soft_cm_take_request(struct soft_chan *chan)
{
	struct soft_listener *listener = chan->listener;
	struct soft_event *event = &chan->events[0];
	struct mpa_frame request;
	const char *refusal;
	int err = soft_cm_read_frame(chan, MPA_REQUEST, &request);

	if (!err)
		return;
	if (err < 0) {
		soft_cm_drop(
			chan, err == -EPROTO ? "no MPA request" : "closed before its MPA request");
		return;
	}
	request_note(chan, &request);
	refusal = request_refusal(&request);
	if (refusal) {
		log_debug("soft: MPA request refused: %s", refusal);
		soft_cm_reject(chan, NULL, 0);
		return;
	}
	soft_cm_note_private(chan, &request);
	soft_cm_note_local(chan);
	/* The user may find it, and free it, as soon as it is in the queue: leave it alone then. */
	chan->phase = SOFT_PHASE_HELD;
	chan->orphan = false;
	soft_chan_move(chan, &chan->thread->others);
	event->type = FABRIC_EVENT_REQUEST;
	event->error = 0;
	event->listener = &listener->base;
	chan->listener = NULL;
	pthread_mutex_lock(&listener->lock);
	if (!listener->closed) {
		chan->eq = listener->eq;
		soft_eq_push(listener->eq, event);
		chan = NULL;
	}
	pthread_mutex_unlock(&listener->lock);
	soft_listener_put(listener);
	if (chan)
		soft_cm_drop(chan, "nobody listens any more");
}

static struct mpa_frame reply_make(const struct soft_chan *chan, const void *priv, size_t priv_len)
{
	return (struct mpa_frame){
		.kind = MPA_REPLY,
		.revision = chan->revision,
		.crc = chan->crc,
		.enhanced = chan->enhanced,
		.ird = chan->ird,
		.ord = chan->ord,
		.peer_to_peer = chan->peer_to_peer,
		.rtr_write = chan->rtr_write,
		.rtr_read = chan->rtr_read,
		.priv = priv,
		.priv_len = priv_len,
	};
}

void soft_cm_accept(struct soft_chan *chan)
{
	const struct mpa_frame reply = reply_make(chan, chan->priv, chan->priv_len);
	int err = chan->phase == SOFT_PHASE_HELD ? soft_cm_send_frame(chan, &reply) : -ECONNRESET;

	if (err) {
		soft_chan_break(chan, err, FABRIC_FLUSHED);
		return;
	}
	chan->priv_len = 0; /* the event of this side has none */
	soft_cm_begin(chan, false);
}

void soft_cm_reject(struct soft_chan *chan, const void *priv, size_t priv_len)
{
	struct mpa_frame reply = reply_make(chan, priv, priv_len);

	chan->orphan = true;
	/* The peer closes first, or the time is over: siw does not look at a reply with a FIN
	 * behind it. */
	chan->tx.shut = true;
	reply.reject = true;
	if ((chan->phase != SOFT_PHASE_HELD && chan->phase != SOFT_PHASE_READ_REQUEST) ||
		soft_cm_send_frame(chan, &reply) < 0)
		soft_chan_dispose(chan);
	else
		soft_chan_linger(chan);
}
