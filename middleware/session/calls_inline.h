/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_inline: small files as single requests: PUT and GET, several of which may be under
 * way.  Replies are taken in the order of the requests, all of them before anything else is asked.
 *
 * 0 or -errno: a refusal (the session goes on), or what has ended the session; see calls_ask.
 */
#ifndef SESSION_CALLS_INLINE_H
#define SESSION_CALLS_INLINE_H

#include "proto/message_inline.h"
#include "session/calls.h"

/* What may be under way at once: so the daemon takes it all in one batch. */
#define CALLS_INLINE_FILES 128u
#define CALLS_INLINE_BYTES (512u << 10)

/* -EMSGSIZE: a frame has no room for it; nothing was sent.  *len: bytes of the frame. */
int calls_put_send(struct calls *, const struct message_put *, size_t *len);
/* What it points to is valid until the next call. */
int calls_put_take(struct calls *, struct message_put_reply *);

int calls_get_send(struct calls *, const struct message_get *);
/* As calls_ahead. */
void calls_get_ahead(struct calls *, const struct message_get *);
int calls_get_take(struct calls *, struct message_get_reply *);

#endif
