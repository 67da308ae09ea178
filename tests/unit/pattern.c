/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/pattern: what patterns match; against fnmatch(3) where they mean the same; and that none is
 * slow.
 */
#include "tests/harness.h"

#include "tree/pattern.h"

#include <fnmatch.h>

static bool matches(const char *pattern, const char *text)
{
	struct pattern *p;
	bool yes;

	if (pattern_new(pattern, strlen(pattern), &p))
		return false;
	yes = pattern_matches(p, text, strlen(text));
	pattern_free(p);
	return yes;
}

static void plain(void)
{
	CHECK(matches("", "") && !matches("", "a"));
	CHECK(matches("abc", "abc") && !matches("abc", "abcd") && !matches("abc", "ab"));
	CHECK(matches("a\\*c", "a*c") && !matches("a\\*c", "abc"));
	CHECK(matches("a\\", "a\\"));
	CHECK(matches("\xff\x01", "\xff\x01"));
}

static void stars(void)
{
	CHECK(matches("*", "") && matches("*", "abc") && !matches("*", "a/b"));
	CHECK(matches("**", "a/b/c") && matches("***", "a/b"));
	CHECK(matches("a*", "a") && matches("a*", "abc") && !matches("a*", "ba"));
	CHECK(matches("*.o", ".o") && matches("*.o", "x.o") && !matches("*.o", "x.oo"));
	CHECK(matches("a*b*c", "aXbYc") && matches("a*b*c", "abbcc") && !matches("a*b*c", "acb"));
	CHECK(matches("a/**/b", "a/x/y/b") && !matches("a/*/b", "a/x/y/b"));
	CHECK(matches("aba*aba", "abaaba") && !matches("aba*aba", "aba"));
	CHECK(matches("?", "x") && !matches("?", "/") && !matches("?", ""));
}

static void sets(void)
{
	CHECK(matches("[abc]", "b") && !matches("[abc]", "d") && !matches("[abc]", ""));
	CHECK(matches("[a-c]x", "cx") && matches("[!a-c]", "d") && !matches("[^a-c]", "a"));
	CHECK(!matches("[!a]", "/") && !matches("[+-0]", "/"));
	CHECK(matches("[]]", "]") && matches("[!]]", "a") && matches("[a-]", "-"));
	CHECK(matches("[[:digit:]]", "7") && !matches("[[:digit:]]", "x"));
	CHECK(matches("[[:alpha:]_]", "_") && matches("[[:nothing:]x]", "n]") == false);
	CHECK(matches("[a\\]b]", "]"));
	CHECK(matches("[", "[") && matches("[a", "[a") && matches("a[", "a["));
	CHECK(matches("[\xc3]\xa9", "\xc3\xa9"));
}

static void hints(void)
{
	struct pattern *p;

	CHECK(!pattern_new("a\\*b", 4, &p));
	CHECK(pattern_is_plain(p));
	pattern_free(p);
	CHECK(!pattern_new(".*", 2, &p));
	CHECK(!pattern_is_plain(p));
	pattern_free(p);
	CHECK_EQ(pattern_new("", PATTERN_MAX + 1, &p), -ENAMETOOLONG);
}

/* Up to `most` of these characters. */
static void random_of(uint64_t *seed, const char *alphabet, size_t most, char *out)
{
	size_t n = harness_random(seed) % (most + 1), letters = strlen(alphabet);

	for (size_t i = 0; i < n; i++)
		out[i] = alphabet[harness_random(seed) % letters];
	out[n] = '\0';
}

/* Without "**" and without what fnmatch has and we have not, both say the same. */
static void as_fnmatch(void)
{
	uint64_t seed = harness_seed();

	for (unsigned i = 0; i < 300000; i++) {
		char pattern[9], text[9];

		random_of(&seed, "ab/*?[]!-\\", sizeof pattern - 1, pattern);
		random_of(&seed, "ab/]-", sizeof text - 1, text);
		/* sets with '/', escapes at the end and in sets are anybody's reading */
		if (strstr(pattern, "**") || strchr(pattern, '\\') ||
			(strchr(pattern, '[') && strchr(pattern, '/')))
			continue;
		if (matches(pattern, text) != !fnmatch(pattern, text, FNM_PATHNAME))
			printf("# pattern %s text %s\n", pattern, text);
		CHECK(matches(pattern, text) == !fnmatch(pattern, text, FNM_PATHNAME));
	}
}

static bool matches_end(const char *pattern, const char *text)
{
	struct pattern *p;
	bool yes;

	if (pattern_new(pattern, strlen(pattern), &p))
		return false;
	yes = pattern_matches_end(p, text, strlen(text));
	pattern_free(p);
	return yes;
}

/* Each place where it could begin, one after the other. */
static bool matches_from_any(const char *pattern, const char *text)
{
	while (!matches(pattern, text)) {
		text = strchr(text, '/');
		if (!text++)
			return false;
	}
	return true;
}

static void ends(void)
{
	uint64_t seed = harness_seed();

	CHECK(matches_end("b", "a/b") && !matches_end("b", "ab") && matches_end("a/b", "a/b"));
	CHECK(matches_end("", "a/") && matches_end("", "") && !matches_end("", "a"));
	CHECK(matches_end("b*c", "b/bc") && !matches_end("b*c", "b/c"));
	for (unsigned i = 0; i < 300000; i++) {
		char pattern[9], text[12];

		random_of(&seed, "aab//**?[]!\\", sizeof pattern - 1, pattern);
		random_of(&seed, "ab/", sizeof text - 1, text);
		if (matches_end(pattern, text) != matches_from_any(pattern, text))
			printf("# pattern %s text %s\n", pattern, text);
		CHECK(matches_end(pattern, text) == matches_from_any(pattern, text));
	}
}

/* Whether neither takes long, and says no. */
static bool soon_no(
	bool (*match)(const char *, const char *), const char *pattern, const char *text)
{
	struct timespec from, to;
	bool yes;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	yes = match(pattern, text);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	printf("# %jd ms\n", (intmax_t)((to.tv_sec - from.tv_sec) * 1000 +
					(to.tv_nsec - from.tv_nsec) / 1000000));
	return !yes && to.tv_sec - from.tv_sec < 30;
}

/* What takes others time without end: the same as any other of its length. */
static void none_is_slow(void)
{
	char pattern[PATTERN_MAX + 1], text[65536];

	for (size_t i = 0; i < PATTERN_MAX; i += 2)
		memcpy(pattern + i, "a*", 2);
	memcpy(pattern + PATTERN_MAX - 2, "b?", 2);
	pattern[PATTERN_MAX] = '\0';
	memset(text, 'a', 4095);
	text[4095] = '\0';
	CHECK(soon_no(matches, pattern, text));
	/* as long as a name may be, with as many places to begin at */
	for (size_t i = 0; i < PATTERN_MAX - 4; i += 3)
		memcpy(pattern + i, "**/", 3);
	memcpy(pattern + PATTERN_MAX - 4, "[b]", 4);
	memset(text, '/', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	CHECK(soon_no(matches_end, pattern, text));
}

HARNESS_MAIN({"plain", plain}, {"stars", stars}, {"sets", sets}, {"hints", hints},
	{"as_fnmatch", as_fnmatch}, {"ends", ends}, {"none_is_slow", none_is_slow})
