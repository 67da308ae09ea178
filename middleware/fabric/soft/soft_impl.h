/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_impl.h: the objects of the soft fabric.  Included by soft*.c only.
 *
 * Who touches what.  A progress thread owns the sockets of its channels and everything under
 * "progress thread" below; the user's threads reach it by kicks (soft_chan_kick, asynchronous) and
 * calls (soft_thread_call, which wait).  What both touch is under a lock: the channel's for its
 * rings and flags, the pd's for memory, the cq's and the eq's for their queues.  Lock order:
 * listener > eq; chan > thread; pd, cq: innermost.
 *
 *   soft.c         open, close, the table        soft_chan.c   channels: user's side, turns, free
 *   soft_memory.c  pd, mr, access checks         soft_end.c    completions, breaking, Terminate
 *   soft_queue.c   eq and cq                     soft_tx.c     requests and responses into FPDUs
 *   soft_thread.c  the progress threads          soft_rx.c     FPDUs from the socket
 *   soft_listen.c  listeners                     soft_place.c  where their payload goes
 *   soft_cm*.c     MPA set-up, both sides         soft_rtt.c    the round trip as TCP sees it
 */
#ifndef FABRIC_SOFT_IMPL_H
#define FABRIC_SOFT_IMPL_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/worker.h"
#include "fabric/bytes.h"
#include "fabric/soft/ddp.h"
#include "fabric/fabric_impl.h"
#include "fabric/soft/mpa.h"
#include "fabric/soft/soft.h"
#include "fabric/soft/soft_memory.h"
#include "fabric/soft/soft_queue.h"

#define SOFT_DEPTH_MAX 16384u
#define SOFT_INLINE_MAX 512u
#define SOFT_MESSAGE_MAX (1u << 30)
#define SOFT_READS_MAX 16u          /* reads in flight, each way */
#define SOFT_SEGMENT_MAX 65472u     /* payload of an FPDU: under 64 KiB, a multiple of 64 */
#define SOFT_STAGE_BYTES 256u       /* what is received but not for memory: headers, small things */
#define SOFT_BOUNCE_BYTES 16384u    /* a read response whose CRC must match what is sent */
#define SOFT_LINGER_MS 2000u        /* for the peer to take our last words */
#define SOFT_USER_TIMEOUT_MS 30000u /* a peer that acknowledges nothing so long is dead */
#define SOFT_TURN_BYTES (1u << 20)  /* moved for one channel before the next has its turn */
#define SOFT_CRC_TURN_BYTES (1u << 18)
#define SOFT_BATCH_IOV 256
#define SOFT_BATCH_FPDUS 96

struct soft;
struct soft_thread;

/* ---- threads (soft_thread.c) ---- */

/* What an epoll event points to. */
struct soft_source {
	void (*ready)(struct soft_source *, uint32_t events);
};

struct soft_call {
	STAILQ_ENTRY(soft_call) link;
	void (*run)(struct soft_thread *, void *arg);
	void *arg;
	bool done;
};

struct soft_fpdu {
	uint8_t head[MPA_LENGTH_BYTES + DDP_UNTAGGED_BYTES + DDP_READ_BYTES];
	uint8_t tail[MPA_TRAILER_MAX];
	uint8_t head_bytes, tail_bytes;
	uint8_t kind; /* of its message, as in a cursor */
	uint32_t payload_bytes;
};

/* Where the sending of a channel stands: at a boundary of FPDUs. */
struct soft_cursor {
	enum {
		SOFT_TX_NONE,
		SOFT_TX_REQUEST,
		SOFT_TX_RESPONSE,
		SOFT_TX_NUDGE
	} kind;            /* message under way */
	uint32_t next;     /* ring index of the first request not wholly sent */
	uint32_t response; /* ring index of the first response not wholly sent */
	uint32_t offset;   /* payload bytes of the message that are in FPDUs before this */
	uint32_t send_msn, read_msn; /* of the next message */
	uint32_t reads;              /* that we sent, since ever */
	uint32_t nudges;
};

