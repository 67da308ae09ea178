/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/filter: which names rules leave out, as rsync's do.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/filter.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char why[FILTER_WHY_MAX];

/* Whether `name` is left out by these rules; ended by NULL. */
static bool excludes(const char *name, bool directory, const char *const *rules)
{
	struct filter f = {0};
	bool yes;

	for (; *rules; rules++)
		if (filter_add(&f, *rules, why)) {
			printf("# %s: %s\n", *rules, why);
			filter_fini(&f);
			return false;
		}
	yes = filter_excludes(&f, name, directory);
	filter_fini(&f);
	return yes;
}
#define RULES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void last_component(void)
{
	CHECK(excludes("a.o", false, RULES("- *.o")));
	CHECK(excludes("x/y/a.o", false, RULES("- *.o")));
	CHECK(excludes("x/y.o", true, RULES("- *.o")));
	CHECK(!excludes("x.o/a.c", false, RULES("- *.o")));
	CHECK(!excludes("a.c", false, RULES("- *.o")));
	CHECK(excludes(".git", true, RULES("exclude .git")));
}

static void anchored(void)
{
	CHECK(excludes("build", true, RULES("- /build")));
	CHECK(!excludes("x/build", true, RULES("- /build")));
	CHECK(excludes("a/b", false, RULES("- /a/*")));
	CHECK(!excludes("a/b/c", false, RULES("- /a/*")));
	CHECK(excludes("a/b/c", false, RULES("- /a/**")));
}

static void paths(void)
{
	CHECK(excludes("x/foo/bar", false, RULES("- foo/bar")));
	CHECK(excludes("foo/bar", false, RULES("- foo/bar")));
	CHECK(!excludes("xfoo/bar", false, RULES("- foo/bar")));
	CHECK(excludes("p/foo/x/y/bar", false, RULES("- foo/**/bar")));
	CHECK(excludes("a/b/cd", false, RULES("- a**d")));
}

static void directories(void)
{
	CHECK(excludes("x/tmp", true, RULES("- tmp/")));
	CHECK(!excludes("x/tmp", false, RULES("- tmp/")));
	CHECK(excludes("x/tmp", true, RULES("- tmp/***")));
	CHECK(!excludes("x/tmp", false, RULES("- tmp/***")));
	CHECK(excludes("x/tmp/a/b", false, RULES("- tmp/***")));
	CHECK(excludes("tmp/a", false, RULES("- /tmp/***")));
	CHECK(!excludes("x/tmp/a", false, RULES("- /tmp/***")));
}

static void first_one_decides(void)
{
	CHECK(!excludes("keep.o", false, RULES("+ keep.o", "- *.o")));
	CHECK(excludes("other.o", false, RULES("+ keep.o", "- *.o")));
	CHECK(excludes("keep.o", false, RULES("- *.o", "+ keep.o")));
	CHECK(!excludes("a/b", true, RULES("+ */", "+ *.c", "- *")));
	CHECK(!excludes("a/b/x.c", false, RULES("+ */", "+ *.c", "- *")));
	CHECK(excludes("a/b/x.h", false, RULES("+ */", "+ *.c", "- *")));
	CHECK(!excludes("x.o", false, RULES("- *.o", "!")));
}

static void what_is_wrong(void)
{
	struct filter f = {0};

	CHECK_EQ(filter_add(&f, "", why), -EINVAL);
	CHECK_EQ(filter_add(&f, "*.o", why), -EINVAL);
	CHECK(strstr(why, "*.o"));
	CHECK_EQ(filter_add(&f, "- ", why), -EINVAL);
	CHECK_EQ(filter_add(&f, "-", why), -EINVAL);
	CHECK_EQ(filter_add(&f, "- /", why), -EINVAL);
	CHECK_EQ(filter_add(&f, "! x", why), -EINVAL);
	CHECK_EQ(filter_add(&f, ".", why), -EINVAL);
	CHECK_EQ(filter_add(&f, ". /nonexistent/rules", why), -ENOENT);
	CHECK(strstr(why, "/nonexistent/rules"));
	CHECK_EQ(f.count, 0);
	filter_fini(&f);
}

