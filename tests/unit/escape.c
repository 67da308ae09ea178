/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/escape: hostile bytes on their way to a terminal and to JSON; and rftp/ui/text beneath.
 */
#include "tests/harness.h"

#include "rftp/ui/escape.h"

static bool shows(void (*escape)(struct text *, const char *, size_t), const char *s, size_t n,
	const char *wanted)
{
	struct text out = {0};
	bool same;

	escape(&out, s, n);
	same = !strcmp(text_str(&out), wanted);
	if (!same)
		printf("# %s, expected %s\n", text_str(&out), wanted);
	text_fini(&out);
	return same;
}
#define SHOWS(escape, s, wanted) CHECK(shows(escape, s, sizeof(s) - 1, wanted))

static void display(void)
{
	SHOWS(escape_display, "a b'\"\\", "a b'\"\\");
	SHOWS(escape_display, "a\nb\tc\rd", "a\\nb\\tc\\rd");
	SHOWS(escape_display, "\033[2J\x7f", "\\x1b[2J\\x7f");
	SHOWS(escape_display, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	SHOWS(escape_display, "\xc3", "\\xc3");
	SHOWS(escape_display, "\xc0\xaf\xed\xa0\x80\xf5", "\\xc0\\xaf\\xed\\xa0\\x80\\xf5");
	SHOWS(escape_display,
		"\xc2\x9b"
		"31m",
		"\\xc2\\x9b"
		"31m");
	SHOWS(escape_display,
		"a\xe2\x80\xae"
		"b",
		"a\\xe2\\x80\\xae"
		"b"); /* right-to-left override */
}

static void shell(void)
{
	SHOWS(escape_shell, "plain-name_1.txt", "plain-name_1.txt");
	SHOWS(escape_shell, "", "''");
	SHOWS(escape_shell, "-r", "'-r'");
	SHOWS(escape_shell, "a b", "'a b'");
	SHOWS(escape_shell, "it's", "$'it\\'s'");
	SHOWS(escape_shell, "a\n\xff\\", "$'a\\n\\xff\\\\'");
}

static void json(void)
{
	SHOWS(escape_json, "a\"b\\c/", "\"a\\\"b\\\\c/\"");
	SHOWS(escape_json, "\n\t\r\x01\x7f\0z", "\"\\n\\t\\r\\u0001\\u007f\\u0000z\"");
	SHOWS(escape_json, "\xc3\xa9\xff\xc3", "\"\xc3\xa9\\udcff\\udcc3\"");
	SHOWS(escape_json, "\xe2\x80\xa8", "\"\\u2028\"");
}

static void columns(void)
{
	CHECK_EQ(escape_columns("abc", 3), 3);
	CHECK_EQ(escape_columns("", 0), 0);
	CHECK_EQ(escape_columns("\xc3\xa9x", 3), 2);
}

static void growing(void)
{
	struct text t = {0};
	char *s;

	CHECK(!strcmp(text_str(&t), ""));
	for (int i = 0; i < 1000; i++)
		text_printf(&t, "%d,", i % 10);
	CHECK_EQ(t.len, 2000);
	text_cut(&t, 3);
	CHECK(!strcmp(text_str(&t), "0,1"));
	text_cut(&t, 10);
	CHECK_EQ(t.len, 3);
	s = text_take(&t);
	CHECK(s && !strcmp(s, "0,1"));
	free(s);
	CHECK_EQ(t.len, 0);
	s = text_take(&t);
	CHECK(s && !*s);
	free(s);
}

HARNESS_MAIN({"display", display}, {"shell", shell}, {"json", json}, {"columns", columns},
	{"growing", growing})
