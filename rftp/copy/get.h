/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/get: files of the server to here.
 */
#ifndef RFTP_GET_H
#define RFTP_GET_H

#include "rftp/remote/client.h"

/*
 * `patterns` are absolute remote paths as patterns (rftp/remote/remote_path).  `target` is a local
 * name, not empty: an existing directory takes the files under their own names, "-" is stdout, else
 * it is the one source's new name. 0 or -errno; errors are reported.
 */
int get_files(struct client *, const char *const *patterns, size_t count, const char *target);
/* Whether it first tries, by these settings, to have each file in one request. */
bool get_asks_small(const struct settings *);

#endif
