/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/fabric.h: the transport seam, shaped like RDMA verbs and cut at post and poll.
 *
 * Three fabrics stand behind it: `verbs` (rdma-core), `soft` (user-space iWARP over TCP) and `loop`
 * (in-process, for tests).  This header is the whole of what the rest of the middleware may know of
 * them.
 *
 * Objects and who frees what (free in the reverse order, but each chan before its mr, cq and pd):
 *   fabric    a transport with its progress threads or devices        fabric_close
 *   eq        a queue of connection events                            fabric_eq_free
 *   listener  accepts; its requests arrive on its eq                  fabric_listener_free
 *   chan      one connected queue pair                                fabric_chan_free
 *   pd        protection domain: keys in it work on its channels only fabric_pd_free
 *   mr        registered memory                                       fabric_mr_free
 *   cq        completion queue of one or more channels                fabric_cq_free
 *
 * The contract that tests/fabric states and runs on every fabric:
 * - a posted buffer belongs to the fabric until its completion; every posted request that would
 *   complete, completes or flushes, also when the peer dies;
 * - requests of one channel are carried out, and complete, in order; nothing is promised between
 *   channels;
 * - a remote access is checked against key, bounds, rights and protection domain; a bad one breaks
 *   the channel (both sides see it), and touches no memory;
 * - a SEND that finds no posted receive breaks the channel (RNR);
 * - a local completion means that the buffer is ours again, not that the peer has the data;
 * - when the sink has a receive completion for a SEND (or for a WRITE_IMM), the data of every
 *   WRITE posted before it on that channel is in its memory.
 *
 * Threads: an eq, a cq and a channel are each used by one thread at a time (different ones by
 * different threads at once is fine; hand a channel over with ordinary synchronisation).  But of
 * one channel one thread may post sends while another posts receives.  Errors are -errno.  Nothing
 * blocks unless its comment says so.
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define FABRIC_PRIVATE_MAX 56 /* bytes of private data; the limit of rdma_cm on InfiniBand */
#define FABRIC_SGE_MAX 4      /* pieces of memory in one request */

struct fabric;
struct fabric_eq;
struct fabric_listener;
struct fabric_chan;
struct fabric_pd;
struct fabric_mr;
struct fabric_cq;

/* ---- fabric ---- */

struct fabric_caps {
	uint32_t inline_max;        /* bytes that FABRIC_INLINE takes; 0 = none */
	uint32_t max_depth;         /* largest send_depth and recv_depth of a channel */
	uint32_t max_message_bytes; /* largest SEND or WRITE in one request */
	uint32_t max_channels;      /* that one peer should open; a hint */
	bool has_imm;               /* WRITE_IMM works */
	bool has_read;              /* READ works */
	uint16_t max_reads; /* that may be under way on a channel; what is posted behind one more
			       waits for the first of them */
	bool read_rights;   /* READ asks for FABRIC_REMOTE_READ (on the kernel's siw, any memory
			       of the protection domain can be read by who has its key) */
	bool read_in_order; /* a peer's READ here is carried out before a SEND behind it arrives (on
			       the kernel's siw a SEND may overtake it) */
	bool write_ordered; /* two WRITEs of one channel become visible in order */
	uint32_t spin_ns;   /* so long looking for a completion costs less than to wait for it;
			       0: who makes completions needs the CPU more */
	bool write_delivered; /* a WRITE's completion says that the peer has the data (InfiniBand's
				 acknowledgement; not iWARP) */
	bool is_device; /* requests are a device's to carry out.  A post may take as long as they
			   do: rxe always, and siw when it is idle, send from within it */
};

const char *fabric_name(const struct fabric *); /* "verbs", "soft", "loop" */
void fabric_close(struct fabric *);

/* ---- connection events ---- */

