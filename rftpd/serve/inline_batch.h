/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/inline_batch: PUT and GET: small files as single requests.
 *
 * Those that have come while the session has nothing else to do are a batch: a task works on all of
 * it, what belongs together is flushed together, and then each is answered, in order.  A batch has
 * a bound, and while it is worked on no frame is read: so whoever sends more than that waits, and
 * takes no more memory.  All functions belong to the thread of the loop.
 */
#ifndef RFTPD_INLINE_BATCH_H
#define RFTPD_INLINE_BATCH_H

#include "rftpd/serve/daemon_session.h"

#define INLINE_BATCH_FILES 256u
#define INLINE_BATCH_BYTES (1u << 20)
/* Of all sessions together; beyond it a batch has one request. */
#define INLINE_BATCHES_BYTES (64u << 20)

/* Bytes of a file that the session may have in a request; 0: none. */
uint32_t inline_batch_max(const struct daemon_session *);
/* Whether there is a batch, and it begins now: no frame, or one of another type, is the next. */
bool inline_batch_waits(const struct daemon_session *);
bool inline_batch_takes(uint16_t type);
/* The batch is worked on.  0 or -errno, as of handlers. */
int inline_batch_begin(struct daemon_session *);
/* With its session. */
void inline_batch_free(struct daemon_session *);

#endif
