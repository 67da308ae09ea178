/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_copy: a copy from one daemon to another, as its client asks both for it.
 */
#ifndef SESSION_CALLS_COPY_H
#define SESSION_CALLS_COPY_H

#include "proto/message_copy.h"
#include "proto/message_login.h"
#include "session/calls.h"

struct calls_grant {
	uint8_t bytes[MESSAGE_GRANT_MAX];
	size_t len;
	uint64_t expires_s; /* by the clock of the server */
};

/* Asks the destination for the right to store once at this path, with these flags (of
 * MESSAGE_COPY_BOUND).  Blocks.  0 or -errno with calls_error. */
int calls_grant_copy(struct calls *, const char *path, uint32_t flags, struct calls_grant *);

/* How it goes on, each time that the source says so; good until it returns.  0, or -errno, which
 * ends the copy as a cancel does. */
typedef int calls_copied_function(void *ctx, const struct message_copy_reply *);

/*
 * Asks the source to send, and waits until it is over.  0: the last reply was given to `copied`,
 * and says how it ended; -ECANCELED: the copy was given up on both sides, which `copied` was told
 * of too, and the session goes on; -errno with calls_error: it was refused, or the session is lost,
 * and the source gives the copy up.
 */
int calls_send_copy(struct calls *, unsigned transfer, const struct message_send_copy *,
	calls_copied_function *copied, void *ctx);

#endif
