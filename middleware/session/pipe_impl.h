/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/pipe_impl.h: what pipe.c and pipe_ring.c share.
 */
#ifndef SESSION_PIPE_IMPL_H
#define SESSION_PIPE_IMPL_H

#include "session/pipe.h"

#define PIPE_ID_READ 0x400u /* id of the READ of replies */

struct pipe_ring;

struct pipe {
	struct fabric_chan *chan;
	struct fabric_pd *pd;
	struct fabric_cq *cq;
	struct fabric_mr *mr;
	uint8_t *memory;    /* receive slots, then send slots */
	uint64_t send_busy; /* bit per send slot */
	uint32_t credits;   /* SENDs that the peer has receives for */
	uint32_t owed;      /* receives posted again that the peer has not heard of */
	bool probing;       /* a probe is out */
	struct buffer out, in;
	struct pipe_ring *ring; /* NULL: both ways are SENDs */
	int error;              /* nothing leaves any more */
	bool over;              /* and nothing comes any more */
};

/* What a SEND says of the ring, behind its head, if it says something. */
struct pipe_word {
	bool has, asks; /* asks: see rftp-protocol(7) */
	uint32_t position;
};

/* ---- pipe_ring.c, to pipe.c; nothing of it without a ring ---- */

void pipe_ring_free(struct pipe *);
/* What the next SEND of `len` bytes says; it is then said. */
struct pipe_word pipe_ring_say(struct pipe *, size_t len);
/* What a SEND with `len` bytes has said.  0 or -EBADMSG. */
int pipe_ring_heard(struct pipe *, const struct pipe_word *, size_t len);
/* Bytes of the output that the next SEND may take: 0: none may. */
size_t pipe_ring_sendable(const struct pipe *);
/* Whether a SEND is due that has no bytes, and gives few credits back or none. */
bool pipe_ring_wants_send(const struct pipe *);
/* The writer's: what the ring takes of the output.  Whether it took something. */
bool pipe_ring_fill(struct pipe *);
/* The reader's: posts a READ, or has a SEND ask, if that is due.  0 or -errno. */
int pipe_ring_look(struct pipe *);
/* The READ has completed: its bytes are input.  0 or -errno. */
int pipe_ring_take(struct pipe *);
/* Before sleeping: does what is due; what is due later wakes whoever sleeps on pipe_fd. */
int pipe_ring_arm(struct pipe *);
/* After that: something has happened, and what is due may be due at another time. */
int pipe_ring_went_on(struct pipe *);
int pipe_ring_fd(const struct pipe *);

#endif
