/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_impl.h: the objects of the verbs fabric and what its files ask of each other.
 *
 *   verbs.c         the fabric itself, its thread: connection events, device events, ticks
 *   verbs_device.c  devices in use, their limits and asynchronous events
 *   verbs_eq.c      event queues, listeners
 *   verbs_cm.c      dialling, connecting, accepting; what connection events mean
 *   verbs_chan.c    the end of a channel: breaking, orderly closing, freeing; describing
 *   verbs_qp.c      queue pairs: making them, posting
 *   verbs_cq.c      completion queues
 *   verbs_memory.c  protection domains, registered memory
 *   verbs_name.c    completion statuses and errors: from rdma-core's terms to ours
 *
 * Connection events are taken by the fabric's thread, not by the user's: a peer's disconnect must
 * flush what is posted here whether or not the user looks at its event queue.
 *
 * Locks, taken in this order:
 *   verbs.lock   lists of objects; handling of connection and device events.  Held for longer
 *                moments, never by posting and polling
 *   cq.lock      polling
 *   eq.lock      the queue of events, and the state of the channels that report to it
 */
#ifndef FABRIC_VERBS_IMPL_H
#define FABRIC_VERBS_IMPL_H

#include "base/worker.h"
#include "fabric/fabric_impl.h"
#include "fabric/verbs/verbs.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct verbs_chan;

struct verbs {
	struct fabric base;
	pthread_mutex_t lock;
	struct worker thread;
	int epoll;
	int kick; /* eventfd: look at the channels, or stop */
	atomic_bool stop;
	atomic_uint next_vector; /* spreads completion queues over a device's vectors */
	LIST_HEAD(, verbs_eq) eqs;
	LIST_HEAD(, verbs_device) devices;
	LIST_HEAD(, verbs_chan) chans;
};
#define VERBS_OF(object) ((struct verbs *)(object)->base.fabric)

struct verbs_device {
	LIST_ENTRY(verbs_device) link;
	unsigned users; /* channels, protection domains, memory, completion queues */
	struct ibv_context *context;
	struct ibv_context **held; /* keeps librdmacm from closing the context under us */
	struct ibv_device_attr limits;
	bool iwarp;
	bool removed;
	bool siw;  /* the kernel's software iWARP, which needs help: see verbs_device.c */
	bool dead; /* removed, or failed: it completes nothing any more */
	bool reads_into_exposed; /* iWARP: the sink of a READ must be remotely writable */
};

/* An event that waits.  Each channel has room for one of each kind, so that none is ever lost. */
struct verbs_event {
	TAILQ_ENTRY(verbs_event) link;
	bool queued;
	struct fabric_event ev;
};

struct verbs_eq {
	struct fabric_eq base;
	LIST_ENTRY(verbs_eq) link;
	struct rdma_event_channel *channel;
	int fd; /* eventfd, readable while `events` is not empty */
	pthread_mutex_t lock;
	TAILQ_HEAD(, verbs_event) events;
	LIST_HEAD(, verbs_listener) listeners;
};

struct verbs_listener {
	struct fabric_listener base;
	LIST_ENTRY(verbs_listener) link;
	struct verbs_eq *eq;
	struct rdma_cm_id *id;
	struct sockaddr_storage addr;
	bool lost; /* its device has gone, and `id` with it; under verbs.lock */
};

struct verbs_pd {
	struct fabric_pd base;
	struct verbs_device *device;
	struct ibv_pd *pd;
};

struct verbs_mr {
	struct fabric_mr base;
	struct verbs_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mr
		*sink; /* the same memory for READs, where `mr` will not do; made by the first */
	unsigned access;
};

/* A posted request, known to the device by the address of its slot. */
struct verbs_slot {
	struct verbs_chan *chan;
	uint64_t id;
	uint64_t index; /* of its ring's requests, from 0 */
	uint8_t opcode; /* enum fabric_opcode */
	bool receive;
	bool wanted;  /* the user asked for its completion; else only an error is told */
	bool partial; /* the request goes on in the next slot, whose completion is its own */
};

struct verbs_ring {
	struct verbs_slot
		*slots; /* depth + 1 (one for verbs_qp_mark); slot of request i: i % (depth + 1) */
	uint32_t depth;
	_Atomic uint64_t posted;
	_Atomic uint64_t done;    /* all below are completed */
	_Atomic uint64_t retired; /* all below are the user's again: completed and polled */
};

/* A completion taken from the device; it waits in a stash when another than the user took it. */
struct verbs_done {
	struct fabric_wc wc;
	uint64_t index;
	bool receive;
	bool silent; /* not for the user */
};

