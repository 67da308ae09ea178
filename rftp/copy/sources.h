/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sources: the files at a server that a command names.
 */
#ifndef RFTP_SOURCES_H
#define RFTP_SOURCES_H

#include "proto/wire.h"
#include "rftp/copy/again.h"
#include "rftp/remote/client.h"
#include "tree/asked.h"

struct mover;

struct sources { /* zeroed: none */
	char **paths;
	size_t count;
	size_t whole; /* of them, in front: to be copied again, whole */
};

void sources_fini(struct sources *);
/* All patterns into one list of paths, also after an error; what matches nothing is reported, is
 * among what failed, and left out.  With a list of sources that are copied again, others are left
 * out, or come behind them.  0 or -errno (reported). */
int sources_expand(struct mover *, const char *const *patterns, size_t count, const struct again *,
	struct sources *);
/* Whether a source is a directory that is to be copied.  1, 0, or -errno: it cannot be had
 * (reported). */
int sources_is_tree(struct client *, const char *path);
/* Two sources on one name in the directory `target`: either would be lost.  0 or -errno (reported).
 */
int sources_check_names(struct client *, char *const *paths, size_t count, const char *target);
/* What was asked for cannot be had, by an error that was reported: all of it is among what failed,
 * unless the session was lost by it. */
void sources_absent(struct mover *, const struct asked *, int error);
/* The same of paths before any was asked for; `into`: they were to go into a directory, whatever
 * they are. */
void sources_absent_paths(struct mover *, char *const *paths, size_t count, bool into, int error);
struct sources_copy {
	const char *command, *target; /* as a dry run shows them */
	bool into;                    /* the target is a directory */
	/* Copies what one request asks for: the first of `asked` and, encoded, `more`.  0 or -errno
	 * (reported). */
	int (*request)(void *ctx, const struct wire_bytes *more, struct asked *);
	/* Whether a request that failed was the last one, whatever is to come; NULL: it never is.
	 */
	bool (*is_over)(void *ctx);
	void *ctx;
};
/* Requests for all of the paths, each for as many as it has room for; one that fails does not keep
 * the others back.  0 or -errno (reported). */
int sources_copy(struct client *, char *const *paths, size_t count, const struct sources_copy *);

#endif
