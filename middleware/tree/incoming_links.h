/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_links: which file of a transfer became which file of the disk, of those that hard
 * links may follow to: a link is made to what arrived, never to something else of that name.
 *
 * Holds INCOMING_LINKS_MAX of them; a link to one more is refused.  One thread.
 */
#ifndef TREE_INCOMING_LINKS_H
#define TREE_INCOMING_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define INCOMING_LINKS_MAX (1u << 20)

struct incoming_landed {
	uint32_t number; /* in the transfer */
	dev_t dev;
	ino_t ino;
};

struct incoming_links {                /* zeroed: none */
	struct incoming_landed *slots; /* by number, in open addressing; number 0: empty */
	size_t count, room;            /* room: a power of two */
};

void incoming_links_fini(struct incoming_links *);
/* 0, -ENOMEM, or -ENOSPC: it holds as many as it may. */
int incoming_links_add(struct incoming_links *, const struct incoming_landed *);
/* NULL: no file of that number landed. */
const struct incoming_landed *incoming_links_find(const struct incoming_links *, uint32_t number);

#endif
