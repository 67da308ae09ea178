/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/loop/loop_impl.h: the objects of the loop fabric and what its files ask of each other.
 *
 *   loop.c          the fabric itself, protection domains, memory, completion queues
 *   loop_listen.c   addresses, listeners
 *   loop_conn.c     connection events, the life of a channel
 *   loop_wire.c     posting, the wire thread that takes requests in turn, faults
 *   loop_execute.c  what a request does
 *
 * One mutex guards everything.  The wire drops it while it copies; what it copies from and to is
 * pinned meanwhile (channel, memory), and whoever frees a pinned object waits on `unpinned`.
 */
#ifndef FABRIC_LOOP_IMPL_H
#define FABRIC_LOOP_IMPL_H

#include "base/worker.h"
#include "fabric/fabric_impl.h"
#include "fabric/loop/loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#define LOOP_INLINE_MAX 256u
#define LOOP_MR_BUCKETS 64u

struct loop_chan;

/* An event that waits.  Each channel has room for one of each kind, so that none is ever lost. */
struct loop_event {
	TAILQ_ENTRY(loop_event) link;
	bool queued;
	struct fabric_event ev;
};

struct loop_eq {
	struct fabric_eq base;
	int fd; /* eventfd, readable while `events` is not empty */
	TAILQ_HEAD(, loop_event) events;
};

struct loop_listener {
	struct fabric_listener base;
	LIST_ENTRY(loop_listener) link;
	struct loop_eq *eq;
	struct sockaddr_storage addr;
};

struct loop_pd {
	struct fabric_pd base;
	uint64_t id; /* never used twice: a stale one matches nothing */
};

struct loop_mr {
	struct fabric_mr base;
	LIST_ENTRY(loop_mr) link;
	uint64_t pd;
	uint8_t *addr;
	size_t bytes;
	unsigned access;
	unsigned pins;         /* copies under way */
	struct loop_cq *watch; /* who is told of small WRITEs; or NULL */
};

/* A completion, and the places in the channel's queues that polling it gives back. */
struct loop_completion {
	struct fabric_wc wc;
	uint32_t send_slots, recv_slots;
};

struct loop_cq {
	struct fabric_cq base;
	int fd;
	bool armed, readable;
	uint32_t depth, reserved; /* room, and how much of it channels were promised */
	uint32_t head;
	atomic_uint
		count; /* written under the lock; read without it to poll an empty queue cheaply */
	struct loop_completion *ring;
};

struct loop_sge {
	uint8_t *addr;
	uint32_t bytes;
	uint32_t key; /* not the mr: it may be freed before its turn, which must be an error only */
};

struct loop_request {
	uint64_t id, due_ns;
	enum fabric_opcode opcode;
	unsigned flags, sge_count;
	struct loop_sge sge[FABRIC_SGE_MAX];
	uint64_t remote_addr;
	uint32_t remote_key, imm;
	uint64_t ordinal;    /* of this channel's requests, from 0 */
	bool decided;        /* the reorder choice was made ... */
	uint64_t hold_count; /* ... wait until so many requests were executed, */
	uint64_t hold_ns;    /* or until then */
};

struct loop_recv {
	uint64_t id;
	struct loop_sge sge;
};

enum loop_state {
	LOOP_NEW,        /* dialled, not connecting yet */
	LOOP_CONNECTING, /* dialler: the peer has the REQUEST */
	LOOP_REQUESTED,  /* acceptor: neither accepted nor rejected */
	LOOP_CONNECTED,
	LOOP_CLOSING, /* disconnect was called; what is posted still goes out */
	LOOP_ENDED,   /* broken, closed, refused */
};

struct loop_chan {
	struct fabric_chan base;
	LIST_ENTRY(loop_chan) link;
	TAILQ_ENTRY(loop_chan) run_link;
	bool runnable; /* in the wire's run queue */
	bool stalled;  /* a fault: it never will be again */
	enum loop_state state;
	uint32_t number; /* of the dial; both sides have the same */
	bool acceptor;
	struct loop_chan *peer;
	struct loop_eq *eq;
	struct loop_listener *listener; /* REQUESTED and not told yet: freed with the listener */
	struct sockaddr_storage self;
	struct loop_event request, outcome, disconnected;

	bool is_setup;
	uint64_t pd;
	struct loop_cq *cq;
	/* rings; `used` counts what is queued and what is complete but not polled yet, as verbs
	 * does */
	struct loop_request *sends;
	uint32_t send_depth, send_head, send_count, send_used;
	uint32_t send_silent; /* unsignalled ones done since the last completion */
	uint64_t send_ordinal;
	uint8_t *inline_bytes; /* inline_max for each place of `sends` */
	struct loop_recv *recvs;
	uint32_t recv_depth, recv_head, recv_count, recv_used;