TAILQ_HEAD(soft_chan_list, soft_chan);

struct soft_thread {
	struct soft *soft;
	struct worker worker;
	int epoll_fd, wake_fd;
	struct soft_source wake;

	pthread_mutex_t lock;
	pthread_cond_t called; /* some call is done */
	STAILQ_HEAD(, soft_call) calls;
	struct soft_chan_list kicked;
	bool asleep; /* must be woken through wake_fd */
	bool stop;

	/* progress thread */
	struct soft_chan_list run;        /* have something to do */
	struct soft_chan_list half_open;  /* accepted, no MPA request yet; oldest first */
	struct soft_chan_list connecting; /* oldest first */
	struct soft_chan_list linger;     /* closing down, oldest first */
	struct soft_chan_list unheard; /* connected, have sent, and nothing came yet; in no order */
	struct soft_chan_list doomed;  /* freed at the end of the round */
	struct soft_chan_list others;  /* every channel is on exactly one of these six */
	unsigned half_open_count;
	LIST_HEAD(, soft_listener) paused; /* out of descriptors */
	uint64_t resume_ns;
	struct iovec iov[SOFT_BATCH_IOV + 2];
	struct soft_fpdu fpdus[SOFT_BATCH_FPDUS];
	struct soft_cursor after[SOFT_BATCH_FPDUS];
};

int soft_thread_start(struct soft_thread *, struct soft *);
/* Ends the thread; when all have ended: frees what was left to it. */
void soft_thread_stop(struct soft_thread *);
void soft_thread_fini(struct soft_thread *);
/* Runs run(thread, arg) on the thread and waits for it. */
void soft_thread_call(
	struct soft_thread *, void (*run)(struct soft_thread *, void *arg), void *arg);
/* Gives the channel a turn soon.  Progress thread. */
void soft_thread_run_soon(struct soft_thread *, struct soft_chan *);
int soft_thread_watch(struct soft_thread *, int fd, uint32_t events, struct soft_source *);

/* ---- channels (soft_chan.c) ---- */

struct soft_sge {
	uint8_t *addr;
	uint32_t bytes;
	uint32_t key;
};

struct soft_send {
	uint64_t id;
	uint64_t remote_addr;
	uint32_t remote_key;
	uint32_t bytes; /* of all pieces */
	uint8_t opcode; /* enum fabric_opcode */
	uint8_t sge_count;
	bool signalled;
	bool done; /* a read: its response is here */
	struct soft_sge sge[FABRIC_SGE_MAX];
};

struct soft_recv {
	uint64_t id;
	uint8_t *addr;
	uint32_t bytes;
	uint32_t key;
};

/* A read that the peer asked for. */
struct soft_response {
	uint64_t sink_offset;
	uint64_t source;
	uint32_t sink_stag;
	uint32_t source_key;
	uint32_t bytes;
};

enum soft_command {
	SOFT_COMMAND_ADOPT = 1,
	SOFT_COMMAND_CONNECT = 2,
	SOFT_COMMAND_ACCEPT = 4,
	SOFT_COMMAND_DISCONNECT = 8,
};

enum soft_phase {
	SOFT_PHASE_NEW, /* nothing on the wire yet */
	SOFT_PHASE_TCP, /* waits for the TCP connection */
	SOFT_PHASE_READ_REPLY,
	SOFT_PHASE_READ_REQUEST,
	SOFT_PHASE_HELD,   /* the user decides about the request */
	SOFT_PHASE_STREAM, /* FPDUs */
	SOFT_PHASE_LINGER, /* last words, then until the peer closes */
	SOFT_PHASE_DEAD,   /* no socket any more */
};

/* Latency over batching, and a dead peer is noticed.  None of it is fatal if it fails. */
void soft_socket_tune(int fd);
/* The least round trip that TCP has seen (soft_rtt.c); 0: not known. */
uint64_t soft_rtt_ns(int fd);

