/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_leftovers: LEFTOVERS: what transfers that were cut off have left in a directory and
 * all directories beneath it, and removing it.
 *
 * Replies: any number of frames, `more` is 1 in all but the last; one may have no entries, to tell
 * that it goes on.
 *
 * Functions as in proto/message.h.
 */
#ifndef PROTO_MESSAGE_LEFTOVERS_H
#define PROTO_MESSAGE_LEFTOVERS_H

#include "proto/message.h"

#define MESSAGE_LEFTOVERS_NAME_MAX 16383u /* as TRANSFER_NAME_MAX */

#define MESSAGE_LEFTOVERS_REMOVE 1u /* what nobody uses is removed */

struct message_leftovers {
	uint32_t flags; /* MESSAGE_LEFTOVERS_* */
	uint64_t age_s; /* with REMOVE: only what was not written to for so long */
	struct wire_bytes path;
};

enum message_leftover_kind {
	MESSAGE_LEFTOVER_DIRECTORY = 1, /* none: a directory that cannot be looked into */
	MESSAGE_LEFTOVER_FILE = 2,      /* a partial file with its journal: can be gone on with */
	MESSAGE_LEFTOVER_PART = 3,      /* one that cannot */
	MESSAGE_LEFTOVER_TREE = 4,      /* of a transfer of several files */
};
enum message_leftover_state {
	MESSAGE_LEFTOVER_IDLE = 1,
	MESSAGE_LEFTOVER_BUSY = 2,   /* a transfer uses it */
	MESSAGE_LEFTOVER_UNSURE = 3, /* one may: of another host, or not to be looked at */
	MESSAGE_LEFTOVER_REMOVED = 4,
};

struct message_leftover {
	uint8_t kind;            /* enum message_leftover_kind */
	uint8_t state;           /* enum message_leftover_state */
	uint16_t status;         /* not 0: why it could not be looked at, or removed */
	int64_t changed_s;       /* when it was last written to */
	uint64_t disk_bytes;     /* that it takes, */
	uint64_t verified_bytes; /* that are noted as right, of */
	uint64_t size;           /* so many of the whole file; FILE only, else 0 */
	struct wire_bytes path;  /* its own, beneath the one asked for, as transfer_name_ok */
	struct wire_bytes name;  /* what it belongs to, in the same directory; 0..255 bytes */
};

int message_get_leftovers(struct message_leftovers *, const void *, size_t);
ssize_t message_put_leftovers(const struct message_leftovers *, void *, size_t);

/* A frame that is written: begin, entries while they return 0 (-EMSGSIZE: it is full), end. */
struct message_leftovers_writer {
	struct wire wire;
	uint16_t count;
};
void message_leftovers_begin(struct message_leftovers_writer *, void *, size_t);
int message_leftovers_add(struct message_leftovers_writer *, const struct message_leftover *);
ssize_t message_leftovers_end(struct message_leftovers_writer *, bool more);

/* And one that is read: the head, `count` entries, wire_finish. */
int message_get_leftovers_head(
	struct message_list_reply *head, struct wire *, const void *, size_t);
int message_get_leftover(struct message_leftover *, struct wire *);

#endif
