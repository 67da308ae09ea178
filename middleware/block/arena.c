/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/arena: owns one mapping.
 */
#include "block/arena.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_HUGE_BYTES (2ul << 20)
#define ARENA_MAP_2MB (21 << 26) /* MAP_HUGE_2MB, which only linux/mman.h has */

static size_t arena_round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) & ~(unit - 1);
}

static void *arena_map(size_t bytes, int flags)
{
	void *at = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* A mapping that begins on a huge page, so that none of it is lost to transparent ones. */
static uint8_t *arena_map_aligned(size_t bytes)
{
	uint8_t *at = arena_map(bytes + ARENA_HUGE_BYTES, 0);
	size_t before, after;

	if (!at)
		return NULL;
	before = arena_round_up((uintptr_t)at, ARENA_HUGE_BYTES) - (uintptr_t)at;
	after = ARENA_HUGE_BYTES - before;
	if (before)
		munmap(at, before);
	if (after)
		munmap(at + before + bytes, after);
	/* a wish: a kernel without transparent huge pages says EINVAL */
	madvise(at + before, bytes, MADV_HUGEPAGE);
	return at + before;
}

int arena_init(struct arena *a, size_t bytes, bool huge)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	*a = (struct arena){0};
	if (!bytes)
		return -EINVAL;
	if (bytes > SIZE_MAX / 2) /* and no sum below overflows */
		return -ENOMEM;
	if (huge) {
		a->bytes = arena_round_up(bytes, ARENA_HUGE_BYTES);
		a->base = arena_map(a->bytes, MAP_HUGETLB | ARENA_MAP_2MB);
		a->hugetlb = a->base != NULL;
	}
	if (!a->base) {
		a->bytes = arena_round_up(bytes, page);
		a->base = a->bytes >= ARENA_HUGE_BYTES ? arena_map_aligned(a->bytes) : NULL;
	}
	if (!a->base)
		a->base = arena_map(a->bytes, 0);
	if (!a->base) {
		*a = (struct arena){0};
		return -ENOMEM;
	}
	return 0;
}

void arena_fini(struct arena *a)
{
	if (a->base)
		munmap(a->base, a->bytes);
	*a = (struct arena){0};
}
