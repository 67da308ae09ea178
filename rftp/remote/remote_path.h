/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/remote: the requests for names at the server, as calls; and remote paths as text.
 *
 * All give 0 or -errno with session_error(session), and say nothing to the user.
 */
#ifndef RFTP_REMOTE_H
#define RFTP_REMOTE_H

#include "session/calls.h"

struct remote_entry {
	struct message_attr attr;
	char *name;
};
struct remote_list {
	struct remote_entry *entries; /* sorted by name */
	size_t count;
};

int remote_stat(struct session *, const char *path, struct message_attr *);
int remote_list(struct session *, const char *path, struct remote_list *);
void remote_list_free(struct remote_list *);
int remote_mkdir(struct session *, const char *path, bool parents);
int remote_rmdir(struct session *, const char *path);
int remote_remove(struct session *, const char *path);
int remote_rename(struct session *, const char *from, const char *to, bool replace);
int remote_statfs(struct session *, const char *path, struct message_statfs_reply *);
/* STORE or RETRIEVE; after 0 the transfer begins. */
int remote_data(struct session *, uint16_t type, const struct message_data_request *);

int remote_feed(struct session *, const struct message_feed *); /* likewise */

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
 * matches.
 */
int remote_glob(struct session *, const char *pattern, char ***paths, size_t *count);
void remote_glob_free(char **paths, size_t count);
bool remote_has_magic(const char *pattern);

#endif
