/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_list: LIST, what is in directories at the server.
 *
 * 0 or -errno with calls_error, as in session/calls_names.
 */
#ifndef SESSION_CALLS_LIST_H
#define SESSION_CALLS_LIST_H

#include "session/calls.h"

struct calls_entry {
	struct message_attr attr;
	char *name;
	char *target; /* what a link says; NULL: not known, and of anything else */
};
struct calls_list {
	struct calls_entry *entries; /* sorted by name */
	size_t count, room;
	uint64_t bytes; /* that it holds, roughly */
};

/* As calls_ahead. */
void calls_list_ahead(struct calls *, const char *path);
/* After an error the list is empty. */
int calls_list(struct calls *, const char *path, struct calls_list *);
/*
 * Lists many directories, whose requests need not wait for the replies to those before.
 *
 * `next` gives the path of one more, which stays until it is done; NULL: there is none for now, and
 * it is asked again after each that is done.  `done` is told of each, in the order in which they
 * were given, with its error (then while calls_error says what, and with an empty list) or its
 * list, which it takes over.  0 when nothing is under way and there is no next one; -errno: the
 * session is lost, and the last that was done lost it.
 */
struct calls_listing {
	const char *(*next)(void *ctx);
	void (*done)(void *ctx, int err, struct calls_list *);
	void *ctx;
};
int calls_list_all(struct calls *, const struct calls_listing *);
void calls_list_free(struct calls_list *);

#endif
