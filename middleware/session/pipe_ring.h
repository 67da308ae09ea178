/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/pipe_ring: a pipe whose way to the client is a ring in the daemon's memory, which the
 * client reads by READ (session/reply_ring), at the times that session/reply_wait says.
 *
 * The daemon then posts SENDs only to a client that has asked for one, since it has read in vain
 * for longer than answers take; and one when it ends the session and the client has not said that
 * it has read all.  The client does not read while it waits for a SEND that it has asked for: so
 * the two ways cannot overtake each other.
 *
 * As with the pipe, nothing blocks, and one thread at a time.
 */
#ifndef SESSION_PIPE_RING_H
#define SESSION_PIPE_RING_H

#include "proto/message.h"
#include "session/pipe.h"

#define PIPE_RING_BYTES (128u << 10)

/* ---- the daemon's ---- */

/* Makes the ring, and says where it is.  What is sent goes on as before.  0; -EEXIST: there is one;
 * -ENOMEM; -errno of the fabric. */
int pipe_ring_serve(struct pipe *, struct message_ring_reply *);
/* What is appended to the output from here on goes there; what is in it already leaves by SEND. */
void pipe_ring_begin(struct pipe *);
/* Whether there is one.  For the thread that makes it, without more. */
bool pipe_ring_is_served(const struct pipe *);
/* For who ends the session: whether the client has said that it has read all; if not, it is asked
 * to, once.  True where there is no ring. */
bool pipe_ring_is_read(struct pipe *);

/* ---- the client's ---- */

/* Whether it can READ there. */
bool pipe_ring_is_possible(const struct pipe *);
/* What comes from here on is there: called when all that came by SEND has been read.  pipe_fd is
 * another one afterwards.  0 or -errno, which ends the session. */
int pipe_ring_follow(struct pipe *, const struct message_ring_reply *);
/* A request of this type leaves: its answer may be as long as the last one. */
void pipe_ring_expect(struct pipe *, uint16_t type);

/* ---- both ---- */

struct pipe_ring_counts {
	uint64_t pieces; /* that went into the ring; the client's: that it read there */
	uint64_t asks;   /* of the client, for a SEND */
	uint64_t sends;  /* since the ring was begun; the client's: that came */
	uint64_t reads;  /* the client's: READs of the ring, those in vain, too */
};
/* False, and zeros: there is none.  Any thread, once it was made. */
bool pipe_ring_count(const struct pipe *, struct pipe_ring_counts *);

#endif
