/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/selection: the order of names, and the directories on the way to them.
 */
#include "tests/harness.h"

#include "tree/selection.h"

#include <stdlib.h>

/* All steps as one text: +directory, name, -directory. */
static const char *steps(const char *const *names)
{
	static char out[1000];
	struct selection s = {0};
	enum selection_step step;
	const char *name;

	for (; *names; names++)
		if (selection_add(&s, *names, strlen(*names)))
			return "no memory";
	*out = '\0';
	if (selection_sort(&s))
		return "no memory";
	while ((step = selection_next(&s, &name)) != SELECTION_END) {
		strcat(out, step == SELECTION_ENTER ? " +" : step == SELECTION_LEAVE ? " -" : " ");
		strcat(out, name);
	}
	selection_fini(&s);
	return out;
}
#define NAMES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void order(void)
{
	CHECK(selection_order("a", "a") == 0);
	CHECK(selection_order("a", "b") < 0 && selection_order("b", "a") > 0);
	CHECK(selection_order("a", "a/x") < 0 && selection_order("a/x", "a-b") < 0);
	CHECK(selection_order("a-b", "a.c") < 0 && selection_order("a/z", "a\x01") < 0);
	CHECK(selection_order("a\xff", "b") < 0);
}

static void way(void)
{
	CHECK(!strcmp(steps((const char *const[]){NULL}), ""));
	CHECK(!strcmp(steps(NAMES("b", "a")), " a b"));
	CHECK(!strcmp(steps(NAMES("a/b/c")), " +a +a/b a/b/c -a/b -a"));
	CHECK(!strcmp(
		steps(NAMES("a/b/c", "a/b/d", "a/x", "y")), " +a +a/b a/b/c a/b/d -a/b a/x -a y"));
	CHECK(!strcmp(
		steps(NAMES("a-b/x", "a/x", "ab/x")), " +a a/x -a +a-b a-b/x -a-b +ab ab/x -ab"));
}

static void directories(void)
{
	CHECK(!strcmp(steps(NAMES("a/")), " +a -a"));
	CHECK(!strcmp(steps(NAMES("a/b/", "a/c")), " +a +a/b -a/b a/c -a"));
	CHECK(!strcmp(steps(NAMES("a/", "a/b", "b/")), " +a a/b -a +b -b"));
	CHECK(!strcmp(steps(NAMES("a/", "a")), " a"));
}

static bool last(const char *const *names)
{
	struct selection s = {0};
	const char *name;
	bool is;

	for (; *names; names++)
		if (selection_add(&s, *names, strlen(*names)))
			abort();
	if (selection_sort(&s) || selection_next(&s, &name) != SELECTION_ENTER)
		abort();
	is = selection_is_last(&s);
	selection_fini(&s);
	return is;
}

static void nothing_in_it(void)
{
	CHECK(last(NAMES("a/")));
	CHECK(last(NAMES("a/", "ab")));
	CHECK(!last(NAMES("a/", "a/b")));
	CHECK(!last(NAMES("a/b")));
	CHECK(!last(NAMES("a/b/")));
}

static void once(void)
{
	CHECK(!strcmp(steps(NAMES("a", "a", "b", "a")), " a b"));
	CHECK(!strcmp(steps(NAMES("a", "a/b", "a/b/c", "ab")), " a ab"));
}

HARNESS_MAIN({"order", order}, {"way", way}, {"directories", directories},
	{"nothing_in_it", nothing_in_it}, {"once", once})
