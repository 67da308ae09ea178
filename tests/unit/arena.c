/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/arena: block/arena.
 */
#include "block/arena.h"
#include "block/block.h"
#include "tests/harness.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every page takes a write, and reads as zero before. */
static bool usable(const struct arena *a)
{
	for (size_t at = 0; at < a->bytes; at += BLOCK_ALIGN) {
		if (a->base[at] != 0)
			return false;
		a->base[at] = 1;
	}
	return a->base[a->bytes - 1] == 0;
}

static void sizes_are_rounded_up_to_pages(void)
{
	static const size_t sizes[] = {1, 4095, 4096, 4097, 65536 + 1, (2u << 20) - 1, 2u << 20,
		(2u << 20) + 1, (5u << 20) + 12345};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct arena a;

		CHECK_EQ(arena_init(&a, sizes[i], false), 0);
		CHECK_EQ(a.bytes, (sizes[i] + page - 1) / page * page);
		CHECK_EQ((uintptr_t)a.base % BLOCK_ALIGN, 0);
		CHECK(!a.hugetlb);
		CHECK(usable(&a));
		arena_fini(&a);
		CHECK(!a.base && !a.bytes);
		arena_fini(&a);
	}
}

static void large_ones_begin_on_a_huge_page(void)
{
	struct arena a;

	CHECK_EQ(arena_init(&a, 6u << 20, false), 0);
	CHECK_EQ((uintptr_t)a.base % (2u << 20), 0);
	arena_fini(&a);
}

/* With or without reserved huge pages, memory is had. */
static void huge_pages_are_a_wish(void)
{
	struct arena a;

	CHECK_EQ(arena_init(&a, (3u << 20) + 1, true), 0);
	CHECK(a.bytes >= (3u << 20) + 1);
	CHECK(usable(&a));
	printf("# explicit huge pages: %s\n", a.hugetlb ? "yes" : "no");
	arena_fini(&a);
}

static void impossible_sizes_are_errors(void)
{
	struct arena a = {.bytes = 1};

	CHECK_EQ(arena_init(&a, 0, false), -EINVAL);
	CHECK(!a.base && !a.bytes);
	CHECK_EQ(arena_init(&a, SIZE_MAX, false), -ENOMEM);
	CHECK_EQ(arena_init(&a, SIZE_MAX, true), -ENOMEM);
	CHECK_EQ(arena_init(&a, SIZE_MAX / 2, true), -ENOMEM);
	CHECK(!a.base && !a.bytes);
	arena_fini(&a);
}

static void does_not_touch_its_pages(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 64u << 20;
	static unsigned char present[(64u << 20) / 4096];
	struct arena a;

	CHECK_EQ(arena_init(&a, bytes, false), 0);
	if (mincore(a.base, bytes, present) < 0) {
		arena_fini(&a);
		SKIP("no mincore here");
	}
	for (size_t i = 0; i < bytes / page; i++)
		CHECK(!(present[i] & 1));
	arena_fini(&a);
}

static void lockable_follows_the_limit(void)
{
	struct rlimit before, small;
	size_t unlimited, limited;

	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	unlimited = arena_lockable_bytes();
	if (before.rlim_cur == RLIM_INFINITY)
		CHECK(unlimited == SIZE_MAX);
	small = before;
	if (small.rlim_max < 65536)
		SKIP("RLIMIT_MEMLOCK is below 64 KiB");
	small.rlim_cur = 65536;
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &small), 0);
	limited = arena_lockable_bytes();
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
	CHECK(limited <= 65536 || limited == SIZE_MAX); /* a privileged process has no limit */
}

/* What the child below finds. */
enum finding { FOUND, NO_SETUP, NO_MLOCK, NOT_COUNTED, WRONG };

static enum finding lock_and_look(void)
{
	struct rlimit limit = {65536, 65536};
	size_t before, after;
	struct arena a;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0 || arena_init(&a, 16384, false))
		return NO_SETUP;
	/* a privileged process has no limit, so it gives its privileges up */
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return NO_SETUP;
	before = arena_lockable_bytes();
	if (mlock(a.base, 16384) < 0)
		return NO_MLOCK;
	after = arena_lockable_bytes();
	arena_fini(&a);
	if (after == before)
		return NOT_COUNTED;
	return before <= 65536 && before - after == 16384 ? FOUND : WRONG;
}

static void what_is_locked_is_taken_off(void)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		_exit(lock_and_look());
	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_SETUP)
		SKIP("RLIMIT_MEMLOCK or the user cannot be changed here");
	if (WEXITSTATUS(status) == NO_MLOCK)
		SKIP("mlock is not allowed here");
	if (WEXITSTATUS(status) == NOT_COUNTED)
		SKIP("mlock shows no effect here (sanitizers replace it)");
	CHECK_EQ(WEXITSTATUS(status), FOUND);
}

HARNESS_MAIN({"sizes_are_rounded_up_to_pages", sizes_are_rounded_up_to_pages},
	{"large_ones_begin_on_a_huge_page", large_ones_begin_on_a_huge_page},
	{"huge_pages_are_a_wish", huge_pages_are_a_wish},
	{"impossible_sizes_are_errors", impossible_sizes_are_errors},
	{"does_not_touch_its_pages", does_not_touch_its_pages},
	{"lockable_follows_the_limit", lockable_follows_the_limit},
	{"what_is_locked_is_taken_off", what_is_locked_is_taken_off})