enum fabric_event_type {
	FABRIC_EVENT_REQUEST,      /* chan is new and ours; setup + accept, or reject, it */
	FABRIC_EVENT_CONNECTED,    /* chan works; priv: what accept gave (connecting side only) */
	FABRIC_EVENT_REJECTED,     /* the peer's reject; priv: its private data */
	FABRIC_EVENT_FAILED,       /* could not connect, error says why (-ECONNREFUSED, ...) */
	FABRIC_EVENT_DISCONNECTED, /* after CONNECTED, once: peer closed (error 0), or broke
				      (-errno) */
};

struct fabric_event {
	enum fabric_event_type type;
	struct fabric_chan *chan;
	void *owner; /* the channel's, as it was set; also when another thread frees the channel now
		      */
	struct fabric_listener *listener; /* of a REQUEST */
	int error;                        /* 0 or -errno */
	uint8_t priv[FABRIC_PRIVATE_MAX];
	size_t priv_len; /* iWARP and InfiniBand may pad with zeros: parse, do not compare lengths
			  */
};

int fabric_eq_new(struct fabric *, struct fabric_eq **out);
void fabric_eq_free(struct fabric_eq *);
int fabric_eq_fd(const struct fabric_eq *); /* readable while an event waits; poll only */
/* 1: *ev is filled; 0: none; -errno: the queue is broken. */
int fabric_eq_get(struct fabric_eq *, struct fabric_event *ev);
/* Like get, but blocks up to timeout_ms (-1: for ever).  0 = timed out. */
int fabric_eq_wait(struct fabric_eq *, struct fabric_event *ev, int timeout_ms);

/* ---- listen, connect, accept ---- */

/*
 * Listens on `sa` (port 0: a free one).  A peer that does not finish its set-up within the fabric's
 * deadline is dropped without an event.  -EADDRINUSE, -EADDRNOTAVAIL, -ENODEV (no device there).
 */
int fabric_listen(
	struct fabric_eq *, const struct sockaddr *sa, socklen_t len, struct fabric_listener **out);
/* The address listened on, with the real port.  -ENODEV: its device has gone; nobody can connect.
 */
int fabric_listener_addr(const struct fabric_listener *, struct sockaddr_storage *out);
void fabric_listener_free(struct fabric_listener *);

/*
 * A channel towards `dst`, from `src` when not NULL.  Resolves address and route: may block for
 * timeout_ms.  -ENODEV: no device of this fabric reaches dst; -ETIMEDOUT; -EHOSTUNREACH.
 */
int fabric_dial(struct fabric_eq *, const struct sockaddr *dst, const struct sockaddr *src,
	int timeout_ms, struct fabric_chan **out);

/*
 * What the network takes before a connection is asked for may pass from now on: TCP's handshake
 * with soft, nothing with the others.  Once, before connect, which tells what goes wrong.  Only for
 * a peer that bears to be connected to and then asked for nothing for a while, or ever.
 */
void fabric_chan_reach(struct fabric_chan *);

struct fabric_chan_attr {
	struct fabric_pd *pd;
	struct fabric_cq *cq;  /* send and receive completions; it must have room for both depths */
	uint32_t send_depth;   /* requests outstanding, signalled or not */
	uint32_t recv_depth;   /* receives posted */
	uint32_t inline_bytes; /* wanted; ask fabric_chan_caps for what it became */
	void *context;         /* fabric_chan_context */
};

/* Makes the queue pair of a channel that came from dial or a REQUEST.  Receives may be posted. */
int fabric_chan_setup(struct fabric_chan *, const struct fabric_chan_attr *);
/* Ends in CONNECTED, REJECTED or FAILED.  priv_len at most FABRIC_PRIVATE_MAX, else -EINVAL. */
int fabric_chan_connect(struct fabric_chan *, const void *priv, size_t priv_len);
/*
 * Ends in CONNECTED (when it may post, as it may once a receive has completed; the connecting side
 * sends first) or FAILED.  With a peer that went meanwhile that takes as long as the transport asks
 * for it: a minute with RDMA's connection manager.  Who will not wait frees the channel.
 */
