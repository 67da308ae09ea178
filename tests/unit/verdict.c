/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/verdict: the first failure is what is told, and the widest is what ends.
 */
#include "../harness.h"

#include "base/verdict.h"

static void the_first_wins(void)
{
	struct verdict v = {0};

	verdict_set(&v, VERDICT_FILE, 300, "file %u", 7);
	CHECK_EQ(v.scope, VERDICT_FILE);
	CHECK_EQ(v.status, 300);
	CHECK(!strcmp(v.text, "file 7"));
	verdict_set(&v, VERDICT_FILE, 301, "a later one");
	CHECK_EQ(v.status, 300);
	CHECK(!strcmp(v.text, "file 7"));
}

static void the_widest_ends(void)
{
	struct verdict v = {0};

	verdict_set(&v, VERDICT_TRANSFER, 108, "%s", "");
	verdict_set(&v, VERDICT_SESSION, 109, "the peer is gone");
	CHECK_EQ(v.scope, VERDICT_SESSION);
	CHECK_EQ(v.status, 108);
	CHECK(!v.text[0]); /* no text of the second stands beside the status of the first */
	verdict_set(&v, VERDICT_BLOCK, 304, "a block");
	CHECK_EQ(v.scope, VERDICT_SESSION);
}

static void one_joins_another(void)
{
	struct verdict v = {0}, none = {0}, block = {0};

	verdict_set(&block, VERDICT_BLOCK, 304, "100 %%s");
	verdict_join(&v, &none);
	CHECK_EQ(v.scope, VERDICT_NONE);
	verdict_join(&v, &block);
	CHECK_EQ(v.scope, VERDICT_BLOCK);
	CHECK_EQ(v.status, 304);
	CHECK(!strcmp(v.text, "100 %s"));
	verdict_clear(&v);
	CHECK(!v.status && !v.scope && !v.text[0]);
	verdict_set(&v, VERDICT_FILE, 305, "again");
	CHECK_EQ(v.status, 305);
}

static void a_note_is_no_failure(void)
{
	struct verdict v = {0}, other = {0};

	verdict_note(&v, "owner not kept, and more", 14);
	CHECK(!v.status && !v.scope);
	CHECK(!strcmp(v.text, "owner not kept"));
	verdict_join(&other, &v);
	CHECK(!other.text[0]);
	verdict_set(&v, VERDICT_FILE, 301, "disk");
	CHECK(!strcmp(v.text, "disk"));
	verdict_note(&v, "too late", 8);
	CHECK(!strcmp(v.text, "disk"));
}

static void a_long_text_is_cut(void)
{
	struct verdict v = {0};
	char longer[2 * VERDICT_TEXT];

	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	verdict_set(&v, VERDICT_FILE, 399, "%s", longer);
	CHECK_EQ(strlen(v.text), VERDICT_TEXT - 1);
}

HARNESS_MAIN({"the first wins", the_first_wins}, {"the widest ends", the_widest_ends},
	{"one joins another", one_joins_another}, {"a note is no failure", a_note_is_no_failure},
	{"a long text is cut", a_long_text_is_cut})
