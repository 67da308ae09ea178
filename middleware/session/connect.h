/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/connect: from a host's name to a connected link: which address, which fabric.
 */
#ifndef SESSION_CONNECT_H
#define SESSION_CONNECT_H

#include "session/calls.h"

/*
 * Tries each fabric that may be used, best first, on each address of the host in the resolver's
 * order, until one connects.  *fabric and *link are then the caller's; `address` is the one that
 * answered. -errno: *error says what became of the most telling attempt.  A refusal by the daemon
 * itself is final: it would refuse on another fabric, too.
 */
int connect_any(const struct calls_params *, struct fabric **fabric, struct link **link,
	char address[64], struct calls_error *error);

#endif
