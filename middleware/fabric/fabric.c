/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/fabric: what all fabrics share: checks of arguments against the caps, waiting on an event
 * queue, and the forwarding of every call to the fabric's own table.
 */
#include "fabric/fabric_impl.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>

#include "base/clock.h"

#define FLAGS_KNOWN ((unsigned)(FABRIC_SIGNALED | FABRIC_INLINE))
#define ACCESS_KNOWN ((unsigned)(FABRIC_REMOTE_WRITE | FABRIC_REMOTE_READ | FABRIC_READ_INTO))

/* ---- fabric ---- */

const char *fabric_name(const struct fabric *fabric)
{
	return fabric->ops->name;
}

void fabric_close(struct fabric *fabric)
{
	if (fabric)
		fabric->ops->close(fabric);
}

/* ---- connection events ---- */

int fabric_eq_new(struct fabric *fabric, struct fabric_eq **out)
{
	return fabric->ops->eq_new(fabric, out);
}

void fabric_eq_free(struct fabric_eq *eq)
{
	if (eq)
		eq->fabric->ops->eq_free(eq);
}

int fabric_eq_fd(const struct fabric_eq *eq)
{
	return eq->fabric->ops->eq_fd(eq);
}

int fabric_eq_get(struct fabric_eq *eq, struct fabric_event *ev)
{
	return eq->fabric->ops->eq_get(eq, ev);
}

int fabric_eq_wait(struct fabric_eq *eq, struct fabric_event *ev, int timeout_ms)
{
	uint64_t deadline = 0;

	if (timeout_ms >= 0)
		deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	for (;;) {
		struct pollfd pfd = {.fd = fabric_eq_fd(eq), .events = POLLIN};
		int err = fabric_eq_get(eq, ev);
		int left;

		if (err)
			return err;
		left = timeout_ms < 0 ? -1 : clock_until_ms(deadline);
		if (!left)
			return 0;
		if (poll(&pfd, 1, left) < 0 && errno != EINTR)
			return -errno;
	}
}

/* ---- listen, connect, accept ---- */

/* Only the families that every fabric takes, and whole ones. */
static int check_addr(const struct sockaddr *sa, socklen_t len)
{
	if (!sa || len < sizeof(sa->sa_family))
		return -EINVAL;
	if (sa->sa_family == AF_INET)
		return len < sizeof(struct sockaddr_in) ? -EINVAL : 0;
	if (sa->sa_family == AF_INET6)
		return len < sizeof(struct sockaddr_in6) ? -EINVAL : 0;
	return -EAFNOSUPPORT;
}

int fabric_listen(struct fabric_eq *eq, const struct sockaddr *sa, socklen_t len,
	struct fabric_listener **out)
{
	int err = check_addr(sa, len);

	return err ? err : eq->fabric->ops->listen(eq, sa, len, out);
}

int fabric_listener_addr(const struct fabric_listener *listener, struct sockaddr_storage *out)
{
	return listener->fabric->ops->listener_addr(listener, out);
}

void fabric_listener_free(struct fabric_listener *listener)
{
	if (listener)
		listener->fabric->ops->listener_free(listener);
}

int fabric_dial(struct fabric_eq *eq, const struct sockaddr *dst, const struct sockaddr *src,
	int timeout_ms, struct fabric_chan **out)
{
	int err = check_addr(dst, sizeof(struct sockaddr_storage));

	if (!err && src && src->sa_family != dst->sa_family)
		err = -EINVAL;
	return err ? err : eq->fabric->ops->dial(eq, dst, src, timeout_ms, out);
}

void fabric_chan_reach(struct fabric_chan *chan)
{
	if (chan->fabric->ops->chan_reach)
		chan->fabric->ops->chan_reach(chan);
}

int fabric_chan_setup(struct fabric_chan *chan, const struct fabric_chan_attr *attr)
{
	if (!attr->pd || !attr->cq)
		return -EINVAL;
	if (!attr->send_depth || attr->send_depth > chan->caps.max_depth)
		return -EINVAL;
	if (!attr->recv_depth || attr->recv_depth > chan->caps.max_depth)
		return -EINVAL;
	return chan->fabric->ops->chan_setup(chan, attr);
}

int fabric_chan_connect(struct fabric_chan *chan, const void *priv, size_t priv_len)
{
	if (priv_len > FABRIC_PRIVATE_MAX)
		return -EINVAL;
	return chan->fabric->ops->chan_connect(chan, priv, priv_len);
}

int fabric_chan_accept(struct fabric_chan *chan, const void *priv, size_t priv_len)
{
	if (priv_len > FABRIC_PRIVATE_MAX)
		return -EINVAL;
	return chan->fabric->ops->chan_accept(chan, priv, priv_len);
}

int fabric_chan_reject(struct fabric_chan *chan, const void *priv, size_t priv_len)
{
	if (priv_len > FABRIC_PRIVATE_MAX)
		return -EINVAL;
	return chan->fabric->ops->chan_reject(chan, priv, priv_len);
}

void fabric_chan_disconnect(struct fabric_chan *chan)
{
	chan->fabric->ops->chan_disconnect(chan);
}

void fabric_chan_free(struct fabric_chan *chan)
{
	if (chan)
		chan->fabric->ops->chan_free(chan);
}

void *fabric_chan_context(const struct fabric_chan *chan)
{
	return chan->context;
}

void fabric_chan_set_owner(struct fabric_chan *chan, void *owner)
{
	chan->owner = owner;
}

const struct fabric_caps *fabric_chan_caps(const struct fabric_chan *chan)
{
	return &chan->caps;
}

const char *fabric_chan_name(const struct fabric_chan *chan)
{
	return fabric_name(chan->fabric);
}