static inline socklen_t soft_addr_bytes(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

union soft_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct soft_tx {
	struct soft_cursor at;
	uint32_t head;  /* oldest request not completed */
	uint32_t limit; /* the ring's tail as last seen */
	uint32_t part;  /* bytes of the FPDU at `at` that the socket has taken; its frame: */
	struct soft_fpdu partial;
	uint32_t reads_done; /* of at.reads */
	uint32_t nudges;     /* to be sent, since ever */
	uint32_t response_tail;
	struct soft_response *responses; /* ring of SOFT_READS_MAX, made when first needed */
	uint8_t *bounce;                 /* SOFT_BOUNCE_BYTES, made when first needed */
	bool ready;                      /* the socket may take more */
	bool allowed; /* by MPA: we connected, or the peer's first FPDU was here */
	bool closing, shut;
	int error; /* the socket's; the receive side ends the channel */
};

struct soft_rx {
	uint8_t stage[SOFT_STAGE_BYTES]; /* received, not yet consumed: [pos, end) */
	uint16_t pos, end;
	uint16_t need;  /* bytes of stage without which nothing goes on */
	uint16_t ulpdu; /* bytes, of the FPDU under way */
	enum { SOFT_RX_HEADER, SOFT_RX_PAYLOAD, SOFT_RX_TRAILER } step;
	struct ddp_header header;
	struct ddp_read read;        /* of a Read Request */
	struct ddp_error terminated; /* of a Terminate */
	uint32_t left;               /* payload bytes of the segment still to come */
	uint64_t offset;             /* tagged: where the next of them goes */
	uint32_t crc;
	bool mid_tagged; /* the last tagged segment was not the last of its message */
	bool mid_send;
	uint32_t send_got;           /* payload bytes of the SEND under way */
	uint32_t send_msn, read_msn; /* expected next */
	uint32_t response_got;       /* bytes of the oldest outstanding read */
	uint32_t recv_head, recv_limit;
	bool heard;  /* something came, or we are not who must begin */
	bool ready;  /* there may be more to receive */
	bool hangup; /* ... until the end: no further edge comes */
};

struct soft_chan {
	struct fabric_chan base;
	struct soft_source source;
	struct soft *soft;
	struct soft_thread *thread;
	struct soft_eq *eq;             /* NULL while half-open */
	struct soft_listener *listener; /* while half-open */
	struct soft_pd *pd;
	struct soft_cq *cq;
	TAILQ_ENTRY(soft_chan) kick_link; /* thread->lock */
	TAILQ_ENTRY(soft_chan) run_link;
	TAILQ_ENTRY(soft_chan) list_link;
	struct soft_chan_list *list; /* that list_link is on */
	struct soft_event events[2]; /* eq->lock; [1]: DISCONNECTED */
	atomic_bool kicked;

	/* Both sides. */
	pthread_mutex_t lock;
	unsigned commands; /* enum soft_command */
	bool started, open, broken;
	bool closing; /* the user called disconnect */
	union soft_addr local;
	bool crc;
	uint32_t send_depth, send_mask, send_tail;
	uint32_t recv_depth, recv_mask, recv_tail;
	atomic_uint send_used, recv_used; /* until the user has seen the completion */
	struct soft_send *sends;
	struct soft_recv *recvs;
	uint8_t *inlined;                 /* caps.inline_max bytes for each of sends */
	uint8_t priv[FABRIC_PRIVATE_MAX]; /* to be sent; or received, for the event */
	uint8_t priv_len;

	/* progress thread */
	int fd;
	bool reached;    /* TCP's connect was called */
	int reach_error; /* by that; -errno */
	enum soft_phase phase;
	bool orphan;  /* no user any more: the thread frees it */
	bool running; /* on thread->run */
	uint8_t revision;
	bool enhanced, peer_to_peer, rtr_write, rtr_read;
	uint16_t ird, ord;    /* reads that the peer may ask at once, and we */
	uint64_t deadline_ns; /* of its phase; in PHASE_STREAM: when to nudge */
	uint8_t *last_words;  /* of PHASE_LINGER */
	uint32_t last_bytes, last_sent;
	struct soft_tx tx;
	struct soft_rx rx;
};

/* A channel that owns nothing yet, on the thread whose turn it is. */
int soft_chan_new(struct soft *, struct soft_chan **out);
int soft_chan_setup(struct fabric_chan *, const struct fabric_chan_attr *);
int soft_chan_connect(struct fabric_chan *, const void *, size_t);
int soft_chan_accept(struct fabric_chan *, const void *, size_t);
int soft_chan_reject(struct fabric_chan *, const void *, size_t);
void soft_chan_disconnect(struct fabric_chan *);
void soft_chan_free(struct fabric_chan *);
void soft_chan_describe(const struct fabric_chan *, char *, size_t);
int soft_chan_post_send(struct fabric_chan *, const struct fabric_wr *);
int soft_chan_post_recv(struct fabric_chan *, uint64_t, void *, uint32_t, struct fabric_mr *);

void soft_chan_kick(struct soft_chan *);
/* The rest is for progress threads. */
void soft_chan_ready(struct soft_source *, uint32_t events);
/* Takes the user's commands. */
void soft_chan_kicked(struct soft_chan *);
/* One bounded turn.  True: wants another. */
bool soft_chan_turn(struct soft_chan *);
void soft_chan_move(struct soft_chan *, struct soft_chan_list *);
/*
 * Ends the channel: everything posted flushes (the oldest send with `first`), the event is pushed,
 * the socket closed.
 */
void soft_chan_break(struct soft_chan *, int error, enum fabric_status first);
/* The same because the peer broke the rules: tells it why by a Terminate. */
void soft_chan_terminate(struct soft_chan *, struct ddp_error, enum fabric_status first);
/*
 * Says last_words, then reads and forgets until the peer has closed: closing with unread input
 * would reset the connection, and a reset may overtake the words.  Then ends: closed, or freed.
 */
void soft_chan_linger(struct soft_chan *);
bool soft_chan_linger_turn(struct soft_chan *);
void soft_chan_linger_end(struct soft_chan *);
void soft_chan_close_socket(struct soft_chan *);
/* Closes the socket and frees the object at the end of the round. */
void soft_chan_dispose(struct soft_chan *);
void soft_chan_free_now(struct soft_chan *);
/* Completes the oldest requests that are done. */
void soft_chan_retire(struct soft_chan *);
void soft_chan_complete_recv(struct soft_chan *, enum fabric_status, uint32_t bytes);

/* ---- connections (soft_listen.c, soft_cm*.c) ---- */

struct soft_listener {
	struct fabric_listener base;
	struct soft_source source;
	struct soft *soft;
	struct soft_thread *thread;
	struct soft_eq *eq;
	atomic_uint refs;     /* the user's, one of each half-open channel */
	pthread_mutex_t lock; /* closed; held while an event is pushed */
	bool closed;
	int fd;
	bool is_paused;  /* progress thread */
	bool has_warned; /* since it accepted last */
	LIST_ENTRY(soft_listener) paused_link;
};

int soft_listen(
	struct fabric_eq *, const struct sockaddr *, socklen_t, struct fabric_listener **out);
int soft_listener_addr(const struct fabric_listener *, struct sockaddr_storage *);
void soft_listener_free(struct fabric_listener *);
void soft_listener_put(struct soft_listener *);
/* Lets listeners that were out of descriptors try again, when it is time. */
void soft_listeners_resume(struct soft_thread *, uint64_t now_ns);
int soft_dial(struct fabric_eq *, const struct sockaddr *, const struct sockaddr *, int,
	struct fabric_chan **out);
void soft_chan_reach(struct fabric_chan *);
void soft_cm_commands(struct soft_chan *, unsigned commands);
/* Goes on with the set-up of a channel that is not yet in PHASE_STREAM. */
void soft_cm_turn(struct soft_chan *);
/* Refuses the request and lets go of the channel. */
void soft_cm_reject(struct soft_chan *, const void *priv, size_t priv_len);
/* Drops who was accepted first and has not said anything useful; there is one. */
void soft_cm_drop_half_open(struct soft_thread *, const char *why);
/*
 * Drops who has waited too long, resumes listeners.  Milliseconds until the next deadline, -1:
 * none.
 */
int soft_cm_timers(struct soft_thread *);

/* ---- data (soft_tx.c, soft_rx.c, soft_place.c) ---- */

/* Sends what there is, within a turn.  True: there is more and the socket takes it. */
bool soft_tx_turn(struct soft_chan *);
/*
 * Copies the rest of an FPDU that the socket has in part, before its memory goes back.  `out` has
 * room for a largest FPDU.  False: the memory is not there any more.
 */
bool soft_tx_rest(struct soft_chan *, uint8_t *out, uint32_t *bytes);
/*
 * The timer of a channel on thread->unheard.  The accepting side may be the kernel's siw, which
 * takes its socket over only after its reply has left: what came before lies unseen until something
 * comes behind it.  So, while nothing comes back, something does, a few times: a WRITE of no bytes,
 * which says nothing.
 */
void soft_tx_nudge(struct soft_chan *);
/* Receives and places, within a turn.  True: there may be more. */
bool soft_rx_turn(struct soft_chan *);
/* Judges the segment whose header is in rx.  False: it broke the rules, and the channel. */
bool soft_place_begin(struct soft_chan *);
/* Where the rest of its payload goes.  Under the pd's lock.  Iovecs, or 0: the memory is gone. */
unsigned soft_place_iov(struct soft_chan *, struct iovec *);
/* Ends the channel because of that. */
void soft_place_refused(struct soft_chan *);
/* The oldest read that we asked for and that is not answered; NULL: none. */
struct soft_send *soft_read_oldest(struct soft_chan *);

/* ---- FPDUs (soft_fpdu.c), under the pd's lock ---- */

/*
 * Builds the FPDU at the cursor, where there is a message to be sent, and moves the cursor behind
 * it.  `keep`: the frame is there already.  Returns how many iovecs its payload has, or -EACCES.
 */
int soft_fpdu_build(
	struct soft_chan *, struct soft_cursor *, struct soft_fpdu *, bool keep, struct iovec *);
/*
 * Whether a read response is copied before it is sent: its owner may write to it meanwhile, and a
 * CRC must fit what is sent.  Small ones always are, with acquire loads: the owner may change
 * single bytes, or aligned words of eight, with release stores.  There is room for one at a time.
 */
bool soft_fpdu_bounces(const struct soft_chan *, const struct soft_response *);
/* Bytes on the wire. */
size_t soft_fpdu_bytes(const struct soft_fpdu *);

/* Whether the pieces of a request are still registered.  Under the pd's lock. */
bool soft_sges_ok(const struct soft_chan *, const struct soft_send *);
/*
 * How a Read Request names its sink: one name for all pieces.  The response is matched to the
 * request, and placed by it, not by this name.
 */
static inline uint32_t soft_read_stag(const struct soft_send *send)
{
	return send->sge_count ? send->sge[0].key : 0;
}
static inline uint64_t soft_read_offset(const struct soft_send *send)
{
	return send->sge_count ? (uintptr_t)send->sge[0].addr : 0;
}

/* The piece list of a request from byte `skip` on, for `bytes`.  How many iovecs. */
unsigned soft_sge_iov(
	const struct soft_sge *, unsigned count, uint32_t skip, uint32_t bytes, struct iovec *out);

/* ---- the fabric (soft.c) ---- */

struct soft {
	struct fabric base;
	struct soft_config config; /* all defaults filled in */
	unsigned thread_count;
	unsigned half_open_max; /* of each thread */
	atomic_uint turn;
	struct soft_thread threads[];
};

static inline struct soft_chan *soft_chan_of(const struct fabric_chan *chan)
{
	return (struct soft_chan *)(uintptr_t)chan;
}

#endif
