/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/arena: block/arena.
 */
#include "block/arena.h"
#include "block/block.h"
#include "tests/harness.h"

#include <sys/mman.h>
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

HARNESS_MAIN({"sizes_are_rounded_up_to_pages", sizes_are_rounded_up_to_pages},
	{"large_ones_begin_on_a_huge_page", large_ones_begin_on_a_huge_page},
	{"huge_pages_are_a_wish", huge_pages_are_a_wish},
	{"impossible_sizes_are_errors", impossible_sizes_are_errors},
	{"does_not_touch_its_pages", does_not_touch_its_pages})