static void files(void)
{
	struct filter f = {0};
	const char *path = scratch_path(scratch_dir(), "rules");
	char rule[4096];
	FILE *file;

	snprintf(rule, sizeof rule, ". %s", path);
	file = fopen(path, "w");
	CHECK(file);
	fputs("# a comment\n\n- *.o\r\n; another\n+ x\n", file);
	fclose(file);
	CHECK_EQ(filter_add(&f, rule, why), 0);
	CHECK_EQ(f.count, 2);
	CHECK(filter_excludes(&f, "a.o", false));
	filter_fini(&f);
	snprintf(rule, sizeof rule, ".- %s", path);
	CHECK(scratch_write(path, "*.o\n+ *.c\n"));
	CHECK_EQ(filter_add(&f, rule, why), 0);
	CHECK_EQ(f.count, 2);
	CHECK(filter_excludes(&f, "a.o", false) && !filter_excludes(&f, "a.c", false));
	snprintf(rule, sizeof rule, ".+ %s", path);
	CHECK_EQ(filter_add(&f, rule, why), 0);
	CHECK_EQ(f.count, 4);
	/* one that names itself ends */
	snprintf(rule, sizeof rule, ". %s\n", path);
	CHECK(scratch_write(path, rule));
	rule[strlen(rule) - 1] = '\0';
	CHECK_EQ(filter_add(&f, rule, why), -ELOOP);
	file = fopen(path, "w");
	CHECK(file);
	fwrite("- a\n- b\0c\n", 1, 10, file);
	fclose(file);
	CHECK_EQ(filter_add(&f, rule, why), -EINVAL);
	CHECK(strstr(why, ":2: a NUL"));
	filter_fini(&f);
}

/* Writes four times what a file may have into it, without a newline. */
static void write_too_much(int fd)
{
	static const char zeros[1 << 16];

	signal(SIGPIPE, SIG_DFL);
	for (size_t i = 0; i < 4 * FILTER_FILE_BYTES_MAX / sizeof zeros; i++)
		if (write(fd, zeros, sizeof zeros) != (ssize_t)sizeof zeros)
			_exit(2);
	_exit(0);
}

/* A file that has no end is not read until the memory is full. */
static void endless_line(void)
{
	struct filter f = {0};
	char rule[64];
	int fds[2], status;
	pid_t child;

	CHECK(!pipe(fds));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		close(fds[0]);
		write_too_much(fds[1]);
	}
	close(fds[1]);
	snprintf(rule, sizeof rule, ". /dev/fd/%d", fds[0]);
	CHECK_EQ(filter_add(&f, rule, why), -EFBIG);
	close(fds[0]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	filter_fini(&f);
}

static void said_again(void)
{
	static const char *const rules[] = {"- *.o", "+ /a/b/", "- x/***"};
	struct filter f = {0}, again = {0};

	for (size_t i = 0; i < 3; i++)
		CHECK(!filter_add(&f, rules[i], why));
	for (size_t i = 0; i < f.count; i++) {
		bool include;
		const char *pattern = filter_rule_pattern(&f, i, &include);

		CHECK(include == (*rules[i] == '+') && !strcmp(pattern, rules[i] + 2));
		CHECK(!filter_add_pattern(&again, include, pattern, why));
	}
	CHECK_EQ(again.count, 3);
	filter_fini(&f);
	filter_fini(&again);
}

HARNESS_MAIN({"last_component", last_component}, {"anchored", anchored}, {"paths", paths},
	{"directories", directories}, {"first_one_decides", first_one_decides},
	{"what_is_wrong", what_is_wrong}, {"files", files}, {"endless_line", endless_line},
	{"said_again", said_again})
