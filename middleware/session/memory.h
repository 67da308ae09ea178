/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/memory: the memory that a session's blocks are in: one arena, of which each transfer
 * takes the slice that it needs, for what it needs it, and takes the peer's access away when it
 * ends.
 *
 * Arena and registration outlive a transfer: the next one that needs the same finds it as it is,
 * and where the last one gave a peer access it has a new key by then (fabric_mr_rekey; a fabric
 * that cannot do so registers anew).  Between transfers the kernel may take back pages that no
 * adapter holds when it is short of memory, and has reserved huge pages back at once.  The arena is
 * not shared among sessions: what is left in it is the same user's.
 *
 * While a transfer runs the sink's one key is for the whole slice: the peer can write into any
 * block of it, granted or not.  A block is verified where it landed and written to the file from
 * there, so a source that changes it in between damages the file that it sends, which no digest
 * tells; nobody else's.
 *
 * Knows no blocks, and no transfers but by turns: one slice at a time.
 */
#ifndef SESSION_MEMORY_H
#define SESSION_MEMORY_H

#include "block/arena.h"
#include "fabric/fabric.h"

struct memory { /* zeroed: empty */
	struct arena arena;
	struct fabric_mr *mr; /* of the arena's first `bytes`, with `access`; NULL: none */
	size_t bytes;
	unsigned access;
	bool taken;
};

/*
 * `bytes` at *base, present and registered in `pd`, which is the same for all of a session's
 * transfers, with FABRIC_* access.  Contents are undefined.  -ENOMEM: cannot be had, or not be
 * locked.
 */
int memory_take(
	struct memory *, struct fabric_pd *pd, size_t bytes, unsigned access, uint8_t **base);
/* No peer reaches it any more; it is still there. */
void memory_revoke(struct memory *);
/* The slice is not needed any more. */
void memory_give(struct memory *);
/* Pages that an adapter holds go back to the kernel's care; between transfers. */
void memory_unregister(struct memory *);
/* And neither are arena and registration. */
void memory_free(struct memory *);

#endif
