/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/remote_path: remote paths as text.
 */
#include "tests/harness.h"

#include "rftp/remote/remote_path.h"

static bool is(char *got, const char *wanted)
{
	bool same = got && !strcmp(got, wanted);

	if (!same)
		printf("# %s, expected %s\n", got ? got : "NULL", wanted);
	free(got);
	return same;
}

static void join(void)
{
	CHECK(is(remote_join("/", "a"), "/a"));
	CHECK(is(remote_join("/d", "a/b/"), "/d/a/b/"));
	CHECK(is(remote_join("/d/", "a"), "/d/a"));
	CHECK(is(remote_join("/d", "/a"), "/a"));
	CHECK(is(remote_join("/d", ""), "/d"));
	CHECK(is(remote_join("/d", ".."), "/d/.."));
	CHECK(is(remote_join_pattern("/d[1]", "*"), "/d\\[1\\]/*"));
	CHECK(is(remote_join_pattern("/d*", "/x"), "/x"));
}

static void normalize(void)
{
	static const char *const pairs[][2] = {{"/", "/"}, {"//", "/"}, {"/a", "/a"}, {"/a/", "/a"},
		{"/a/./b//c", "/a/b/c"}, {"/a/..", "/"}, {"/a/../..", "/"}, {"/../x", "/x"},
		{"/a/b/../../c/d/..", "/c"}, {"/...", "/..."}, {"/a/.b/..c", "/a/.b/..c"}};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		CHECK(is(remote_normalize(strdup(pairs[i][0])), pairs[i][1]));
}

static bool last_is(const char *path, const char *wanted)
{
	size_t len;
	const char *last = remote_last(path, &len);

	return len == strlen(wanted) && !memcmp(last, wanted, len);
}

static void last(void)
{
	CHECK(last_is("/a/b", "b"));
	CHECK(last_is("/a/b//", "b"));
	CHECK(last_is("b", "b"));
	CHECK(last_is("/", ""));
	CHECK(last_is("", ""));
	CHECK(last_is("a/..", ".."));
}

static void magic(void)
{
	CHECK(remote_has_magic("/a*"));
	CHECK(remote_has_magic("a?"));
	CHECK(remote_has_magic("[x]"));
	CHECK(!remote_has_magic("/a\\*"));
	CHECK(!remote_has_magic("plain"));
	CHECK(!remote_has_magic("\\"));
}

/* Without special characters nothing is asked of a server. */
static void plain_pattern(void)
{
	char **paths;
	size_t count;

	CHECK_EQ(remote_glob(NULL, "/a\\*\\\\b", &paths, &count), 0);
	CHECK_EQ(count, 1);
	CHECK(!strcmp(paths[0], "/a*\\b"));
	remote_glob_free(paths, count);
}

HARNESS_MAIN({"join", join}, {"normalize", normalize}, {"last", last}, {"magic", magic},
	{"plain_pattern", plain_pattern})
