/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sources: the files at a server that a command names.
 */
#ifndef RFTP_SOURCES_H
#define RFTP_SOURCES_H

#include "rftp/remote/client.h"

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

#endif
