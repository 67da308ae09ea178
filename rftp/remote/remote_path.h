/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/remote_path: paths at the server as text, and the names that a pattern stands for.
 */
#ifndef RFTP_REMOTE_PATH_H
#define RFTP_REMOTE_PATH_H

#include "session/calls_names.h"

/* `path` as seen from the directory `cwd`: absolute.  ".." is left for the server.  NULL: no
 * memory. */
char *remote_join(const char *cwd, const char *path);
/* The same for a pattern: what is special in `cwd` is escaped. */
char *remote_join_pattern(const char *cwd, const char *pattern);
/* "/a//b/./../c/" -> "/a/c": what cd shows.  Changes the string in place and gives it back. */
char *remote_normalize(char *path);
/* What follows the last '/', trailing slashes left out: points into `path`; *len may be 0. */
const char *remote_last(const char *path, size_t *len);

/*
 * The names that a pattern (of rftp/shell/lexer or rftp/remote/url) stands for, absolute and
 * sorted.  Without special characters it is just the path itself, there or not.  -ENOENT: nothing
 * matches.  Other errors are those of session/calls_names.
 */
int remote_glob(struct calls *, const char *pattern, char ***paths, size_t *count);
void remote_glob_free(char **paths, size_t count);
bool remote_has_magic(const char *pattern);

#endif
