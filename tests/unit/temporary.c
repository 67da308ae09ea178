/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/temporary.c: what nobody writes to any more is removed, and nothing else is.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/temporary.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static atomic_bool stop;

/* A child that has a temporary file, and what it is called. */
static pid_t start_writer(int dir, char name[TEMPORARY_NAME_BYTES])
{
	int fds[2];
	pid_t child;

	if (pipe(fds))
		abort();
	fflush(stdout);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (temporary_create(dir, 0600, name) < 0 ||
			write(fds[1], name, TEMPORARY_NAME_BYTES) != TEMPORARY_NAME_BYTES)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	if (child < 0 || read(fds[0], name, TEMPORARY_NAME_BYTES) != TEMPORARY_NAME_BYTES)
		abort();
	close(fds[0]);
	return child;
}

static void end_writer(pid_t child)
{
	int status;

	if (kill(child, SIGKILL) || waitpid(child, &status, 0) != child)
		abort();
}

static void names_are_known(void)
{
	char name[TEMPORARY_NAME_BYTES];
	int dir = open(scratch_dir(), O_RDONLY | O_DIRECTORY), fd;

	fd = temporary_create(dir, 0600, name);
	CHECK(fd >= 0);
	CHECK(temporary_is_name(name));
	CHECK(temporary_is_name(".rftp-0123456789abcdef.part"));
	CHECK(!temporary_is_name(".rftp-0123456789abcdeg.part"));
	CHECK(!temporary_is_name(".rftp-0123456789abcdef.par"));
	CHECK(!temporary_is_name(".rftp-0123456789abcde.part"));
	CHECK(!temporary_is_name(".rftp-"));
	CHECK(!temporary_is_name(""));
	close(fd);
	close(dir);
}

static void what_is_written_to_stays(void)
{
	const char *dir = scratch_dir();
	struct temporary_swept swept = {0};
	char name[TEMPORARY_NAME_BYTES], mine[TEMPORARY_NAME_BYTES];
	int top = open(dir, O_PATH | O_DIRECTORY), fds, fd;
	pid_t writer;

	writer = start_writer(top, name);
	fd = temporary_create(top, 0600, mine); /* one of this process's stays, too */
	CHECK(fd >= 0);
	fds = scratch_open_fds();
	CHECK_EQ(temporary_sweep(top, 0, NULL, &swept), 0);
	CHECK_EQ(swept.files, 0);
	CHECK_EQ(scratch_entries(dir), 2);
	end_writer(writer);
	CHECK_EQ(temporary_sweep(top, 0, NULL, &swept), 0);
	CHECK_EQ(swept.files, 1);
	CHECK_EQ(scratch_entries(dir), 1);
	CHECK_EQ(faccessat(top, name, F_OK, 0), -1);
	CHECK_EQ(scratch_open_fds(), fds);
	close(fd);
	CHECK_EQ(temporary_sweep(top, 0, NULL, &swept), 0);
	CHECK_EQ(swept.files, 2);
	close(top);
}

/* The lock of a writer on another host is seen on some network file systems only. */
static void another_hosts_wait_a_day(void)
{
	const char *dir = scratch_dir();
	const char *path = scratch_path(dir, ".rftp-0123456789abcdef.part");
	struct timespec old[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) - 23 * 3600}};
	struct temporary_swept swept = {0};
	int top = open(dir, O_RDONLY | O_DIRECTORY);

	CHECK(scratch_write(path, "12345"));
	CHECK_EQ(utimensat(AT_FDCWD, path, old, 0), 0);
	CHECK_EQ(temporary_sweep(top, 0, NULL, &swept), 0);
	CHECK_EQ(swept.files, 0);
	old[1].tv_sec -= 2 * 3600;
	CHECK_EQ(utimensat(AT_FDCWD, path, old, 0), 0);
	CHECK_EQ(temporary_sweep(top, 0, NULL, &swept), 0);
	CHECK_EQ(swept.files, 1);
	CHECK_EQ(scratch_entries(dir), 0);
	close(top);
}

static void a_tree_is_swept_and_links_are_not_followed(void)
{
	const char *dir = scratch_dir();
	const char *const places[] = {"top", "top/a", "top/a/b", "top/c", "outside"};
	struct temporary_swept swept = {0};
	char name[TEMPORARY_NAME_BYTES];
	int top, fds, fd;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		CHECK_EQ(mkdir(scratch_path(dir, places[i]), 0755), 0);
		fd = open(scratch_path(dir, places[i]), O_RDONLY | O_DIRECTORY);
		for (int j = 0; j < 3; j++)
			close(temporary_create(fd, 0600, name));
		CHECK_EQ(mkdirat(fd, ".rftp-0123456789abcdef.part", 0755), 0); /* no file */
		CHECK_EQ(symlinkat("../../outside", fd, "link"), 0);
		CHECK_EQ(mkdirat(fd, ".rftp-x.part", 0755), 0);
		close(fd);
	}
	fds = scratch_open_fds();
	top = open(scratch_path(dir, "top"), O_RDONLY | O_DIRECTORY);
	CHECK_EQ(temporary_sweep_tree(top, 0, &stop, &swept), 0);
	CHECK_EQ(swept.files, 4 * 3);
	CHECK_EQ(scratch_entries(scratch_path(dir, "outside")), 3 + 3);
	CHECK_EQ(scratch_entries(scratch_path(dir, "top/a/b")), 3);
	atomic_store(&stop, true);
	close(temporary_create(top, 0600, name));
	CHECK_EQ(temporary_sweep_tree(top, 0, &stop, &swept), 0);
	CHECK_EQ(faccessat(top, name, F_OK, 0), 0);
	close(top);
	CHECK_EQ(scratch_open_fds(), fds);
}

/* One side makes files as fast as it can, the other sweeps: none is taken from under its writer. */
static void making_and_sweeping_at_once(void)
{
	const char *dir = scratch_dir();
	struct temporary_swept swept = {0};
	char name[TEMPORARY_NAME_BYTES];
	int top = open(dir, O_RDONLY | O_DIRECTORY), status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			temporary_sweep(top, 0, NULL, &swept);
	}
	for (int i = 0; i < 20000; i++) {
		int fd = temporary_create(top, 0600, name);

		CHECK_EQ(fd < 0 ? fd : 0, 0);
		CHECK_EQ(unlinkat(top, name, 0), 0); /* is there */
		close(fd);
	}
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
	close(top);
}

HARNESS_MAIN({"names_are_known", names_are_known},
	{"what_is_written_to_stays", what_is_written_to_stays},
	{"another_hosts_wait_a_day", another_hosts_wait_a_day},
	{"a_tree_is_swept_and_links_are_not_followed", a_tree_is_swept_and_links_are_not_followed},
	{"making_and_sweeping_at_once", making_and_sweeping_at_once})