const struct sockaddr *fabric_chan_peer(const struct fabric_chan *chan)
{
	return (const struct sockaddr *)&chan->peer;
}

uint64_t fabric_chan_rtt_ns(const struct fabric_chan *chan)
{
	return chan->rtt_ns;
}

uint16_t fabric_chan_local_port(const struct fabric_chan *chan)
{
	return chan->local_port;
}

void fabric_chan_describe(const struct fabric_chan *chan, char *out, size_t size)
{
	chan->fabric->ops->chan_describe(chan, out, size);
}

/* ---- memory ---- */

int fabric_pd_new(struct fabric_chan *chan, struct fabric_pd **out)
{
	return chan->fabric->ops->pd_new(chan, out);
}

void fabric_pd_free(struct fabric_pd *pd)
{
	if (pd)
		pd->fabric->ops->pd_free(pd);
}

int fabric_mr_new(
	struct fabric_pd *pd, void *addr, size_t bytes, unsigned access, struct fabric_mr **out)
{
	if (!addr || !bytes || (access & ~ACCESS_KNOWN))
		return -EINVAL;
	if ((uintptr_t)addr + bytes < (uintptr_t)addr)
		return -EINVAL;
	return pd->fabric->ops->mr_new(pd, addr, bytes, access, out);
}

int fabric_mr_rekey(struct fabric_mr *mr)
{
	return mr->fabric->ops->mr_rekey ? mr->fabric->ops->mr_rekey(mr) : -ENOTSUP;
}

void fabric_mr_free(struct fabric_mr *mr)
{
	if (mr)
		mr->fabric->ops->mr_free(mr);
}

int fabric_mr_watch(struct fabric_mr *mr, struct fabric_cq *cq)
{
	return mr->fabric->ops->mr_watch ? mr->fabric->ops->mr_watch(mr, cq) : -ENOTSUP;
}

uint32_t fabric_mr_key(const struct fabric_mr *mr)
{
	return mr->key;
}

uint64_t fabric_mr_base(const struct fabric_mr *mr)
{
	return mr->base;
}

/* ---- completions ---- */

const char *fabric_status_name(enum fabric_status status)
{
	switch (status) {
	case FABRIC_OK:
		return "success";
	case FABRIC_LOCAL_LENGTH:
		return "local length error";
	case FABRIC_LOCAL_PROTECTION:
		return "local protection error";
	case FABRIC_FLUSHED:
		return "request flushed";
	case FABRIC_REMOTE_ACCESS:
		return "remote access error";
	case FABRIC_REMOTE_OPERATION:
		return "remote operation error";
	case FABRIC_RETRY_EXCEEDED:
		return "peer does not answer";
	case FABRIC_RNR_EXCEEDED:
		return "peer had no receive posted";
	case FABRIC_FATAL:
		return "fabric failure";
	}
	return "unknown status";
}

int fabric_cq_new(struct fabric_pd *pd, uint32_t depth, struct fabric_cq **out)
{
	return depth ? pd->fabric->ops->cq_new(pd, depth, out) : -EINVAL;
}

void fabric_cq_free(struct fabric_cq *cq)
{
	if (cq)
		cq->fabric->ops->cq_free(cq);
}

int fabric_cq_poll(struct fabric_cq *cq, struct fabric_wc *wc, int max)
{
	return max > 0 ? cq->fabric->ops->cq_poll(cq, wc, max) : 0;
}

int fabric_cq_arm(struct fabric_cq *cq)
{
	return cq->fabric->ops->cq_arm(cq);
}

int fabric_cq_fd(const struct fabric_cq *cq)
{
	return cq->fabric->ops->cq_fd(cq);
}

void fabric_cq_ack(struct fabric_cq *cq)
{
	cq->fabric->ops->cq_ack(cq);
}

/* ---- requests ---- */

static int check_sges(const struct fabric_chan *chan, const struct fabric_wr *wr)
{
	const bool inlined = wr->flags & FABRIC_INLINE;
	uint64_t bytes = 0;

	if (wr->sge_count > FABRIC_SGE_MAX || (wr->sge_count && !wr->sge))
		return -EINVAL;
	for (unsigned i = 0; i < wr->sge_count; i++) {
		const struct fabric_sge *sge = &wr->sge[i];

		bytes += sge->bytes;
		if (sge->bytes && (!sge->addr || (!sge->mr && !inlined)))
			return -EINVAL;
	}
	if (bytes > chan->caps.max_message_bytes)
		return -EINVAL;
	return inlined && bytes > chan->caps.inline_max ? -EINVAL : 0;
}

static int check_send(const struct fabric_chan *chan, const struct fabric_wr *wr)
{
	if (wr->flags & ~FLAGS_KNOWN)
		return -EINVAL;
	switch (wr->opcode) {
	case FABRIC_SEND:
	case FABRIC_WRITE:
		break;
	case FABRIC_WRITE_IMM:
		if (!chan->caps.has_imm)
			return -EINVAL;
		break;
	case FABRIC_READ:
		if (!chan->caps.has_read || (wr->flags & FABRIC_INLINE))
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	return check_sges(chan, wr);
}

int fabric_post_send(struct fabric_chan *chan, const struct fabric_wr *list)
{
	for (const struct fabric_wr *wr = list; wr; wr = wr->next) {
		int err = check_send(chan, wr);

		if (err)
			return err;
	}
	return list ? chan->fabric->ops->post_send(chan, list) : 0;
}

int fabric_post_recv(
	struct fabric_chan *chan, uint64_t id, void *addr, uint32_t bytes, struct fabric_mr *mr)
{
	if (bytes && (!addr || !mr))
		return -EINVAL;
	return chan->fabric->ops->post_recv(chan, id, addr, bytes, mr);
}
