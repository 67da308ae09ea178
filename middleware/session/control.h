/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/control: frames over the control channel.
 *
 * Cuts and joins the frames of proto/message.h on a byte stream that TLS protects (session/tls) and
 * that SENDs carry (session/pipe).  What messages mean is not its business; it checks frame headers
 * against the codec table.
 *
 * Nothing here blocks except control_wait, control_flush and control_secure.  One thread at a time.
 * A frame that breaks the rules (unknown type, length outside its row, more SENDs than credits, a
 * record that TLS refuses) makes control_get return -EBADMSG for good, a handshake that fails
 * -EPROTO; a broken channel makes it -ENOTCONN or -ECONNRESET once all that came before was read.
 */
#ifndef SESSION_CONTROL_H
#define SESSION_CONTROL_H

#include "fabric/fabric.h"
#include "proto/message.h"
#include "session/pipe.h"
#include "session/tls.h"

#define CONTROL_PENDING_MAX (64u << 20) /* bytes queued and not sent yet */
#define CONTROL_INPUT_MAX (1u << 20)    /* bytes that came and were not read yet */

struct control;

/*
 * Makes a control channel of `chan` (from a dial or a REQUEST).  The caller then connects or
 * accepts with PIPE_CREDITS in its private data, and calls control_start with the credits that the
 * peer showed in its own.  The channel is the control's from then on, and is freed with it (also
 * when control_new fails).
 *
 * `context` is the client's or the server's, and must outlive the control; `host` is the client's
 * name for the server, which must only live as long as the call.  A context of NULL sends frames in
 * the clear: for tests of this module, which want to see and forge each byte.
 */
int control_new(struct fabric_chan *chan, const struct tls_context *context, const char *host,
	struct control **out);
void control_start(struct control *, uint16_t peer_credits);
void control_free(struct control *);

struct fabric_chan *control_chan(const struct control *);
struct fabric_pd *control_pd(
	const struct control *); /* the session's: its data channels share it */
/* For session/pipe_ring: replies by READ.  Under what the control is used under. */
struct pipe *control_pipe(const struct control *);

/*
 * The client's: begins the TLS handshake and blocks until it is complete.  The server's handshake
 * goes on by itself in control_get and control_push; a server that has nothing else to do may block
 * here, too.  0; -ETIMEDOUT; -ECANCELED; -errno of the session.
 */
int control_secure(struct control *, int timeout_ms, int cancel_fd);
/* NULL for a control in the clear. */
const struct tls *control_tls(const struct control *);

/* Queues one frame (copied) and sends what credits allow; before the handshake is complete it waits
 * for that.  -ENOBUFS: over CONTROL_PENDING_MAX; -ENOTCONN, -EBADMSG: the session is over.  `data`
 * may be NULL when len is 0. */
int control_put(struct control *, uint16_t type, uint16_t response, const void *data, size_t len);

/*
 * While it is corked, what control_put queues leaves with the next control_get, control_push or
 * wait, many frames in one SEND and one record: for a loop that comes to one of them before it
 * sleeps.  To take the cork out sends what is there.
 */
void control_cork(struct control *, bool corked);

/* For a peer that takes nothing of what is queued: finds out whether it is still there, and
 * control_get says so when it is not (pipe_probe). */
void control_probe(struct control *);

/* Takes in completions, then gives the next whole frame: 1 (*data is valid until the next call of
 * control_get or control_wait), 0 (none yet), or -errno (the session is over). */
int control_get(struct control *, struct message_header *, const uint8_t **data);

/* Takes in completions and moves queued bytes on, without reading a frame. */
void control_push(struct control *);
/* The same, though whole frames may wait: does nothing while what waits is more than half of
 * CONTROL_INPUT_MAX, which credits that are given back for it could exceed. */
void control_hear(struct control *);
/* Bytes queued and not yet sent: a producer of much output stops while this is high. */
size_t control_pending_bytes(const struct control *);

/*
 * For event loops: arm, then call control_get until it returns 0, then wait until the fd is
 * readable.  The fd also becomes readable when queued bytes could move on; control_get moves them.
 */
int control_arm(struct control *);
int control_fd(const struct control *);

/* Blocks until control_get has something to say, or until all queued bytes have left if there were
 * any; at most timeout_ms (-1: for ever); cancel_fd (-1: none) ends it early when readable.  0;
 * -ETIMEDOUT; -ECANCELED. */
int control_wait(struct control *, int timeout_ms, int cancel_fd);

/* Blocks until all queued bytes have been sent, at most timeout_ms; frames that come stay unread.
 * 0; -ETIMEDOUT; -errno (the session is over). */
/* Until all that was queued has left, and the transport has taken it over, or timeout_ms are over:
 * who ends the connection then takes nothing of it back. */
void control_drain(struct control *, int timeout_ms);
int control_flush(struct control *, int timeout_ms);

#endif
