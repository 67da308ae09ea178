/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_links: files of a transfer that have more names, so that the next one can be sent
 * as a hard link to the first.
 *
 * A file is remembered until its last name has come; of more than OUTGOING_LINKS_MAX at once the
 * others go as files of their own.
 */
#ifndef TREE_OUTGOING_LINKS_H
#define TREE_OUTGOING_LINKS_H

#include "proto/wire.h"

#include <sys/stat.h>

#define OUTGOING_LINKS_MAX (1u << 20)

struct outgoing_links;

int outgoing_links_new(struct outgoing_links **out); /* 0 or -ENOMEM */
void outgoing_links_free(struct outgoing_links *);

struct outgoing_first {
	uint32_t number;
	char *name; /* beneath the destination; the caller frees it */
};

/* A name of a file that has several.  1: it was seen under another one, *first; 0: it is the first,
 * and will have been `name` with this `number`; -ENOMEM; -ENOSPC: too many are remembered. */
int outgoing_links_meet(struct outgoing_links *, const struct stat *, uint32_t number,
	struct wire_bytes name, struct outgoing_first *first);

#endif
