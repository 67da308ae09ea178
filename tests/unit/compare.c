/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/compare.c: what a plan says of the room that it needs.
 */
#include "tests/harness.h"

#include "tree/compare.h"

#include <stdlib.h>
#include <string.h>

#define MIB (1u << 20)

static void add(struct compare_list *list, const char *name, uint64_t inode, uint64_t size)
{
	struct compare_entry e = {.name = strdup(name),
		.type = MESSAGE_FILE,
		.mode = 0644,
		.inode = inode,
		.size = size,
		.disk = size};

	if (!e.name || compare_list_append(list, &e))
		abort();
}

static uint64_t room_of(struct compare_list *from, struct compare_list *to)
{
	const struct compare_params params = {.level = COMPARE_MTIME};
	struct compare_plan plan = {0};
	uint64_t room;

	if (compare_links(from, to) || compare_make(from, to, &params, &plan))
		abort();
	room = compare_plan_room(&plan);
	compare_plan_fini(&plan);
	compare_list_fini(from);
	compare_list_fini(to);
	return room;
}

/* Names of one file take its room once, also where the others of it are no part of the tree. */
static void files_of_several_names(void)
{
	struct compare_list from = {0}, to = {0};

	add(&from, "a", 7, MIB);
	CHECK_EQ(room_of(&from, &to), MIB);
	add(&from, "a", 7, MIB);
	add(&from, "b", 7, MIB);
	add(&from, "c", 8, MIB);
	add(&from, "d", 0, MIB);
	CHECK_EQ(room_of(&from, &to), 3 * MIB);
	/* those that are one file there as well, and change */
	add(&from, "a", 7, MIB);
	add(&from, "b", 7, MIB);
	add(&to, "a", 4, MIB);
	add(&to, "b", 4, MIB);
	to.entries[0].mtime_s = to.entries[1].mtime_s = 1;
	CHECK_EQ(room_of(&from, &to), 0);
}

HARNESS_MAIN({"files_of_several_names", files_of_several_names})
