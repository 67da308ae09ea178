/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_greeting: the private data of connect and accept, at most 56 bytes, by which a
 * channel says what it is.
 */
#ifndef PROTO_MESSAGE_GREETING_H
#define PROTO_MESSAGE_GREETING_H

#include "proto/message.h"

#define MESSAGE_MAGIC 0x52465450u /* "RFTP" */

enum message_channel_kind { MESSAGE_CHANNEL_CONTROL = 1, MESSAGE_CHANNEL_DATA = 2 };

/* What a connecting side shows: magic, version 8, kind 8, index 16, session 32, credits 16, token.
 */
struct message_greeting {
	uint8_t version;                    /* the highest it speaks */
	uint8_t kind;                       /* enum message_channel_kind */
	uint16_t index;                     /* of a data channel */
	uint32_t session;                   /* of a data channel; else 0 */
	uint16_t credits;                   /* control: receives it has posted, at least 2 */
	uint8_t token[MESSAGE_TOKEN_BYTES]; /* of a data channel; else zeros */
};
#define MESSAGE_GREETING_BYTES 30u
#define MESSAGE_CREDITS_MIN 2u /* of a control channel: the last one carries credits only */
/* What the accepting side answers: magic, version, flags 8, credits 16, status 16, token. */
#define MESSAGE_WELCOME_AHEAD 1u /* TCP may connect before there is a greeting to show, or go */
struct message_welcome {
	uint8_t version;
	uint8_t flags;                      /* MESSAGE_WELCOME_* */
	uint16_t credits;                   /* control: receives it has posted */
	uint16_t status;                    /* of a refusal; else 0 */
	uint8_t token[MESSAGE_TOKEN_BYTES]; /* of an accepted data channel; else zeros */
};
#define MESSAGE_WELCOME_BYTES 26u

/*
 * The token of a data channel is MESSAGE_TOKEN_BYTES of TLS's exporter (RFC 8446, 7.5), with this
 * label and this context: direction 8, reserved 8, index 16, session 32, nonce.  Each channel has
 * one for each direction, and each CHANNELS reply a nonce of its own: nobody can show a token that
 * was seen.
 */
#define MESSAGE_TOKEN_LABEL "EXPERIMENTAL rftp data channel"
#define MESSAGE_TOKEN_CONTEXT_BYTES 24u
enum message_token_direction { MESSAGE_TOKEN_GREETING = 1, MESSAGE_TOKEN_WELCOME = 2 };
struct message_token_context {
	uint8_t direction; /* enum message_token_direction: which side shows it */
	uint16_t index;
	uint32_t session;
	uint8_t nonce[MESSAGE_TOKEN_BYTES];
};
void message_put_token_context(
	const struct message_token_context *, uint8_t bytes[MESSAGE_TOKEN_CONTEXT_BYTES]);

/* Private data may come padded with zeros: these alone allow trailing zero bytes. */
int message_get_greeting(struct message_greeting *, const void *, size_t len);
ssize_t message_put_greeting(const struct message_greeting *, void *, size_t size);
int message_get_welcome(struct message_welcome *, const void *, size_t len);
ssize_t message_put_welcome(const struct message_welcome *, void *, size_t size);

#endif
