/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls: the client's half of the dialogue, for every program that is a client of a daemon:
 * connecting, HELLO, requests and their replies, and the data channels when a transfer needs them.
 *
 * It has no settings and says nothing to a user: parameters come in a struct, who is to be told
 * gives a callback, and after an error calls_error has status and text.  One thread at a time.  The
 * requests for names and files are in session/calls_names.
 */
#ifndef SESSION_CALLS_H
#define SESSION_CALLS_H

#include "proto/message_login.h"
#include "proto/status.h"
#include "session/link.h"

struct calls;

struct calls_params {
	const char *host;
	uint16_t port;
	const char *agent; /* what this program is called in HELLO: "rftp/1.0" */
	const char
		*fabric; /* names with commas between, tried in order; "": what suits best first */
	struct tls_context *tls; /* a client's */
	/* Decides, before anything is sent, whether the server that answered at `address` is the
	 * right one: 0; or -errno, and the text says what is wrong with it.  May take its time. */
	int (*trust)(void *ctx, const struct tls *, const struct sockaddr *address,
		char text[TLS_WHY_MAX]);
	void *trust_ctx;
	/*
	 * What to show at the next login: 1 and *login, whose bytes stay as they are until the next
	 * call, or 0: there is nothing more.  It is called first before the server has said
	 * anything (`methods` is 0): what takes a user's time waits then for the next call.  Then,
	 * and after each refusal, it is called with the methods that the server knows (bit n =
	 * enum message_login_method n).  -errno, and the text says why it ends here.  NULL:
	 * anonymous, once.
	 */
	int (*login)(void *ctx, const struct tls *, unsigned methods, struct message_login *login,
		char text[TLS_WHY_MAX]);
	void *login_ctx;
	/* Says with calls_*_ahead what will be asked for first, in that order, so that it leaves
	 * with HELLO and the login.  May be NULL. */
	void (*ahead)(void *ctx, struct calls *);
	void *ahead_ctx;
	uint8_t protect; /* enum message_protect: the least; the server may ask for more */
	bool ring;       /* as calls_ring, at once */
	bool crc;
	int connect_timeout_ms; /* also of HELLO */
	int reply_timeout_ms;   /* of every other request; 0: 60,000 */
	int cancel_fd; /* readable: a wait for a reply ends with -ECANCELED, and the session too */
	/* Where any fabric may be used: is told of one that another is now tried after, and why.
	 * May be NULL. */
	void (*passed_over)(void *ctx, const char *fabric, const char *why);
	void *passed_over_ctx;
};

struct calls_error {
	uint16_t status;
	char text[MESSAGE_TEXT_MAX + 1]; /* may be "": the status says it all */
};

/* What was agreed on and measured. */
struct calls_info {
	char address[64];      /* that answered */
	char description[160]; /* fabric_chan_describe */
	char security[64];     /* tls_describe: what protects the dialogue */
	char host_key[TLS_FINGERPRINT_MAX];
	char agent[MESSAGE_NAME_MAX + 1]; /* as the peer gives it: any bytes */
	const char *fabric;
	uint64_t rtt_ns;
	uint16_t max_channels;
	uint32_t max_block, max_depth;
	uint32_t max_inline;    /* bytes of a file in PUT and GET; 0: none */
	uint16_t max_transfers; /* at once */
	uint32_t engines;       /* that both sides have: bit n = enum message_engine n */
	uint8_t protect;        /* enum message_protect: what holds */
	uint8_t methods;  /* of logins that the server knows: bit n = enum message_login_method n */
	uint8_t method;   /* that it took */
	uint32_t rights;  /* MESSAGE_RIGHT_*: what may be done at least somewhere */
	uint16_t exports; /* that the top lists; 0: the top is one export */
	char user[MESSAGE_NAME_MAX + 1]; /* as the server has it; "": anonymous */
	char home[MESSAGE_PATH_MAX + 1]; /* where paths begin */
	bool read_only;
	bool ring; /* replies are read by READ */
};

/* How a transfer on the session's channels failed. */
struct calls_ending {
	bool lost; /* and the session with it */
	uint16_t status;
	const char *text; /* may be "" */
};

/* A transfer that was asked for waits in line at the daemon, or goes on (position 0). */
typedef void calls_queued_function(void *ctx, const struct message_queued *);

/* Resolves, connects, asks whether the server is to be trusted, says HELLO and logs in, which
 * measures the round trip, too.  Blocks.  0 or -errno with *error; -ENOKEY with STATUS_LOGIN: no
 * login was taken. */
int calls_open(const struct calls_params *, struct calls **out, struct calls_error *error);
/* The data of a LOGIN with a key and its signature: how many bytes, or -errno. */
ssize_t calls_login_key(
	struct wire_bytes key, struct wire_bytes signature, void *data, size_t size);
/* Says BYE if it can, and does not wait for an answer. */
void calls_close(struct calls *);

