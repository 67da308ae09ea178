/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_request: the names of a sync that a server is asked for in one request, as many as
 * it has room for.
 *
 * A hard link leads to a file of its own transfer: where that was asked for before, it is asked for
 * once more, without its bytes.
 */
#ifndef RFTP_SYNC_REQUEST_H
#define RFTP_SYNC_REQUEST_H

#include "rftp/remote/client.h"
#include "tree/compare.h"

#define SYNC_REQUEST_BYTES 24576u /* of names, beside path and rules */

struct sync_request {
	unsigned round;    /* 1 for the first request of a sync, 2 for the next */
	const char *first; /* its first name */
	uint8_t *list;     /* SYNC_REQUEST_BYTES, the caller's */
	size_t used;       /* of these */
	uint16_t count;    /* names in it */
};

/* Adds names from *at on, which goes on; one that is too long is reported and left out.  `from`:
 * the listing that they come from. */
void sync_request_fill(struct client *, struct sync_request *, const struct compare_list *from,
	const struct selection *copy, size_t *at);
/* The directory itself: what it has.  Whether there was room. */
bool sync_request_itself(struct sync_request *);

#endif
