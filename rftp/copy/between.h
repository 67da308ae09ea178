/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/between: files of one server that go to another one, directly from one to the other.
 */
#ifndef RFTP_BETWEEN_H
#define RFTP_BETWEEN_H

#include "rftp/remote/client.h"

/*
 * `client` is connected to the sources' server, `there` to the destination's.  Patterns as of
 * get_files, the target as of put_files.  0 or -errno (reported, also what was `there`).
 */
int between_files(struct client *client, struct client *there, const char *const *patterns,
	size_t count, const char *target);

#endif
