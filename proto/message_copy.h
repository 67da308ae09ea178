/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_copy: copies from one daemon to another, which a client asks both of them for.
 *
 * The client asks the destination for a grant (GRANT_COPY), and the source to send (SEND_COPY); the
 * source logs in at the destination with the grant (LOGIN, method grant) and stores there.  The
 * data go from one daemon to the other; the client hears how it goes on, in any number of replies
 * of SEND_COPY.
 *
 * get and put functions as in proto/message.h.
 */
#ifndef PROTO_MESSAGE_COPY_H
#define PROTO_MESSAGE_COPY_H

#include "proto/message.h"

#define MESSAGE_COPY_HOST_MAX 63u /* bytes of an address as text */
#define MESSAGE_COPY_KEY_MAX 63u  /* of a fingerprint */
#define MESSAGE_COPY_FABRIC_MAX 31u
/* What of a STORE's flags a grant is bound to. */
#define MESSAGE_COPY_BOUND (MESSAGE_DATA_INTO | MESSAGE_DATA_RECURSIVE | MESSAGE_DATA_NO_REPLACE)
/* What of them SEND_COPY may have. */
#define MESSAGE_COPY_FLAGS                                                                         \
	(MESSAGE_COPY_BOUND | MESSAGE_DATA_UPDATE | MESSAGE_DATA_PREALLOCATE |                     \
		MESSAGE_DATA_FSYNC | MESSAGE_DATA_READBACK)

struct message_grant_copy {
	uint32_t flags; /* of MESSAGE_COPY_BOUND: as the STORE will have them */
	struct wire_bytes path;
};
struct message_grant_copy_reply {
	uint64_t expires_s;      /* seconds since 1970, by the destination's clock */
	struct wire_bytes grant; /* 1..MESSAGE_GRANT_MAX bytes that mean nothing to others */
};

struct message_send_copy {
	/* the destination: its address as numbers, and its host key's fingerprint */
	struct wire_bytes host;
	uint16_t port;
	struct wire_bytes key;
	uint8_t protect; /* enum message_protect: between the two, at least */
	uint64_t rate;   /* bytes a second, at most; 0: no limit */
	struct wire_bytes grant;
	uint32_t to_flags; /* of the STORE: of MESSAGE_COPY_FLAGS */
	struct wire_bytes to;
	/* what to send, as a RETRIEVE has it, and with `resume` as a STORE has it; kind is FILES.
	 * The rest of the message. */
	struct message_data_request request;
};

/* Where it failed. */
enum message_copy_side {
	MESSAGE_COPY_NOWHERE = 0,     /* it runs, or is over */
	MESSAGE_COPY_SOURCE = 1,      /* the daemon that was asked to send */
	MESSAGE_COPY_DESTINATION = 2, /* the one that it sends to */
	MESSAGE_COPY_BETWEEN = 3,     /* on the way from one to the other */
};

/* One file that has an end, of whatever kind. */
struct message_copy_outcome {
	uint8_t flags;
	uint16_t status;
	uint64_t bytes;         /* that arrived */
	struct wire_bytes name; /* as it crossed; may be empty */
	struct wire_bytes text; /* 0..512 bytes */
};
#define MESSAGE_COPY_DIRECTORY 1u
#define MESSAGE_COPY_SPECIAL 2u /* a device, FIFO or socket: left out */
#define MESSAGE_COPY_THERE 4u   /* it failed at the destination */

struct message_copy_reply {
	uint8_t more; /* 1 in all but the last */
	/* of the last: why it was cut short, if it was */
	uint8_t side; /* enum message_copy_side */
	uint16_t status;
	struct wire_bytes text; /* 0..512 bytes */
	/* so far; as of struct transfer_stats */
	uint64_t bytes, verified_bytes, had_bytes, hole_bytes, crossed_bytes, total_bytes;
	uint64_t files, errors, total_files;
	uint64_t ns;               /* since the data began to move */
	struct wire_bytes current; /* the name of a file that is under way, 0..255 bytes */
	uint8_t engine;  /* enum message_engine; 0: it has not begun, as have all that follow */
	uint8_t protect; /* enum message_protect */
	uint8_t direct;  /* 1: O_DIRECT was used at the source */
	uint16_t channels;
	uint32_t block, depth;
	struct wire_bytes fabric; /* its name */
	uint16_t count;
	struct wire_bytes outcomes; /* message_add_outcome, message_next_outcome */
};

int message_get_grant_copy(struct message_grant_copy *, const void *, size_t);
ssize_t message_put_grant_copy(const struct message_grant_copy *, void *, size_t);
int message_get_grant_copy_reply(struct message_grant_copy_reply *, const void *, size_t);
ssize_t message_put_grant_copy_reply(const struct message_grant_copy_reply *, void *, size_t);
int message_get_send_copy(struct message_send_copy *, const void *, size_t);
ssize_t message_put_send_copy(const struct message_send_copy *, void *, size_t);
int message_get_copy_reply(struct message_copy_reply *, const void *, size_t);
ssize_t message_put_copy_reply(const struct message_copy_reply *, void *, size_t);
/* One more at the end of `list`, of which *len bytes are used.  0; -EMSGSIZE: it is full; -EBADMSG:
 * it may not cross. */
int message_add_outcome(void *list, size_t size, size_t *len, const struct message_copy_outcome *);
/* The next one; false: there is none that is well-formed.  It is off the list then. */
bool message_next_outcome(struct wire_bytes *outcomes, struct message_copy_outcome *);

#endif