int fabric_chan_accept(struct fabric_chan *, const void *priv, size_t priv_len);
/* Refuses and frees the channel. */
int fabric_chan_reject(struct fabric_chan *, const void *priv, size_t priv_len);

/*
 * Starts an orderly close after what is posted (soft: the socket's write side is shut down when the
 * send queue is empty).  Outstanding requests complete or flush; DISCONNECTED follows.
 */
void fabric_chan_disconnect(struct fabric_chan *);
/*
 * Breaks the connection if there is one, waits until the fabric touches no posted buffer any more,
 * and removes the channel's waiting completions and events.  Blocks for a moment only.
 */
void fabric_chan_free(struct fabric_chan *);

void *fabric_chan_context(const struct fabric_chan *);
/* Whose it is, for its events; NULL until then.  By the thread that takes the events. */
void fabric_chan_set_owner(struct fabric_chan *, void *owner);
/* Capabilities of this channel.  inline_max is final after setup; what is said of READ once it is
 * connected, and for who accepts from its REQUEST on. */
const struct fabric_caps *fabric_chan_caps(const struct fabric_chan *);
/* The name of its fabric. */
const char *fabric_chan_name(const struct fabric_chan *);
/* The peer's address. */
const struct sockaddr *fabric_chan_peer(const struct fabric_chan *);
/*
 * Once connected, what the transport saw of the round trip while it connected, which no program had
 * a part in; 0: it does not say.  It is the way to whom the transport is connected: to a relay,
 * where one carries the bytes on.  And this end's port, 0: not known, by which two ends can tell
 * that none does.
 */
uint64_t fabric_chan_rtt_ns(const struct fabric_chan *);
uint16_t fabric_chan_local_port(const struct fabric_chan *);
/* "device, port, GID, MTU" or "tcp 127.0.0.1:40000 > 127.0.0.1:7387, crc off": for people. */
void fabric_chan_describe(const struct fabric_chan *, char *out, size_t size);

/* ---- memory ---- */

enum fabric_access {
	FABRIC_LOCAL = 0, /* local reads, writes, receives */
	FABRIC_REMOTE_WRITE = 1,
	FABRIC_REMOTE_READ = 2,
	/* READs of ours put data here: a peer's right to write with adapters that ask for it, which
	 * is told to no peer but by the READ itself */
	FABRIC_READ_INTO = 4,
};

/* A protection domain on the device that `chan` runs over. */
int fabric_pd_new(struct fabric_chan *chan, struct fabric_pd **out);
void fabric_pd_free(struct fabric_pd *);

/* -ENOMEM also when RLIMIT_MEMLOCK binds.  `access`: bits of enum fabric_access. */
int fabric_mr_new(
	struct fabric_pd *, void *addr, size_t bytes, unsigned access, struct fabric_mr **out);
/* After it returns no peer reaches the memory; a peer that tries loses its channel. */
void fabric_mr_free(struct fabric_mr *);
/*
 * The memory stays registered, by another key (and base): a peer that knows the old one reaches it
 * no more, as after fabric_mr_free, when this returns.  Nothing that was posted with it is under
 * way. 0; -ENOTSUP: the fabric cannot; -errno.  After an error the old key holds.
 */
int fabric_mr_rekey(struct fabric_mr *);
/*
 * From here on a peer's WRITE of at most FABRIC_WATCHED_BYTES into `mr` makes the fd of `cq`, when
 * it is armed, readable: whoever looks for bytes there need not look all the time.  Nothing is
 * completed.  The queue outlives the memory's registration.  -ENOTSUP: nobody here sees a WRITE
 * arrive (adapters do not).
 */
#define FABRIC_WATCHED_BYTES 8
int fabric_mr_watch(struct fabric_mr *, struct fabric_cq *cq);
uint32_t fabric_mr_key(const struct fabric_mr *);
uint64_t fabric_mr_base(const struct fabric_mr *); /* what a peer calls the first byte */

