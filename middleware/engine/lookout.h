/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/lookout: when to look next for what nobody tells of: bytes that a peer writes, or that we
 * read at a peer's.  Pure.
 *
 * While things come quickly it is at once; then it is after a part of the time that was waited
 * already, or of the time between them lately.
 */
#ifndef ENGINE_LOOKOUT_H
#define ENGINE_LOOKOUT_H

#include <stdbool.h>
#include <stdint.h>

struct lookout {
	uint64_t active_ns; /* something came, or was foretold */
	uint64_t gap_ns;    /* between those that came lately */
	bool watched;       /* the fabric wakes us: to look is a precaution */
};

void lookout_init(struct lookout *, bool watched, uint64_t now_ns);
/* `count` of them came since the last time, which is not 0. */
void lookout_came(struct lookout *, uint32_t count, uint64_t now_ns);
/* Something foretells that one will come. */
void lookout_foretold(struct lookout *, uint64_t now_ns);
/* When to look again. */
uint64_t lookout_next_ns(const struct lookout *, uint64_t now_ns);

#endif