/* Devices limit the size of their queues; a fabric's queue is as many of them as it takes. */
struct verbs_bank {
	struct ibv_cq *cq;
	uint32_t size, reserved;
	unsigned unacked; /* events taken and not acknowledged, which is done many at a time */
	bool armed;       /* its next event has not been taken */
};

struct verbs_cq {
	struct fabric_cq base;
	struct verbs_device *device;
	pthread_mutex_t lock;
	struct ibv_comp_channel *channel;
	int wake;   /* eventfd: completions came that the device does not tell of */
	bool woken; /* it is readable */
	int fd;     /* epoll of both */
	uint32_t depth, reserved;
	struct verbs_bank *banks;
	unsigned bank_count, next_bank;
	struct verbs_done *stash; /* a ring of stash_room */
	uint32_t stash_room, stash_head, stash_count;
	bool polled; /* by the user, since the fabric's thread looked last */
};

enum verbs_state {
	VERBS_NEW,        /* dialled or requested */
	VERBS_CONNECTING, /* connect or accept was called */
	VERBS_CONNECTED,
	VERBS_CLOSING, /* disconnect was called */
	VERBS_ENDED,   /* DISCONNECTED was told */
	VERBS_FAILED,  /* REJECTED or FAILED was told */
};

struct verbs_chan {
	struct fabric_chan base;
	LIST_ENTRY(verbs_chan) link;
	struct verbs_eq *eq;
	struct verbs_device *device;
	struct rdma_cm_id *id;
	bool passive;
	_Atomic int state; /* enum verbs_state; changed under eq->lock */
	struct verbs_event request, outcome, disconnected;
	uint8_t reads_in, reads_out; /* READs at once: of the peer's, of ours */
	int early_error;             /* passive: the peer gave up before accept was called */
	bool doomed;                 /* so early that there is no queue pair; accept will say so */

	/* from setup on; `cq` is set under verbs.lock */
	struct verbs_pd *pd;
	struct verbs_cq *cq;
	struct ibv_cq *bank; /* of `cq`; there, not its index, for the array may move */
	struct verbs_ring sends, recvs;
	uint32_t silent_run;  /* unsignalled requests since the last that the device reports */
	uint32_t silent_max;  /* of them in a row */
	uint32_t stashed;     /* of its completions in the stash, under cq->lock */
	uint64_t last_read;   /* index behind the last READ posted */
	unsigned read_pieces; /* pieces of memory that one READ of the device may fill */
	enum ibv_wc_status part_status; /* what became of the parts of a request, under cq->lock */

	atomic_bool torn;     /* rdma_disconnect was called */
	atomic_bool flushed;  /* a flush came before anybody said why */
	uint64_t deadline_ns; /* the thread's: when to wait no longer for an end */
	uint64_t flush_ns;    /* the thread's: when to wait no longer for the device to flush */
	uint64_t nudge_ns;    /* the thread's: when to nudge next, and how often it did */
	unsigned nudges;
};

/* ---- verbs.c ---- */
void verbs_kick(struct verbs *);
void verbs_fd_raise(int fd);
void verbs_fd_clear(int fd);
int verbs_fd_nonblock(int fd);

/* ---- verbs_device.c; verbs.lock is held ---- */
int verbs_device_get(struct verbs *, struct ibv_context *, struct verbs_device **out);
void verbs_device_put(struct verbs *, struct verbs_device *);
void verbs_device_events(struct verbs *, struct verbs_device *);

/* ---- verbs_eq.c ---- */
int verbs_eq_new(struct fabric *, struct fabric_eq **);
void verbs_eq_free(struct fabric_eq *);
int verbs_eq_fd(const struct fabric_eq *);
int verbs_eq_get(struct fabric_eq *, struct fabric_event *);
int verbs_listen(struct fabric_eq *, const struct sockaddr *, socklen_t, struct fabric_listener **);
int verbs_listener_addr(const struct fabric_listener *, struct sockaddr_storage *);
void verbs_listener_free(struct fabric_listener *);
/* With eq->lock held. */
void verbs_eq_push(struct verbs_eq *, struct verbs_event *, enum fabric_event_type,
	struct fabric_chan *, int error);
void verbs_eq_drop(struct verbs_eq *, struct verbs_event *);

/* ---- verbs_cm.c ---- */
int verbs_dial(struct fabric_eq *, const struct sockaddr *, const struct sockaddr *, int,
	struct fabric_chan **);
