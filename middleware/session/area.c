/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/area: see area.h.
 */
#include "session/area.h"

#include "base/log.h"

#include <string.h>

static bool take(struct area_budget *budget, uint64_t bytes)
{
	uint64_t used = atomic_load(&budget->used_bytes);

	do {
		if (used + bytes > atomic_load(&budget->most_bytes))
			return false;
	} while (!atomic_compare_exchange_weak(&budget->used_bytes, &used, used + bytes));
	return true;
}

bool area_make(struct area *a, struct fabric_pd *pd, struct area_budget *budget, uint32_t bytes)
{
	int err;

	if (!budget || !bytes || !take(budget, bytes))
		return false;
	a->budget = budget;
	err = arena_init(&a->arena, bytes, false);
	if (!err)
		err = fabric_mr_new(pd, a->arena.base, bytes, FABRIC_REMOTE_WRITE, &a->mr);
	atomic_store(&a->made, !err);
	if (!err)
		return true;
	log_debug("no area for early data: %s", strerror(-err));
	arena_fini(&a->arena);
	atomic_fetch_sub(&budget->used_bytes, bytes);
	a->mr = NULL;
	return false;
}

void area_free(struct area *a)
{
	if (!a->mr)
		return;
	fabric_mr_free(a->mr);
	a->mr = NULL;
	atomic_fetch_sub(&a->budget->used_bytes, a->arena.bytes);
	arena_fini(&a->arena);
	atomic_store(&a->made, false);
}
