/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/memory: see memory.h.
 */
#include "session/memory.h"

#include "base/log.h"

#include <assert.h>
#include <sys/mman.h>

/* Pages at once, by the fastest way there is: a page fault in the middle of a copy costs more, and
 * a memory device pins them anyway.  Old kernels fault them in one by one. */
static bool populate(struct memory *m, size_t bytes)
{
	return !madvise(m->arena.base, bytes, MADV_POPULATE_WRITE);
}

void memory_unregister(struct memory *m)
{
	fabric_mr_free(m->mr);
	m->mr = NULL;
}

static int make_room(struct memory *m, size_t bytes)
{
	int err;

	if (m->arena.bytes >= bytes) {
		populate(m, bytes);
		return 0;
	}
	arena_fini(&m->arena);
	err = arena_init(&m->arena, bytes, true);
	if (!err && !populate(m, bytes) && m->arena.hugetlb) {
		/* There are huge pages, but not for this control group: touching them would be our
		 * end. */
		arena_fini(&m->arena);
		err = arena_init(&m->arena, bytes, false);
		if (!err)
			populate(m, bytes);
	}
	if (!err)
		log_debug("memory: %zu bytes%s", m->arena.bytes,
			m->arena.hugetlb ? " in huge pages" : "");
	return err;
}

int memory_take(
	struct memory *m, struct fabric_pd *pd, size_t bytes, unsigned access, uint8_t **base)
{
	int err = 0;

	assert(!m->taken);
	if (m->mr && m->access == access && m->bytes >= bytes) {
		populate(m, m->bytes);
	} else {
		memory_unregister(m);
		err = make_room(m, bytes);
		if (!err)
			err = fabric_mr_new(pd, m->arena.base, bytes, access, &m->mr);
		if (err) {
			arena_fini(&m->arena); /* a smaller one may do */
			return err;
		}
		m->bytes = bytes;
		m->access = access;
		log_debug("memory: %zu bytes registered", bytes);
	}
	m->taken = true;
	*base = m->arena.base;
	return 0;
}

void memory_revoke(struct memory *m)
{
	if (m->mr && m->access != FABRIC_LOCAL && fabric_mr_rekey(m->mr))
		memory_unregister(m);
}

void memory_give(struct memory *m)
{
	memory_revoke(m);
	m->taken = false;
	if (m->arena.hugetlb)
		memory_free(m); /* the kernel cannot take these back */
	else if (m->arena.base)
		madvise(m->arena.base, m->arena.bytes, MADV_FREE);
}

void memory_free(struct memory *m)
{
	memory_unregister(m);
	arena_fini(&m->arena);
	m->taken = false;
}