	unsigned pins; /* the wire copies for this channel just now */
	bool ending;   /* flush and tell when the pins are gone */
	int end_error;
};

struct loop {
	struct fabric base;
	struct loop_faults faults;
	pthread_mutex_t lock;
	pthread_cond_t work;     /* for the wire: something is runnable, or stop */
	pthread_cond_t unpinned; /* for chan_free and mr_free */
	struct worker wire;
	bool stop, wire_waits;
	bool carries; /* at_once: a thread does, also for others */
	uint64_t executed, writes;
	uint64_t flip_after; /* the n-th request from now on; 0: none */
	uint32_t flip_bit;
	bool flipped; /* one has changed */
	TAILQ_HEAD(, loop_chan) run;
	LIST_HEAD(, loop_chan) chans;
	LIST_HEAD(, loop_listener) listeners;
	LIST_HEAD(, loop_mr) mrs[LOOP_MR_BUCKETS];
	uint32_t next_chan, next_key;
	uint64_t next_pd;
	uint16_t next_port;
};

#define LOOP_OF(object) ((struct loop *)(object)->base.fabric)

/* ---- loop.c; the lock is held ---- */
struct loop_mr *loop_mr_find(struct loop *, uint32_t key);
/* With the lock held: makes an armed queue's fd readable, whether anything has completed or not. */
void loop_cq_nudge(struct loop_cq *);
void loop_cq_push(struct loop_cq *, const struct loop_completion *);
void loop_cq_forget(struct loop_cq *, const struct loop_chan *);
void loop_fd_raise(int fd);
void loop_fd_clear(int fd);

/* ---- loop_listen.c ---- */
int loop_listen(struct fabric_eq *, const struct sockaddr *, socklen_t, struct fabric_listener **);
int loop_listener_addr(const struct fabric_listener *, struct sockaddr_storage *);
void loop_listener_free(struct fabric_listener *);
/* With the lock held: the listener that a connection to `dst` reaches, or NULL. */
struct loop_listener *loop_listener_find(struct loop *, const struct sockaddr_storage *dst);
void loop_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);
/* With the lock held: the next port that may be free. */
void loop_addr_next_port(struct loop *, struct sockaddr_storage *);

/* ---- loop_conn.c ---- */
int loop_eq_new(struct fabric *, struct fabric_eq **);
void loop_eq_free(struct fabric_eq *);
int loop_eq_fd(const struct fabric_eq *);
int loop_eq_get(struct fabric_eq *, struct fabric_event *);
int loop_dial(struct fabric_eq *, const struct sockaddr *, const struct sockaddr *, int,
	struct fabric_chan **);
int loop_chan_setup(struct fabric_chan *, const struct fabric_chan_attr *);
int loop_chan_connect(struct fabric_chan *, const void *, size_t);
int loop_chan_accept(struct fabric_chan *, const void *, size_t);
int loop_chan_reject(struct fabric_chan *, const void *, size_t);
void loop_chan_disconnect(struct fabric_chan *);
void loop_chan_free(struct fabric_chan *);
void loop_chan_describe(const struct fabric_chan *, char *, size_t);
/* With the lock held: waits for the wire, forgets all that waits, and gives the memory back. */
void loop_chan_destroy(struct loop_chan *);
/* With the lock held: ends a connected channel, flushes it once it is not pinned, and tells. */
void loop_chan_end(struct loop_chan *, int error);
void loop_chan_end_both(struct loop_chan *, int error, int peer_error);
void loop_chan_unpin(struct loop_chan *);
/* With the lock held: closes the pair once every side that asked for it has nothing left to send.
 */
void loop_chan_close_if_drained(struct loop_chan *);

/* ---- loop_wire.c ---- */
int loop_post_send(struct fabric_chan *, const struct fabric_wr *);
int loop_post_recv(struct fabric_chan *, uint64_t, void *, uint32_t, struct fabric_mr *);
void loop_wire_run(void *loop);          /* unless it is at_once */
void loop_wire_idle(struct loop_chan *); /* with the lock held: out of the run queue */

/* ---- loop_execute.c; the lock is held, and dropped while it copies ---- */
void loop_execute(struct loop_chan *);       /* the channel's first request */
void loop_execute_flush(struct loop_chan *); /* completes everything that is posted as flushed */

#endif
