/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_inline: PUT and GET: a small file inside of one frame, without a transfer.
 *
 * What a file is, is said by a FILE (proto/transfer.h) of number 1, which stands in the message as
 * it does in a frame of its own; its digest is the one that FILE_END would have, of one block.  It
 * is a regular file without names of hard links and without holes, whose bytes end the frame; or,
 * in PUT, what has none and is no hard link.
 *
 * Functions as in proto/message.h.  After a get, `file_data` is the FILE as it came.
 */
#ifndef PROTO_MESSAGE_INLINE_H
#define PROTO_MESSAGE_INLINE_H

#include "proto/message.h"
#include "proto/transfer.h"

/* A file and its bytes, as they stand in PUT and in the reply to GET. */
struct message_whole {
	uint64_t digest;
	struct wire_bytes file_data; /* FILE */
	struct transfer_file file;   /* get: what it says; put: not looked at */
	struct wire_bytes data;      /* 0..MESSAGE_INLINE_MAX bytes */
};

/* Flags of PUT: those of STORE that are here. */
#define MESSAGE_PUT_FLAGS                                                                          \
	(MESSAGE_DATA_INTO | MESSAGE_DATA_NO_REPLACE | MESSAGE_DATA_UPDATE | MESSAGE_DATA_FSYNC)
struct message_put {
	uint32_t flags; /* MESSAGE_DATA_INTO: if the path is a directory, the file goes beneath it
			   by its FILE's name, which is not empty; else that is empty.  What
			   is no regular file goes beneath one only */
	struct wire_bytes path;
	struct message_whole whole;
};
/* How it ended, as RESULT tells it. */
struct message_put_reply {
	uint8_t into; /* 1: beneath the path; 0: it is the path */
	uint16_t status;
	uint64_t digest;        /* of what is there; 0 with a status */
	struct wire_bytes text; /* 0..512 bytes: why not, or what could not be kept */
};

/* Flags of GET: those of RETRIEVE that are here: what FILE is to say. */
#define MESSAGE_GET_FLAGS                                                                          \
	(MESSAGE_DATA_OWNER | MESSAGE_DATA_GROUP | MESSAGE_DATA_XATTRS | MESSAGE_DATA_ACLS |       \
		MESSAGE_DATA_NUMERIC)
struct message_get {
	uint32_t flags;
	uint32_t most; /* a file of more bytes is not wanted: 1..MESSAGE_INLINE_MAX */
	struct wire_bytes path;
};
struct message_get_reply {
	uint8_t here; /* 1: `whole`, whose FILE has no name; 0: it is for RETRIEVE, being too large,
			 a directory, or a file with holes */
	struct message_whole whole;
};

int message_get_put(struct message_put *, const void *, size_t);
ssize_t message_put_put(const struct message_put *, void *, size_t);
int message_get_put_reply(struct message_put_reply *, const void *, size_t);
ssize_t message_put_put_reply(const struct message_put_reply *, void *, size_t);
int message_get_get(struct message_get *, const void *, size_t);
ssize_t message_put_get(const struct message_get *, void *, size_t);
int message_get_get_reply(struct message_get_reply *, const void *, size_t);
ssize_t message_put_get_reply(const struct message_get_reply *, void *, size_t);

#endif