const struct calls_info *calls_info(const struct calls *);
/* info.rtt_ns as the protocol has it. */
uint32_t calls_rtt_us(const struct calls *);
const struct calls_error *calls_error(const struct calls *);
struct link *calls_link(struct calls *);
/* Whether nothing can be asked of it any more. */
bool calls_lost(const struct calls *);
/* From now on replies are read from the server's memory, if this fabric can and the server lets us;
 * it is asked once.  While no transfer runs.  0, or -errno: the session is lost. */
int calls_ring(struct calls *);
/* What has been read so far, as session/pipe_ring counts it.  False: replies are sent. */
struct pipe_ring_counts;
bool calls_count_replies(const struct calls *, struct pipe_ring_counts *);
/* Whether the server answers; it takes the session for one that is used.  0 or -errno. */
int calls_ping(struct calls *);
/* Readable when something happened to the connection; then calls_check. */
int calls_event_fd(const struct calls *);
int calls_check(struct calls *);

/*
 * Sends a request and waits for its reply: 0 with the reply's data (valid until the next call), or
 * -errno of the refusal (the session goes on) or of the connection (calls_lost).  `len` may be the
 * error of what encoded the request.
 *
 * -ECANCELED ends the session, too; but who waits for a transfer to begin leaves the line, and the
 * session goes on without data channels.
 */
int calls_ask(struct calls *, uint16_t type, const void *data, ssize_t len, const uint8_t **reply,
	size_t *reply_len);
/* The same of a request that concerns a transfer: which one. */
int calls_ask_for(struct calls *, unsigned transfer, uint16_t type, const void *data, ssize_t len,
	const uint8_t **reply, size_t *reply_len);
/*
 * For calls_params.ahead, and of no effect elsewhere: sends a request whose reply is taken when the
 * very same one is asked for.  What was sent before that one is over then, and all of it as soon as
 * something else is asked for: so it must change nothing at the server.
 */
void calls_ahead(struct calls *, unsigned transfer, uint16_t type, const void *data, ssize_t len);
/* CHANNELS; the data channels are dialled at once. */
void calls_channels_ahead(struct calls *, unsigned transfer, unsigned count);
/* The request that begins a transfer, whose port it opens.  On error there is neither. */
int calls_begin(struct calls *, unsigned transfer, uint16_t type, const void *data, ssize_t len);
/*
 * After -ECANCELED of a request that concerns a transfer, and while the session is not lost: gives
 * the transfer up, and waits until the daemon has answered that.  `replied`: is told of replies to
 * the request that came before; NULL: they go by.  -ECANCELED, and the session goes on without data
 * channels of that transfer; or it is lost.
 */
int calls_leave(struct calls *, unsigned transfer, uint16_t type,
	int (*replied)(void *ctx, const uint8_t *data, size_t len), void *ctx);
/*
 * The same without waiting for the answer: frames of the transfer may follow (MESSAGE_DATA_EARLY).
 * The next thing that is asked of the dialogue is calls_answered, until that says more than 0: 1:
 * it is there, and the transfer begins; 0: it has not come; -errno of the refusal, or of the
 * connection.  Once the daemon has answered ABORT, 0 is that it will not come.  Does not block.
 */
int calls_begin_early(
	struct calls *, unsigned transfer, uint16_t type, const void *data, ssize_t len);
int calls_answered(struct calls *, uint16_t type);
/* A request whose reply is taken later, in its turn, by calls_reply.  0 or -errno, as above. */
int calls_send(struct calls *, uint16_t type, const void *data, ssize_t len);
/* One more reply of the same request (LIST), or that of calls_send. */
int calls_reply(struct calls *, uint16_t type, const uint8_t **reply, size_t *reply_len);
/* How urgent the transfers are that are asked for from now on (struct message_admit);
 * `deadline_ns`: MESSAGE_UNKNOWN: none.  `class`: "": the one that the daemon gives them.  Asks the
 * daemon only if that is not what it knows already. */
int calls_admit(struct calls *, const char *class, uint64_t deadline_ns, bool fail);
/* Who is told while a transfer waits. */
void calls_on_queued(struct calls *, calls_queued_function *, void *ctx);
/* A reply that is not what it should be: ends the session.  -EPROTO. */
int calls_bad_reply(struct calls *, uint16_t type);
/* More of it than this side can hold: ends the session, since the rest would be taken for other
 * replies.  -EMSGSIZE. */
int calls_too_long(struct calls *, uint16_t type);

/* Makes `count` data channels for a transfer (0: chosen here), or as many as the peer allows.  They
 * are on their way then; calls_begin waits until they are there. */
int calls_channels(struct calls *, unsigned transfer, unsigned count);
/* After a transfer gave an error: sets calls_error, and whether the session is lost.  Gives the
 * error back. */
int calls_after_transfer(struct calls *, int error, const struct calls_ending *);

#endif
