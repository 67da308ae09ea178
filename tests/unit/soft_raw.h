/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/soft_raw.h: a peer of the soft fabric that is a plain socket, so that a test says and
 * sees every byte; and the fabric's side of such a connection.
 */
#ifndef TESTS_SOFT_RAW_H
#define TESTS_SOFT_RAW_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "fabric/bytes.h"
#include "fabric/soft/crc32c.h"
#include "fabric/soft/ddp.h"
#include "fabric/fabric.h"
#include "fabric/soft/mpa.h"
#include "fabric/soft/soft.h"
#include "tests/harness.h"

#define WAIT_MS 10000
#define RIG_BYTES 262144u
#define RIG_RECV_BYTES 64u
#define RIG_DEPTH 16u

/*
 * ---- the plain socket ----
 *
 * A signal may come at any time (a fuzzer's clock sends one each second), and a wait with a time
 * limit is not begun again by itself: every call here goes on where it was interrupted.
 */

static inline struct sockaddr_in raw_loopback(uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return in;
}

static inline int raw_socket(void)
{
	const struct timeval wait = {.tv_sec = WAIT_MS / 1000};
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static inline bool raw_connect(int fd, uint16_t port)
{
	struct sockaddr_in in = raw_loopback(port);
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int error = 0;

	if (connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0)
		return true;
	if (errno != EINTR)
		return false;
	while (poll(&pfd, 1, WAIT_MS) < 0)
		if (errno != EINTR)
			return false;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && !error;
}

static inline bool raw_send(int fd, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	while (bytes) {
		ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

static inline bool raw_recv(int fd, void *data, size_t bytes)
{
	uint8_t *p = data;

	while (bytes) {
		ssize_t n = recv(fd, p, bytes, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* The other side has closed, after whatever it still sent. */
static inline bool raw_closed(int fd)
{
	uint8_t waste[4096];
	ssize_t n;

	do
		n = recv(fd, waste, sizeof(waste), 0);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n == 0 || errno == ECONNRESET;
}

/* Nothing arrives for `ms`. */
static inline bool raw_silent(int fd, int ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, ms) == 0;
}

/* An FPDU of a header and payload into `out`; bytes. */
static inline size_t raw_fpdu(
	uint8_t *out, const struct ddp_header *header, const void *payload, size_t bytes, bool crc)
{
	size_t ulpdu = ddp_header_put(out + 2, header) + bytes;
	size_t end = 2 + ulpdu + mpa_pad_bytes(ulpdu);

	bytes_put16(out, (uint16_t)ulpdu);
	if (bytes)
		memcpy(out + 2 + ulpdu - bytes, payload, bytes);
	memset(out + 2 + ulpdu, 0, end - 2 - ulpdu);
	mpa_crc_put(out + end, crc ? crc32c(0, out, end) : 0);
	return end + 4;
}

static inline bool raw_send_fpdu(
	int fd, const struct ddp_header *header, const void *payload, size_t bytes)
{
	static uint8_t out[MPA_ULPDU_MAX + 16];

	return raw_send(fd, out, raw_fpdu(out, header, payload, bytes, false));
}

/* The next FPDU: header and up to `max` bytes of payload.  Payload bytes, -1: none comes. */
static inline int raw_recv_fpdu(int fd, struct ddp_header *header, uint8_t *payload, size_t max)
{
	static uint8_t in[MPA_ULPDU_MAX + 16];
	struct ddp_error error;
	size_t ulpdu;
	int len;

	if (!raw_recv(fd, in, 2))
		return -1;
	ulpdu = bytes_get16(in);
	if (!raw_recv(fd, in + 2, ulpdu + mpa_trailer_bytes(ulpdu)))
		return -1;
	len = ddp_header_get(in + 2, ulpdu, header, &error);
	if (len <= 0 || ulpdu - (size_t)len > max)
		return -1;
	memcpy(payload, in + 2 + len, ulpdu - (size_t)len);
	return (int)(ulpdu - (size_t)len);
}

/* The Terminate that must come next. */
static inline bool raw_recv_terminate(int fd, struct ddp_terminate *term)
{
	uint8_t payload[256];
	struct ddp_header header;
	int bytes = raw_recv_fpdu(fd, &header, payload, sizeof(payload));

	return bytes >= 0 && header.opcode == DDP_TERMINATE && header.msn == 1 && header.last &&
	       ddp_terminate_get(payload, (size_t)bytes, term) == 0;
}

static inline bool raw_request(int fd, const struct mpa_frame *frame)
{
	uint8_t out[MPA_FRAME_MAX];

	return raw_send(fd, out, mpa_frame_put(out, frame));
}

/* The reply; *reply points into `in`, of MPA_FRAME_MAX. */
static inline bool raw_reply(int fd, uint8_t *in, struct mpa_frame *reply)
{
	size_t len, need;

	if (!raw_recv(fd, in, MPA_FRAME_FIXED_BYTES))
		return false;
	len = bytes_get16(in + 18);
	if (len > MPA_PRIVATE_MAX || !raw_recv(fd, in + MPA_FRAME_FIXED_BYTES, len))
		return false;
	return mpa_frame_get(in, MPA_FRAME_FIXED_BYTES + len, MPA_REPLY, reply, &need) > 0;
}

/* ---- the fabric's side ---- */

struct rig {
	struct fabric *fabric;
	struct fabric_eq *eq;
	struct fabric_listener *listener;
	uint16_t port;
	int fd; /* the peer; -1 none */
	struct fabric_chan *chan;
	struct fabric_pd *pd;
	struct fabric_cq *cq;
	struct fabric_mr *mr; /* all of memory, for reading and writing */
	struct fabric_mr *ro; /* the same, for remote reading only */
	struct fabric_mr *wo; /* the same, for remote writing only */
	uint8_t *memory;
};

static inline bool rig_open(struct rig *rig, const struct soft_config *config)
{
	struct sockaddr_in in = raw_loopback(0);
	struct sockaddr_storage real;

	*rig = (struct rig){.fd = -1};
	if (soft_open(config, &rig->fabric) || fabric_eq_new(rig->fabric, &rig->eq))
		return false;
	if (fabric_listen(rig->eq, (struct sockaddr *)&in, sizeof(in), &rig->listener))
		return false;
	if (fabric_listener_addr(rig->listener, &real))
		return false;
	rig->port = addr_port((struct sockaddr *)&real);
	rig->memory = calloc(1, RIG_BYTES);
	return rig->memory != NULL;
}

static inline bool rig_event(struct rig *rig, enum fabric_event_type type, struct fabric_event *ev)
{
	if (fabric_eq_wait(rig->eq, ev, WAIT_MS) == 1 && ev->type == type)
		return true;
	printf("# event %d instead of %d\n", ev->type, type);
	return false;
}

/* Objects of rig->chan; `recvs` receives of RIG_RECV_BYTES at the start of memory. */
static inline bool rig_setup(struct rig *rig, unsigned recvs)
{
	struct fabric_chan_attr attr = {
		.send_depth = RIG_DEPTH, .recv_depth = RIG_DEPTH, .inline_bytes = 64};

	if (fabric_pd_new(rig->chan, &rig->pd) || fabric_cq_new(rig->pd, 2 * RIG_DEPTH, &rig->cq))
		return false;
	if (fabric_mr_new(rig->pd, rig->memory, RIG_BYTES, FABRIC_REMOTE_WRITE | FABRIC_REMOTE_READ,
		    &rig->mr) ||
		fabric_mr_new(rig->pd, rig->memory, RIG_BYTES, FABRIC_REMOTE_READ, &rig->ro) ||
		fabric_mr_new(rig->pd, rig->memory, RIG_BYTES, FABRIC_REMOTE_WRITE, &rig->wo))
		return false;
	attr.pd = rig->pd;
	attr.cq = rig->cq;
	if (fabric_chan_setup(rig->chan, &attr))
		return false;
	for (unsigned i = 0; i < recvs; i++)
		if (fabric_post_recv(rig->chan, i, rig->memory + (size_t)i * RIG_RECV_BYTES,
			    RIG_RECV_BYTES, rig->mr))
			return false;
	return true;
}

/* A plain socket connects with an enhanced request and is accepted. */
static inline bool rig_connect(struct rig *rig, bool crc, unsigned recvs)
{
	const struct mpa_frame request = {.kind = MPA_REQUEST,
		.revision = 2,
		.enhanced = true,
		.ird = 4,
		.ord = 4,
		.crc = crc};
	uint8_t in[MPA_FRAME_MAX];
	struct mpa_frame reply;
	struct fabric_event ev;

	rig->fd = raw_socket();
	if (!raw_connect(rig->fd, rig->port) || !raw_request(rig->fd, &request))
		return false;
	if (!rig_event(rig, FABRIC_EVENT_REQUEST, &ev))
		return false;
	rig->chan = ev.chan;
	if (!rig_setup(rig, recvs) || fabric_chan_accept(rig->chan, NULL, 0))
		return false;
	return raw_reply(rig->fd, in, &reply) && !reply.reject && reply.crc == crc &&
	       rig_event(rig, FABRIC_EVENT_CONNECTED, &ev);
}

/* One completion. */
static inline bool rig_wc(struct rig *rig, struct fabric_wc *wc)
{
	uint64_t deadline = clock_now_ns() + WAIT_MS * NS_PER_MS;

	for (;;) {
		struct pollfd pfd = {.fd = fabric_cq_fd(rig->cq), .events = POLLIN};

		if (fabric_cq_poll(rig->cq, wc, 1) == 1)
			return true;
		fabric_cq_arm(rig->cq);
		if (fabric_cq_poll(rig->cq, wc, 1) == 1)
			return true;
		if (clock_now_ns() >= deadline)
			return false;
		poll(&pfd, 1, clock_until_ms(deadline));
	}
}

/* Ends the connection, not the fabric. */
static inline void rig_disconnect(struct rig *rig)
{
	if (rig->fd >= 0)
		close(rig->fd);
	rig->fd = -1;
	fabric_chan_free(rig->chan);
	fabric_mr_free(rig->wo);
	fabric_mr_free(rig->ro);
	fabric_mr_free(rig->mr);
	fabric_cq_free(rig->cq);
	fabric_pd_free(rig->pd);
	rig->chan = NULL;
	rig->wo = rig->ro = rig->mr = NULL;
	rig->cq = NULL;
	rig->pd = NULL;
}

static inline void rig_close(struct rig *rig)
{
	rig_disconnect(rig);
	fabric_listener_free(rig->listener);
	fabric_eq_free(rig->eq);
	fabric_close(rig->fabric);
	free(rig->memory);
}

#endif
