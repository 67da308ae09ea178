/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_memory.h: protection domains and memory regions of the soft fabric.  Included by
 * soft*.c only.
 */
#ifndef FABRIC_SOFT_MEMORY_H
#define FABRIC_SOFT_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>

#include "fabric/fabric_impl.h"

#define SOFT_KEY_NONE 0u /* memory of the fabric itself; never a key */

struct soft_mr {
	struct fabric_mr base;
	struct soft_pd *pd;
	uint8_t *addr;
	size_t bytes;
	unsigned access;
	struct fabric_cq *watch; /* who is told of small WRITEs; or NULL */
};

struct soft_pd {
	struct fabric_pd base;
	atomic_uint refs;      /* the user's, one of each channel and mr */
	pthread_rwlock_t lock; /* read: while bytes move; write: to add or remove an mr */
	struct soft_mr **slots;
	uint32_t slot_count;
	uint32_t slot_hint; /* where to look for a free one */
};

enum soft_access {
	SOFT_ACCESS_OK,
	SOFT_ACCESS_KEY,
	SOFT_ACCESS_BOUNDS,
	SOFT_ACCESS_RIGHTS,
};

int soft_pd_new(struct fabric_chan *, struct fabric_pd **out);
void soft_pd_free(struct fabric_pd *);
void soft_pd_put(struct soft_pd *);
int soft_mr_new(
	struct fabric_pd *, void *addr, size_t bytes, unsigned access, struct fabric_mr **out);
void soft_mr_free(struct fabric_mr *);
int soft_mr_rekey(struct fabric_mr *);
int soft_mr_watch(struct fabric_mr *, struct fabric_cq *);
/* Who watches the memory of `key`, or NULL.  Under pd->lock. */
struct fabric_cq *soft_pd_watch(const struct soft_pd *, uint32_t key);
/* Whether [addr, addr + bytes) may be used by `key` with all of `access`.  Under pd->lock. */
enum soft_access soft_pd_check(
	const struct soft_pd *, uint32_t key, uint64_t addr, uint64_t bytes, unsigned access);

#endif
