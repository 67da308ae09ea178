/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/retry: copies that are begun again when the server cannot be reached or the connection
 * is lost, after a pause that grows.
 */
#ifndef RFTP_RETRY_H
#define RFTP_RETRY_H

#include "rftp/remote/client.h"

/*
 * Whether the copy that gave `error` may be begun again, `done` times of which were before, the
 * first one at `began_ns`: once the pause is over, its errors are forgotten, since the next attempt
 * has its own.  Says so, and waits.
 */
bool retry_again(struct client *, int error, unsigned done, uint64_t began_ns);

#endif
