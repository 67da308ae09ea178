/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/put: local files to the server.
 */
#ifndef RFTP_PUT_H
#define RFTP_PUT_H

#include "rftp/remote/client.h"

/*
 * `target` is an absolute remote path: an existing directory or one that ends in '/' takes the
 * sources under their own names, else it is the one source's new name.  The source "-" is stdin.  0
 * or -errno; errors are reported.
 */
int put_files(struct client *, const char *const *sources, size_t count, const char *target);

#endif
