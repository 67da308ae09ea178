/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/slots: of a source, how many bytes lie in which slot of the sink: those that the sink has
 * not given back, and so, as far as this side knows, not verified.
 */
#ifndef ENGINE_SLOTS_H
#define ENGINE_SLOTS_H

#include <stdint.h>

struct slots {
	uint32_t *bytes;     /* by slot; 0: empty */
	uint64_t full_bytes; /* in all of them */
};

/* 0 or -ENOMEM. */
int slots_init(struct slots *, uint32_t count);
void slots_fini(struct slots *);

/* A block of so many bytes goes there; or the sink says that the slot is empty. */
static inline void slots_fill(struct slots *s, uint32_t slot, uint32_t bytes)
{
	s->full_bytes += (uint64_t)bytes - s->bytes[slot];
	s->bytes[slot] = bytes;
}

static inline void slots_empty(struct slots *s, uint32_t slot)
{
	slots_fill(s, slot, 0);
}

#endif