int verbs_chan_connect(struct fabric_chan *, const void *, size_t);
int verbs_chan_accept(struct fabric_chan *, const void *, size_t);
int verbs_chan_reject(struct fabric_chan *, const void *, size_t);
/* With verbs.lock held: everything that waits in the connection manager's queue. */
void verbs_cm_events(struct verbs *, struct verbs_eq *);
/* An accepted channel has received data: it is connected, though the last message of the handshake
 * has not come, and may be lost.  Not all devices report that (IBV_EVENT_COMM_EST).  With cq->lock
 * held. */
void verbs_cm_heard(struct verbs_chan *);

/* ---- verbs_chan.c ---- */
/* Takes `id` over when it returns 0; verbs.lock is held. */
int verbs_chan_new(struct verbs *, struct verbs_eq *, struct rdma_cm_id *, struct verbs_chan **out);
/* Out of every list, and gone.  No lock is held. */
void verbs_chan_destroy(struct verbs_chan *);
/* The connection is over: tells the user, and makes the device flush what is posted.  Whether this
 * call was the first. */
bool verbs_chan_end(struct verbs_chan *, int error);
/* Requests are flushed and nobody has said why.  The connection manager may be about to say that
 * the peer closed, which is no error; else it becomes one in a moment. */
void verbs_chan_suspect(struct verbs_chan *);
/* A completion failed; with cq->lock held. */
void verbs_chan_failed(struct verbs_chan *, const struct ibv_wc *);
/* With verbs.lock held: closes, gives up waiting.  In how many ms it must be looked at again; -1.
 */
int verbs_chan_tick(struct verbs_chan *, uint64_t now);
void verbs_chan_disconnect(struct fabric_chan *);
void verbs_chan_free(struct fabric_chan *);
void verbs_chan_describe(const struct fabric_chan *, char *, size_t);

/* ---- verbs_qp.c ---- */
int verbs_chan_setup(struct fabric_chan *, const struct fabric_chan_attr *);
int verbs_post_send(struct fabric_chan *, const struct fabric_wr *);
int verbs_post_recv(struct fabric_chan *, uint64_t, void *, uint32_t, struct fabric_mr *);
/* A request of no effect that the device reports, behind those that it does not report. */
int verbs_qp_mark(struct verbs_chan *);
/* Sends a message of no effect, outside the account; by any thread. */
void verbs_qp_nudge(struct verbs_chan *);
void verbs_qp_caps(struct verbs_chan *);
/* Makes the device flush what is posted. */
void verbs_qp_flush(struct verbs_chan *);

/* ---- verbs_ready.c ---- */
int verbs_cq_arm(struct fabric_cq *);
int verbs_cq_fd(const struct fabric_cq *);
void verbs_cq_ack(struct fabric_cq *);
/* With cq->lock held: makes the descriptor readable. */
void verbs_cq_raise(struct verbs_cq *);

/* ---- verbs_cq.c ---- */
int verbs_cq_new(struct fabric_pd *, uint32_t, struct fabric_cq **);
void verbs_cq_free(struct fabric_cq *);
int verbs_cq_poll(struct fabric_cq *, struct fabric_wc *, int);
/* Room for the completions of `count` requests, and of a mark, in one bank, which *out becomes. */
int verbs_cq_reserve(struct verbs_cq *, uint32_t count, struct ibv_cq **out);
void verbs_cq_release(struct verbs_cq *, struct ibv_cq *, uint32_t count);
/* Takes completions from the device without giving them to the user. */
void verbs_cq_progress(struct verbs_cq *);
/* The same if nobody polled since the last call. */
void verbs_cq_progress_if_idle(struct verbs_cq *);
/* Completes as flushed what the device has forgotten. */
void verbs_cq_flush(struct verbs_cq *, struct verbs_chan *);
/* Destroys the channel's queue pair, and drops its completions.  No lock is held. */
void verbs_cq_forget(struct verbs_cq *, struct verbs_chan *);

/* ---- verbs_memory.c ---- */
int verbs_pd_new(struct fabric_chan *, struct fabric_pd **);
void verbs_pd_free(struct fabric_pd *);
int verbs_mr_new(struct fabric_pd *, void *, size_t, unsigned, struct fabric_mr **);
void verbs_mr_free(struct fabric_mr *);
bool verbs_mr_covers(
	const struct verbs_mr *, const struct verbs_pd *, const void *, uint32_t bytes);
/* The local key with which a READ may fill the memory. */
int verbs_mr_sink_key(struct verbs_mr *, uint32_t *out);

/* ---- verbs_name.c ---- */
enum fabric_status verbs_name_status(enum ibv_wc_status, bool receive);
int verbs_name_error(enum ibv_wc_status); /* of a channel that broke so: -errno */
const char *verbs_name_transport(const struct ibv_context *, const struct ibv_port_attr *);
unsigned verbs_name_mtu(enum ibv_mtu); /* bytes */

#endif
