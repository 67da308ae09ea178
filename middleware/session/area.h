/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/area: memory of a session that its client may write blocks into before a transfer has
 * begun: early data.
 *
 * Write-only, registered in the session's protection domain, and made and freed with the data
 * channels of a transfer.  It is fresh from the kernel each time, so that nothing of another
 * session is in it.  All areas of a process come out of one budget.
 */
#ifndef SESSION_AREA_H
#define SESSION_AREA_H

#include "block/arena.h"
#include "fabric/fabric.h"

#include <stdatomic.h>

/* Any thread. */
struct area_budget {
	_Atomic uint64_t most_bytes; /* 0: there are no areas */
	_Atomic uint64_t used_bytes;
};

struct area { /* zeroed: there is none */
	struct arena arena;
	struct fabric_mr *mr;
	struct area_budget *budget;
	atomic_bool made; /* any thread may ask */
};

/* `bytes`, if the budget has so many and they can be registered; else there is none: false. */
bool area_make(struct area *, struct fabric_pd *, struct area_budget *, uint32_t bytes);
/* No channel is connected that could reach it.  Takes a zeroed one, too. */
void area_free(struct area *);

#endif
