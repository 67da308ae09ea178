/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/ranges: a set of disjoint half-open byte ranges [from, to), merged when they touch.  Pure.
 *
 * A sink proves with it that every byte of a file landed exactly once.
 */
#ifndef BLOCK_RANGES_H
#define BLOCK_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ranges_span {
	uint64_t from, to;
};
struct ranges {
	struct ranges_span *spans; /* ascending, disjoint, not touching */
	size_t count, room;
	size_t limit; /* most spans kept; a peer that scatters more is refused */
};

void ranges_init(struct ranges *, size_t limit);
void ranges_fini(struct ranges *);
/*
 * Adds [from, to).  -EEXIST when any byte of it is in the set already, -EINVAL when from >= to,
 * -E2BIG when it would need more than `limit` spans, -ENOMEM; the set is then unchanged.
 */
int ranges_add(struct ranges *, uint64_t from, uint64_t to);
/* Whether the set is exactly [0, size); size 0: whether it is empty. */
bool ranges_complete(const struct ranges *, uint64_t size);
uint64_t ranges_bytes(const struct ranges *);

#endif
