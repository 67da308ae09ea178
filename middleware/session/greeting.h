/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/greeting: what the two sides of a channel show each other while it connects.
 *
 * In the private data of connect and accept: a greeting, a welcome or a refusal (proto/message.h),
 * and on data channels the tokens by which each side proves that it belongs to the session.
 */
#ifndef SESSION_GREETING_H
#define SESSION_GREETING_H

#include "fabric/fabric.h"
#include "proto/message.h"
#include "proto/message_greeting.h"
#include "session/demux.h"

/* Connects `chan`, showing the greeting.  0 or -errno of the fabric. */
int greeting_show(struct fabric_chan *chan, const struct message_greeting *);
/*
 * The client's: waits for the answer on `chan`: 0 and the welcome; -EACCES: refused, with the
 * daemon's status in the welcome; -EPROTO: an answer, but not rftpd's; -ETIMEDOUT; -errno.  Events
 * of other channels are lost.
 */
int greeting_wait_answer(struct fabric_eq *, const struct fabric_chan *chan, uint64_t deadline_ns,
	struct message_welcome *);

/* The daemon's: accepts `chan` (a token of NULL: of a control channel), or rejects it. */
int greeting_welcome(
	struct fabric_chan *chan, uint16_t credits, const uint8_t token[MESSAGE_TOKEN_BYTES]);
void greeting_refuse(struct fabric_chan *chan, uint16_t status);

/* What the side that `context` names shows on a data channel of the session.  0 or -EPROTO. */
int greeting_token(struct demux *, const struct message_token_context *context,
	uint8_t token[MESSAGE_TOKEN_BYTES]);
/* Takes a time that does not depend on where they differ. */
bool greeting_token_equal(
	const uint8_t a[MESSAGE_TOKEN_BYTES], const uint8_t b[MESSAGE_TOKEN_BYTES]);

#endif
