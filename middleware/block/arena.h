/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/arena: one aligned anonymous mapping that blocks are cut from.
 *
 * Asks for huge pages (MAP_HUGETLB when `huge` and the host has reserved some, else transparent
 * ones by madvise for sizes of 2 MiB and more); goes on without.  Does not touch the pages.
 */
#ifndef BLOCK_ARENA_H
#define BLOCK_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena {
	uint8_t *base;
	size_t bytes;
	bool hugetlb; /* the pages are explicit huge ones */
};

/* `bytes` is rounded up to whole pages.  0 or -ENOMEM, -EINVAL (0 bytes). */
int arena_init(struct arena *, size_t bytes, bool huge);
void arena_fini(struct arena *); /* takes a zeroed arena, too */

#endif
