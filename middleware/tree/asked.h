/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/asked: the names that a server was asked for, which are all that it may send.
 *
 * Each is one component, beneath the directory that files go to, or "": what goes there itself.
 * Filled first, then asked; one thread.
 */
#ifndef TREE_ASKED_H
#define TREE_ASKED_H

#include "proto/transfer.h"

struct asked_name {
	char *name;
	const char *path; /* at the server; the caller's */
	bool came;        /* it was announced, or something beneath it */
};

struct asked {     /* zeroed, but for `tree`: none */
	bool tree; /* what is beneath a name was asked for, too */
	struct asked_name *names;
	size_t count, room;
	bool sorted;
};

void asked_fini(struct asked *);
/* 0 or -ENOMEM. */
int asked_add(struct asked *, const char *name, size_t len, const char *path);
/* The name that a file which crosses belongs to; NULL: it was not asked for. */
struct asked_name *asked_find(struct asked *, struct wire_bytes file);
/* Whether it may come; a file that is no part of a tree comes once. */
bool asked_take(struct asked *, const struct transfer_file *);

#endif
