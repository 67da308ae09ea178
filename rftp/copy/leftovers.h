/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/leftovers: `leftovers`: what transfers that were cut off have left, here or at a
 * server, and removing it.
 */
#ifndef RFTP_LEFTOVERS_H
#define RFTP_LEFTOVERS_H

#include "rftp/remote/client.h"

struct leftovers_command {
	bool remove;       /* what nobody uses */
	const char *older; /* of that, what was not written to for so long; NULL: all */
	bool shell;        /* names are paths of the server that is open */
};

/* Directories, with all that is beneath them: here, URLs, or in the shell absolute remote paths.
 * None: the directory that one is in, here.  0 or -errno (reported). */
int leftovers_command(
	struct client *, const struct leftovers_command *, const char *const *names, size_t count);

#endif
