/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_sum: SUM, of files, computed where they lie.  Any number of replies; `more` is 1 in
 * all but the last.  They come as they are found, and now and then without any, to tell how far it
 * is.
 */
#ifndef PROTO_MESSAGE_SUM_H
#define PROTO_MESSAGE_SUM_H

#include "proto/message.h"

enum message_sum_algorithm {
	MESSAGE_SUM_XXH128 = 1,
	MESSAGE_SUM_SHA256 = 2,
	MESSAGE_SUM_CRC32 = 3, /* zlib's, 4 bytes, the highest first */
	MESSAGE_SUM_MD5 = 4,
};
#define MESSAGE_SUM_MAX 32u   /* bytes of a sum */
#define MESSAGE_SUMS_MAX 512u /* in one reply */

struct message_sum_request {
	uint8_t algorithm;       /* enum message_sum_algorithm */
	uint16_t count;          /* 1..MESSAGE_PATHS_MAX */
	struct wire_bytes paths; /* message_add_path, message_next_path */
};
struct message_sum_reply {
	uint8_t more;
	uint64_t bytes; /* read so far, of all files */
	uint16_t count; /* sums in this one */
};
struct message_sum {
	uint16_t index;  /* of the path in the request, from 0 */
	uint16_t status; /* not 0: there is no sum */
	uint64_t size;   /* bytes; 0 with another status */
	struct wire_bytes sum;
};

int message_get_sum_request(struct message_sum_request *, const void *, size_t);
ssize_t message_put_sum_request(const struct message_sum_request *, void *, size_t);
/* Replies are written and read as LIST's are. */
struct message_sum_writer {
	struct wire wire;
	uint16_t count;
};
void message_sum_begin(struct message_sum_writer *, void *, size_t);
int message_sum_add(struct message_sum_writer *, const struct message_sum *);
ssize_t message_sum_end(struct message_sum_writer *, bool more, uint64_t bytes);
int message_get_sum_head(struct message_sum_reply *, struct wire *, const void *, size_t);
int message_get_sum(struct message_sum *, struct wire *);

#endif