/* ---- completions ---- */

enum fabric_status {
	FABRIC_OK,
	FABRIC_LOCAL_LENGTH,     /* our request, or a SEND longer than our receive */
	FABRIC_LOCAL_PROTECTION, /* our memory is not registered for it */
	FABRIC_FLUSHED,          /* the channel ended first */
	FABRIC_REMOTE_ACCESS,    /* the peer refused key, bounds or rights */
	FABRIC_REMOTE_OPERATION, /* the peer could not carry it out */
	FABRIC_RETRY_EXCEEDED,   /* the peer does not answer */
	FABRIC_RNR_EXCEEDED,     /* the peer had no receive posted */
	FABRIC_FATAL,            /* device or fabric failure */
};
const char *fabric_status_name(enum fabric_status); /* "remote access error", ... */

enum fabric_opcode {
	FABRIC_SEND,
	FABRIC_WRITE,
	FABRIC_WRITE_IMM, /* caps.has_imm only */
	FABRIC_READ,      /* caps.has_read only */
	FABRIC_RECV,      /* in completions: a SEND arrived */
	FABRIC_RECV_IMM,  /* in completions: a WRITE_IMM arrived */
};

struct fabric_wc {
	uint64_t id; /* of the request */
	struct fabric_chan *chan;
	enum fabric_status status;
	enum fabric_opcode opcode; /* meaningful when status is FABRIC_OK */
	uint32_t bytes;            /* received */
	uint32_t imm;              /* of FABRIC_RECV_IMM */
};

/* On the device of `pd`.  `depth`: completions that may wait at once. */
int fabric_cq_new(struct fabric_pd *, uint32_t depth, struct fabric_cq **out);
void fabric_cq_free(struct fabric_cq *);
/* Up to `max` completions, oldest first.  How many, or -errno. */
int fabric_cq_poll(struct fabric_cq *, struct fabric_wc *wc, int max);
/*
 * Arm, poll once more, then wait on the fd.  The fd becomes readable when a completion arrives
 * after the arm; the next arm (or fabric_cq_ack) makes it unreadable again.
 */
int fabric_cq_arm(struct fabric_cq *);
int fabric_cq_fd(const struct fabric_cq *);
void fabric_cq_ack(struct fabric_cq *); /* consumes the readiness of the fd */

/* ---- requests ---- */

struct fabric_sge {
	void *addr;
	uint32_t bytes;
	struct fabric_mr *mr; /* may be NULL with FABRIC_INLINE */
};

enum fabric_flags {
	FABRIC_SIGNALED = 1, /* completion also on success (an error completes always) */
	FABRIC_INLINE = 2,   /* the bytes are copied at once: the buffer is ours again on return */
};

struct fabric_wr {
	const struct fabric_wr *next; /* a linked list is posted as one */
	uint64_t id;
	enum fabric_opcode opcode; /* SEND, WRITE, WRITE_IMM, READ */
	unsigned flags;
	const struct fabric_sge *sge; /* copied by the post; READ: where the data goes */
	unsigned sge_count;           /* 0..FABRIC_SGE_MAX */
	uint64_t remote_addr;         /* WRITE, WRITE_IMM, READ */
	uint32_t remote_key;
	uint32_t imm;
};

/*
 * Posts a list.  0; -ENOMEM (send queue full: nothing of the list was posted); -EINVAL (opcode,
 * length or sge count; nothing posted); -ENOTCONN (not connected or broken; nothing posted).
 */
int fabric_post_send(struct fabric_chan *, const struct fabric_wr *list);

/* One receive buffer.  WRITE_IMM needs none: bytes 0 and mr NULL.  Errors as for sends. */
int fabric_post_recv(
	struct fabric_chan *, uint64_t id, void *addr, uint32_t bytes, struct fabric_mr *mr);

#endif
