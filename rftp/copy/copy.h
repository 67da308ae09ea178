/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/copy: rftp SRC... DST: which side is the server's.
 */
#ifndef RFTP_COPY_H
#define RFTP_COPY_H

#include "rftp/remote/client.h"

/* The last name is the destination.  0 or -errno; errors are reported. */
int copy_run(struct client *, char *const *names, int count);

#endif
