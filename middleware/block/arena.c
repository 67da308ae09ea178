/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/arena: owns one mapping.
 */
#include "block/arena.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_HUGE_BYTES (2ul << 20)
#define ARENA_MAP_2MB (21 << 26) /* MAP_HUGE_2MB, which only linux/mman.h has */

/* the inode of the first user namespace (linux/proc_ns.h) */
#define ARENA_INIT_USER_NS 0xeffffffdu
#define ARENA_CAP_IPC_LOCK 14

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

/*
 * What the kernel counts against the limit: locked pages, and those pinned for RDMA, which it
 * counts apart but against the same limit; together they are the careful answer.
 */
static size_t arena_locked_bytes(bool *privileged)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kib, caps;
	size_t bytes = 0;
	char line[256];

	*privileged = false;
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "VmLck: %llu kB", &kib) == 1 ||
			sscanf(line, "VmPin: %llu kB", &kib) == 1)
			bytes += (size_t)kib << 10;
		else if (sscanf(line, "CapEff: %llx", &caps) == 1)
			*privileged = caps >> ARENA_CAP_IPC_LOCK & 1;
	}
	fclose(f);
	return bytes;
}

size_t arena_lockable_bytes(void)
{
	struct rlimit limit;
	struct stat ns;
	bool privileged;
	size_t locked;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
		limit.rlim_cur >= SIZE_MAX)
		return SIZE_MAX;
	locked = arena_locked_bytes(&privileged);
	/* The kernel lets CAP_IPC_LOCK pass, but only that of the first user namespace. */
	if (privileged && stat("/proc/self/ns/user", &ns) == 0 && ns.st_ino == ARENA_INIT_USER_NS)
		return SIZE_MAX;
	return locked < limit.rlim_cur ? (size_t)limit.rlim_cur - locked : 0;
}
