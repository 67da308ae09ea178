/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sources: the files at a server that a command names.
 */
#ifndef RFTP_SOURCES_H
#define RFTP_SOURCES_H

#include "proto/wire.h"
#include "rftp/remote/client.h"
#include "tree/asked.h"

/* All patterns into one list of paths, which remote_glob_free frees, also after an error; what
 * matches nothing is reported and left out.  0 or -errno (reported). */
int sources_expand(struct client *, const char *const *patterns, size_t count, char ***paths,
	size_t *path_count);
/* Whether a source is a directory that is to be copied.  1, 0, or -errno: it can not be had
 * (reported). */
int sources_is_tree(struct client *, const char *path);
/* Two sources on one name in the directory `target`: either would be lost.  0 or -errno (reported).
 */
int sources_check_names(struct client *, char *const *paths, size_t count, const char *target);
/* For one request: all of the paths that have a name to arrive under (`into` a directory), as far
 * as a request has room for more than the first one; else the first.  *count: of how many there
 * are, for how many it is, at least one.  They are added to `asked`; *more are those behind the
 * first, encoded, whose data is the caller's to free, also after an error.  0 or -ENOMEM. */
int sources_gather(
	char *const *paths, size_t *count, bool into, struct asked *, struct wire_bytes *more);

#endif
