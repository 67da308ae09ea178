/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/removal.c: all of a tree goes, and nothing beside it.
 */
#include "tests/harness.h"

#include "base/clock.h"
#include "tests/scratch.h"
#include "tree/removal.h"

#include <sys/wait.h>

static bool fill(const char *dir)
{
	static const char *const dirs[] = {"t", "t/a", "t/a/b", "t/c", "t/c/empty", "outside"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdir(scratch_path(dir, dirs[i]), 0755))
			return false;
	return scratch_write(scratch_path(dir, "t/f"), "1") &&
	       scratch_write(scratch_path(dir, "t/a/b/f"), "2") &&
	       scratch_write(scratch_path(dir, "outside/f"), "3") &&
	       scratch_write(scratch_path(dir, "t/c/\n\xff"), "4") &&
	       !symlink("../../outside", scratch_path(dir, "t/c/link")) &&
	       !symlink("t", scratch_path(dir, "named"));
}

static void a_tree_goes_and_what_links_lead_to_stays(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_PATH | O_DIRECTORY), fds;
	struct removal r;

	CHECK(fill(dir));
	fds = scratch_open_fds();
	CHECK_EQ(removal_run(top, "/t/a/", UINT64_MAX, NULL, &r), 0);
	CHECK_EQ(r.removed, 3);
	CHECK_EQ(removal_run(top, "t", UINT64_MAX, NULL, &r), 0);
	CHECK_EQ(r.removed, 6);
	CHECK(!r.more && !r.fault);
	CHECK_EQ(removal_run(top, "named", UINT64_MAX, NULL, &r), 0);
	CHECK_EQ(r.removed, 1);
	CHECK(scratch_is(scratch_path(dir, "outside/f"), "3"));
	CHECK_EQ(scratch_entries(dir), 1);
	CHECK_EQ(removal_run(top, "outside/f", UINT64_MAX, NULL, &r), 0);
	CHECK_EQ(scratch_entries(scratch_path(dir, "outside")), 0);
	CHECK_EQ(scratch_open_fds(), fds);
	close(top);
}

static void what_can_not_go(void)
{
	static const struct {
		const char *path;
		int err;
	} rows[] = {{"", -EINVAL}, {"/", -EINVAL}, {"..", -EINVAL}, {"t/..", -EINVAL},
		{"missing", -ENOENT}, {"missing/x", -ENOENT}, {"../x", -EXDEV}, {"t/f/x", -ENOTDIR},
		{"t/c/link/f", -EXDEV}};
	const char *dir = scratch_dir();
	char inner[600];
	int top, fds;
	struct removal r;

	snprintf(inner, sizeof(inner), "%s/top", dir);
	CHECK_EQ(mkdir(inner, 0755), 0);
	CHECK(fill(inner));
	CHECK_EQ(unlink(scratch_path(dir, "top/t/c/link")), 0);
	CHECK_EQ(symlink("../../..", scratch_path(dir, "top/t/c/link")), 0);
	CHECK(scratch_write(scratch_path(dir, "f"), "safe"));
	top = open(scratch_path(dir, "top"), O_PATH | O_DIRECTORY);
	fds = scratch_open_fds();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_EQ(removal_run(top, rows[i].path, UINT64_MAX, NULL, &r), rows[i].err);
		CHECK_EQ(r.removed, 0);
		free(r.fault);
	}
	CHECK(scratch_is(scratch_path(dir, "f"), "safe"));
	CHECK_EQ(scratch_open_fds(), fds);
	close(top);
}

/* The caller sees to it that nobody waits for long. */
static void it_goes_a_while_at_a_time(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_PATH | O_DIRECTORY);
	char path[64];
	struct removal r;
	uint64_t removed = 0;
	int calls = 0;

	CHECK(fill(dir));
	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "t/c/%d", i);
		CHECK(scratch_write(scratch_path(dir, path), "x"));
	}
	CHECK_EQ(removal_run(top, "t", 0, NULL, &r), 0); /* the time is over already */
	CHECK(r.more);
	CHECK_EQ(r.removed, 0);
	do {
		CHECK_EQ(removal_run(top, "t", clock_now_ns() + 2000000, NULL, &r), 0);
		removed += r.removed;
	} while (r.more && ++calls < 100000);
	CHECK_EQ(removed, 3000 + 9);
	CHECK_EQ(access(scratch_path(dir, "t"), F_OK), -1);
	close(top);
}

static void deeper_than_a_path_may_be(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_RDONLY | O_DIRECTORY), fd = dup(top), fds;
	char name[201];
	struct removal r;

	memset(name, 'd', 200);
	name[200] = '\0';
	for (int i = 0; i < 60; i++) {
		int next;

		CHECK_EQ(mkdirat(fd, name, 0755), 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
		CHECK_EQ(symlinkat("/", fd, "l"), 0);
	}
	close(fd);
	fds = scratch_open_fds();
	CHECK_EQ(removal_run(top, name, UINT64_MAX, NULL, &r), 0);
	CHECK_EQ(r.removed, 120);
	CHECK_EQ(scratch_entries(dir), 0);
	CHECK_EQ(scratch_open_fds(), fds);
	close(top);
}

/* As a user who may not write to one of the directories. */
static void the_fault_is_named(void)
{
	const char *dir = scratch_dir();
	struct removal r;
	pid_t child;
	int top, status;

	CHECK(fill(dir));
	CHECK_EQ(chmod(dir, 0777), 0);
	CHECK_EQ(chmod(scratch_path(dir, "t"), 0777), 0);
	CHECK_EQ(chmod(scratch_path(dir, "t/a"), 0777), 0);
	CHECK_EQ(chmod(scratch_path(dir, "t/a/b"), 0555), 0);
	CHECK_EQ(chmod(scratch_path(dir, "t/c"), 0777), 0);
	top = open(dir, O_PATH | O_DIRECTORY);
	fflush(stdout);
	child = fork();
	if (!child) {
		if (!geteuid() && setresuid(65534, 65534, 65534))
			_exit(2);
		_exit(removal_run(top, "/t/", UINT64_MAX, NULL, &r) == -EACCES && r.fault &&
					!strcmp(r.fault, "/t/a/b/f")
				? 0
				: 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	close(top);
	if (WEXITSTATUS(status) == 2)
		SKIP("may not become another user");
	CHECK_EQ(WEXITSTATUS(status), 0);
	CHECK(scratch_is(scratch_path(dir, "t/a/b/f"), "2"));
}

HARNESS_MAIN({"a_tree_goes_and_what_links_lead_to_stays", a_tree_goes_and_what_links_lead_to_stays},
	{"what_can_not_go", what_can_not_go},
	{"it_goes_a_while_at_a_time", it_goes_a_while_at_a_time},
	{"deeper_than_a_path_may_be", deeper_than_a_path_may_be},
	{"the_fault_is_named", the_fault_is_named})
