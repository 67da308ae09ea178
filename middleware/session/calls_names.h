/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_names: the requests for names and files at the server, one function each.
 *
 * Each blocks until its reply is here, and gives 0 or -errno with calls_error (see
 * session/calls.h).  Paths are absolute, as the server resolves them.
 */
#ifndef SESSION_CALLS_NAMES_H
#define SESSION_CALLS_NAMES_H

#include "proto/message_change.h"
#include "proto/message_sum.h"
#include "session/calls_list.h"

/*
 * Looks at many names, whose requests need not wait for the replies to those before; of a symbolic
 * link itself, and what it says (NULL: not known).  `path` gives the name of each, which stays
 * until it is `done`, told of each in its order, with its error (then with NULL for both) and while
 * calls_error says what.  0 when all were tried; -errno: the session is lost, and the last that was
 * done lost it.
 */
struct calls_look {
	size_t count;
	const char *(*path)(void *ctx, size_t index);
	void (*done)(
		void *ctx, size_t index, int err, const struct message_attr *, const char *target);
	void *ctx;
};
int calls_look_all(struct calls *, const struct calls_look *);
/* Renames many, likewise and in their order. */
struct calls_renaming {
	size_t count;
	char *const *from, *const *to; /* paths */
	bool replace;
	void (*done)(void *ctx, size_t index, int err);
	void *ctx;
};
int calls_rename_all(struct calls *, const struct calls_renaming *);
/* As calls_ahead. */
void calls_stat_ahead(struct calls *, const char *path);
int calls_stat(struct calls *, const char *path, struct message_attr *);
int calls_mkdir(struct calls *, const char *path, bool parents);
int calls_rmdir(struct calls *, const char *path);
/*
 * Removes many files, whose requests need not wait for the replies to those before: `path` gives
 * the name of each, which stays until it is `done`, told of each in its order, with its error and
 * while calls_error says what.  0 when all were tried; -errno: the session is lost, and the last
 * that was done lost it.
 */
struct calls_removal {
	size_t count;
	const char *(*path)(void *ctx, size_t index);
	void (*done)(void *ctx, size_t index, int err);
	void *ctx;
};
int calls_remove_all(struct calls *, const struct calls_removal *);
/* A directory with all that is in it, a while at a time: `more` says that it is not all gone. */
int calls_remove_tree(struct calls *, const char *path, struct message_removed *);
int calls_rename(struct calls *, const char *from, const char *to, bool replace);
/* Modes and times of many names: 0 when all were tried, and `done` was called for each, with its
 * status; or -errno. */
int calls_changes(struct calls *, const struct message_set_attr *,
	void (*done)(void *ctx, unsigned index, uint16_t status), void *ctx);
int calls_make_link(struct calls *, const char *target, const char *path);
int calls_statfs(struct calls *, const char *path, struct message_statfs_reply *);
/* Sums of files, in the order in which they are found: `found` is called for each and gives 0, or
 * -errno for one that cannot be. */
int calls_sum(struct calls *, const struct message_sum_request *,
	int (*found)(void *ctx, const struct message_sum *), void *ctx);
/* After 0 the transfer of that number begins, and has its port: with transfer_send for a STORE and
 * a FEED, with transfer_receive for a RETRIEVE. */
int calls_store(struct calls *, unsigned transfer, const struct message_data_request *);
int calls_retrieve(struct calls *, unsigned transfer, const struct message_data_request *);
int calls_feed(struct calls *, unsigned transfer, const struct message_feed *);

#endif
