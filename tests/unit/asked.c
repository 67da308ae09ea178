/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of tree/asked: which names a server may send.
 */
#include "tree/asked.h"

#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

static struct wire_bytes bytes(const char *text)
{
	return (struct wire_bytes){(const uint8_t *)text, strlen(text)};
}

static bool take(struct asked *a, enum transfer_file_kind kind, const char *name)
{
	const struct transfer_file file = {.kind = (uint8_t)kind, .name = bytes(name)};

	return asked_take(a, &file);
}

static void add(struct asked *a, const char *name)
{
	CHECK_EQ(asked_add(a, name, strlen(name), name), 0);
}

static void each_file_comes_once(void)
{
	struct asked a = {0};
	char name[8];

	CHECK(!take(&a, TRANSFER_FILE_REGULAR, "0"));
	for (unsigned i = 0; i < 100; i++) { /* not in order */
		snprintf(name, sizeof name, "%u", i * 37 % 100);
		add(&a, name);
	}
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "%u", i);
		CHECK(!take(&a, TRANSFER_FILE_DIRECTORY, name));
		CHECK(take(&a, TRANSFER_FILE_REGULAR, name));
		CHECK(!take(&a, TRANSFER_FILE_REGULAR, name));
	}
	CHECK(!take(&a, TRANSFER_FILE_REGULAR, "100"));
	CHECK(!take(&a, TRANSFER_FILE_REGULAR, "9/9"));
	CHECK(!take(&a, TRANSFER_FILE_REGULAR, ""));
	for (size_t i = 0; i < a.count; i++)
		CHECK(a.names[i].came);
	asked_fini(&a);
}

static void trees_bring_what_is_beneath_them(void)
{
	struct asked a = {.tree = true};

	add(&a, "b");
	add(&a, "a");
	add(&a, "ab");
	CHECK(take(&a, TRANSFER_FILE_DIRECTORY, "a"));
	CHECK(take(&a, TRANSFER_FILE_REGULAR, "a/x/y"));
	CHECK(take(&a, TRANSFER_FILE_LINK, "ab/x"));
	CHECK(!take(&a, TRANSFER_FILE_REGULAR, "abc"));
	CHECK(!take(&a, TRANSFER_FILE_REGULAR, "c/a"));
	CHECK(!take(&a, TRANSFER_FILE_DIRECTORY, ""));
	CHECK(!strcmp(asked_find(&a, bytes("ab/x"))->path, "ab"));
	CHECK(!asked_find(&a, bytes("b"))->came);
	asked_fini(&a);
}

static void the_top_itself(void)
{
	struct asked a = {0};

	add(&a, "");
	CHECK(!take(&a, TRANSFER_FILE_REGULAR, "x"));
	CHECK(take(&a, TRANSFER_FILE_REGULAR, ""));
	CHECK(!take(&a, TRANSFER_FILE_REGULAR, ""));
	asked_fini(&a);
	a.tree = true;
	add(&a, "");
	CHECK(take(&a, TRANSFER_FILE_DIRECTORY, ""));
	CHECK(take(&a, TRANSFER_FILE_REGULAR, "x/y"));
	asked_fini(&a);
}

HARNESS_MAIN({"each_file_comes_once", each_file_comes_once},
	{"trees_bring_what_is_beneath_them", trees_bring_what_is_beneath_them},
	{"the_top_itself", the_top_itself})
