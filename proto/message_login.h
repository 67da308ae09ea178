/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_login: LOGIN, the request behind HELLO, without which no other is answered.  It may
 * be sent before HELLO's reply has come.  A refusal says nothing but that; the next LOGIN may show
 * something else.
 */
#ifndef PROTO_MESSAGE_LOGIN_H
#define PROTO_MESSAGE_LOGIN_H

#include "proto/message.h"

enum message_login_method {
	MESSAGE_LOGIN_ANONYMOUS = 1,   /* no user, no data */
	MESSAGE_LOGIN_PASSWORD = 2,    /* data: the password */
	MESSAGE_LOGIN_KEY = 3,         /* data: struct message_login_key */
	MESSAGE_LOGIN_ONCE = 4,        /* no user; data: a key that is good for one session */
	MESSAGE_LOGIN_CERTIFICATE = 5, /* no data: TLS has shown the certificate.  A user or none */
	MESSAGE_LOGIN_GRANT = 6,       /* no user; data: what GRANT_COPY gave */
};
#define MESSAGE_LOGIN_DATA_MAX 4096u
#define MESSAGE_LOGIN_PASSWORD_MAX 1024u
#define MESSAGE_LOGIN_ONCE_BYTES 32u
#define MESSAGE_GRANT_MAX 256u
struct message_login {
	uint8_t method;
	struct wire_bytes user; /* 1..255 bytes without NUL where the method has one */
	struct wire_bytes data; /* as the method has it */
};
struct message_login_key {
	struct wire_bytes key;       /* as ssh has it: its type and its bytes, in strings */
	struct wire_bytes signature; /* of what message_login_signed makes */
};
/* What is signed: the label, and then so many bytes of TLS's exporter with the label and as the
 * context the method and the user.  It is worth nothing in another session. */
#define MESSAGE_LOGIN_LABEL "EXPERIMENTAL rftp login"
#define MESSAGE_LOGIN_EXPORT_BYTES 32u
#define MESSAGE_LOGIN_CONTEXT_MAX (1u + MESSAGE_NAME_MAX)
#define MESSAGE_LOGIN_SIGNED_BYTES (sizeof MESSAGE_LOGIN_LABEL - 1 + MESSAGE_LOGIN_EXPORT_BYTES)

enum message_right { /* bits: what may be done at least somewhere */
	MESSAGE_RIGHT_READ = 1,
	MESSAGE_RIGHT_LIST = 2,
	MESSAGE_RIGHT_WRITE = 4,
	MESSAGE_RIGHT_DELETE = 8,
	MESSAGE_RIGHT_APPEND = 16,
};
#define MESSAGE_RIGHTS 31u
struct message_login_reply {
	uint32_t rights;     /* MESSAGE_RIGHT_* */
	uint16_t exports;    /* directories in the top, each an export; 0: the top is the export */
	uint32_t max_inline; /* bytes of a file in PUT and GET, at most MESSAGE_INLINE_MAX; 0: no
				such requests */
	struct wire_bytes user; /* that the session is of, 0..255 bytes; anonymous: none */
	struct wire_bytes home; /* the directory that paths begin in: 1..4095 bytes */
};

int message_get_login(struct message_login *, const void *, size_t);
ssize_t message_put_login(const struct message_login *, void *, size_t);
int message_get_login_key(struct message_login_key *, const void *, size_t); /* of LOGIN's data */
ssize_t message_put_login_key(const struct message_login_key *, void *, size_t);
int message_get_login_reply(struct message_login_reply *, const void *, size_t);
ssize_t message_put_login_reply(const struct message_login_reply *, void *, size_t);
/* The exporter's context: how many bytes.  `user` is at most MESSAGE_NAME_MAX. */
size_t message_login_context(
	uint8_t method, struct wire_bytes user, uint8_t bytes[MESSAGE_LOGIN_CONTEXT_MAX]);
void message_login_signed(const uint8_t exported[MESSAGE_LOGIN_EXPORT_BYTES],
	uint8_t bytes[MESSAGE_LOGIN_SIGNED_BYTES]);
const char *message_login_name(uint8_t method); /* "password"; NULL: there is no such method */

#endif
