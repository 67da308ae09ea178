/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_impl.h: the state of a client's dialogue, and what its files share.  Included by
 * session/calls*.c only.
 */
#ifndef SESSION_CALLS_IMPL_H
#define SESSION_CALLS_IMPL_H

#include "session/calls.h"
#include "session/demux.h"

#define CALLS_AHEAD_MAX 5u /* requests that leave before the first reply */

/* Owns the fabric, the link and what HELLO agreed on. */
struct calls {
	struct fabric *fabric;
	struct link *link;
	int cancel_fd, connect_timeout_ms;
	int reply_timeout_ms; /* connect_timeout_ms until the session is open */
	/* when all that is asked must be over: HELLO, LOGIN and what is sent with them, but for
	 * what a user takes; 0: each reply has its time */
	uint64_t all_by_ns;
	bool lost;
	uint32_t number;
	struct calls_info info;
	struct calls_error error;
	/* sent before the server had answered anything, and not asked for yet, in their order */
	struct calls_ahead {
		uint16_t type, transfer;
		size_t len;
		uint8_t *data;
	} ahead[CALLS_AHEAD_MAX];
	unsigned ahead_count;
	bool may_ahead;             /* the opening asks for them now */
	unsigned ahead_channels;    /* that CHANNELS among them asks for */
	struct message_admit admit; /* that the daemon knows; its class is in: */
	char class[MESSAGE_CLASS_MAX + 1];
	calls_queued_function *queued;
	void *queued_ctx;
	uint64_t answer_by_ns; /* to calls_begin_early */
	bool ring_asked;       /* for replies by READ: once */
};

/* Sets calls_error and gives the error back.  Status 0: that of the errno. */
int calls_fail(struct calls *, int error, uint16_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same of a connection that is of no use any more, while `doing` was under way. */
int calls_lose(struct calls *, int error, const char *doing);

/* A request and its reply took so long. */
void calls_measured(struct calls *, uint64_t took_ns);

struct demux_port *calls_port(const struct calls *);
/* Until when a reply must have come. */
uint64_t calls_deadline(const struct calls *);
/* The transfer of a request waits in line: 0, or -EPROTO. */
int calls_take_queued(struct calls *, uint16_t type, const uint8_t *data, size_t len);
/* A frame that is the reply to a request, or nothing that may come: 0 or -errno, as calls_ask. */
int calls_take_reply(struct calls *, uint16_t type, const struct message_header *header,
	const uint8_t *data, const uint8_t **reply, size_t *reply_len);
/* A request is on its way: sent now, or before.  `len` may be the error of what encoded it.  0 or
 * -errno. */
int calls_send_for(struct calls *, unsigned transfer, uint16_t type, const void *data, ssize_t len);
/* Takes the replies in that nobody asks for any more.  0, or -errno of the connection. */
int calls_settle(struct calls *);
/* Forgets the first request that was sent ahead. */
void calls_pop_ahead(struct calls *);

#endif
