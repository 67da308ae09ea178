/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync: a directory here and one at the server: what the one has that the other lacks, or
 * has otherwise, is copied; what the other has alone is removed, where that was asked for.
 *
 * Both are listed first, and compared as the settings `compare`, `links` and `filter` say; names
 * that the filter excludes are neither copied nor removed.
 */
#ifndef RFTP_SYNC_H
#define RFTP_SYNC_H

#include "rftp/remote/client.h"

struct sync_params {
	const char *local, *remote; /* directories; `remote` is absolute */
	bool to_server;
	unsigned mode_mask; /* set by sync_run: of files, what the sink keeps */
};

/* 0 or -errno; errors are reported. */
int sync_run(struct client *, const struct sync_params *);

/* What the setting `files-from` names of the source goes to the same names in the destination,
 * which is made if it is not there; nothing is compared.  0 or -errno; reported. */
int sync_listed(struct client *, const struct sync_params *);

/* rftp sync SRC DST: one of them is a URL, and is opened first. */
int sync_main(struct client *, char *const *names, int count);

#endif
