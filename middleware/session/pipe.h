/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/pipe: a byte stream each way over the SENDs of the control channel; the one to the client
 * may be read by it instead (session/pipe_ring).
 *
 * The stream is cut into SENDs of at most PIPE_SEND_BYTES, with credits for the receives that the
 * other side has posted (rftp-protocol(7), "The control channel").  What the bytes mean is not its
 * business.
 *
 * Nothing here blocks.  One thread at a time.  The first error is final: a SEND that breaks the
 * rules -EBADMSG, no memory -ENOMEM, a broken channel -ECONNRESET or -ENOTCONN; what came before it
 * can still be read.
 */
#ifndef SESSION_PIPE_H
#define SESSION_PIPE_H

#include "fabric/fabric.h"
#include "session/buffer.h"

#define PIPE_SEND_BYTES 4096u
#define PIPE_CREDITS 62u          /* receives posted, and SENDs outstanding, a side */
#define PIPE_INPUT_MAX (1u << 20) /* bytes that came and were not read yet */

struct pipe;

/*
 * Makes the buffers, protection domain, completion queue and queue pair of `chan` (from a dial or a
 * REQUEST) and posts the receives.  The caller then connects or accepts with PIPE_CREDITS in its
 * private data, and calls pipe_start with the credits that the peer showed in its own.  The channel
 * is the pipe's from then on, and is freed with it (also when pipe_new fails).
 */
int pipe_new(struct fabric_chan *chan, struct pipe **out);
void pipe_start(struct pipe *, uint16_t peer_credits);
void pipe_free(struct pipe *);

struct fabric_chan *pipe_chan(const struct pipe *);
struct fabric_pd *pipe_pd(const struct pipe *);
/* To wait: arm, call pipe_progress, then wait until the descriptor is readable.  0 or -errno. */
int pipe_arm(struct pipe *);
int pipe_fd(const struct pipe *);

/* What is to be sent is appended here, and leaves with the next pipe_push or pipe_progress. */
struct buffer *pipe_output(struct pipe *);
/* What came: read and consumed by the caller. */
struct buffer *pipe_input(struct pipe *);

/* Whether the transport has not taken over all that was sent. */
bool pipe_is_sending(const struct pipe *);
/* Sends what credits allow.  0 or the pipe's error. */
int pipe_push(struct pipe *);
/* Takes in what came, and sends what credits allow.  More than PIPE_INPUT_MAX bytes that nobody
 * reads are the peer's error.  0 or the pipe's error. */
int pipe_progress(struct pipe *);
/*
 * For a peer that takes nothing of what is queued: finds out whether it is still there, by a WRITE
 * of no bytes, which needs no credit.  If not, pipe_progress says so as soon as the fabric knows.
 * 0 or the pipe's error.
 */
int pipe_probe(struct pipe *);

#endif
