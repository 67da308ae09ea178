/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls: one session with a daemon: connecting, HELLO, requests and their replies,
 * and the data channels when a transfer needs them.
 *
 * Says nothing to the user: after an error session_error tells status and text.  One thread.
 */
#ifndef RFTP_SESSION_H
#define RFTP_SESSION_H

#include "transfer/transfer.h"

struct session;

struct session_params {
	const char *host;
	uint16_t port;
	const char *fabric; /* "": each of this build, until one connects */
	bool crc;
	int connect_timeout_ms;
	int cancel_fd; /* readable: a wait for a reply ends with -ECANCELED, and the session too */
	/* Without a wish: told of a fabric that another one is now tried after, and why.  May be
	 * NULL. */
	void (*passed_over)(void *ctx, const char *fabric, const char *why);
	void *passed_over_ctx;
};

struct session_error {
	uint16_t status;
	char text[MESSAGE_TEXT_MAX + 1]; /* may be "" : the status says it all */
};

/* What was agreed on and measured. */
struct session_info {
	char address[64];                 /* that answered */
	char description[160];            /* fabric_chan_describe */
	char agent[MESSAGE_NAME_MAX + 1]; /* as the peer gives it: any bytes */
	const char *fabric;
	uint64_t rtt_ns;
	uint16_t max_channels;
	uint32_t max_block, max_depth;
	uint32_t engines; /* that both sides have: bit n = enum message_engine n */
	bool read_only;
};

/* A transfer that was asked for waits in line at the daemon; 1 is the next. */
typedef void session_queued_function(void *ctx, unsigned position);

/* Resolves, connects, says HELLO, measures the round trip.  Blocks.  0 or -errno with *error. */
int session_open(const struct session_params *, struct session **out, struct session_error *error);
/* Says BYE if it can. */
void session_close(struct session *);

const struct session_info *session_info(const struct session *);
/* info.rtt_ns as the protocol has it. */
uint32_t session_rtt_us(const struct session *);
const struct session_error *session_error(const struct session *);
struct link *session_link(struct session *);
/* Whether nothing can be asked of it any more. */
bool session_lost(const struct session *);
/* Readable when something happened to the connection; then session_check. */
int session_event_fd(const struct session *);
int session_check(struct session *);

/*
 * Sends a request and waits for its reply: 0 with the reply's data (valid until the next call), or
 * -errno of the refusal (the session goes on) or of the connection (session_lost).
 */
int session_call(struct session *, uint16_t type, const void *data, ssize_t len,
	const uint8_t **reply, size_t *reply_len);
/* One more reply of the same request (LIST). */
int session_reply(struct session *, uint16_t type, const uint8_t **reply, size_t *reply_len);
/* Who is told while a transfer waits. */
void session_on_queued(struct session *, session_queued_function *, void *ctx);
/* A reply that is not what it should be: ends the session.  -EPROTO. */
int session_bad_reply(struct session *, uint16_t type);

/* Makes `count` data channels (0: chosen here), or as many as the peer allows. */
int session_channels(struct session *, unsigned count);
/* After transfer_send or transfer_receive gave an error: sets session_error, and whether the
 * session is lost.  Gives the error back. */
int session_after_transfer(struct session *, int error, const struct transfer_stats *);

#endif
