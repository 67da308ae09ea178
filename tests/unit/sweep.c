/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/sweep.c: what happens to a leftover between the look at it and its lock.
 *
 * The call that locks is this program's own: what another process would do just before it, or while
 * it is refused, is done there.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/journal.h"
#include "tree/leftover.h"
#include "tree/tree_mark.h"

#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>

static const struct transfer_file source = {.size = 100000, .mtime_s = 5};
static const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

static int top;
static void (*before_lock)(void); /* once */

int flock(int fd, int operation)
{
	void (*meanwhile)(void) = before_lock;

	before_lock = NULL;
	if (meanwhile)
		meanwhile();
	return (int)syscall(SYS_flock, fd, operation);
}

static char journal_name[JOURNAL_PATH_BYTES], partial_name[JOURNAL_PATH_BYTES];

/* Leaves a file and its journal of long ago. */
static void leave(void)
{
	struct transfer_notes found = {0};
	struct journal *j;
	int fd;

	top = open(scratch_dir(), O_RDONLY | O_DIRECTORY);
	CHECK_EQ(journal_open(top, "name", &source, partial_name, &fd, &j), 0);
	while (journal_recall(j, fd, 65536, &found))
		;
	free(found.items);
	close(fd);
	journal_close(j);
	journal_other_name(partial_name, journal_name);
	CHECK_EQ(utimensat(top, journal_name, old, 0), 0);
	CHECK_EQ(utimensat(top, partial_name, old, 0), 0);
}

static bool is_there(const char *name)
{
	return !faccessat(top, name, F_OK, 0);
}

static void goes_on_and_leaves(void)
{
	CHECK_EQ(utimensat(top, journal_name, NULL, 0), 0);
	CHECK_EQ(utimensat(top, partial_name, NULL, 0), 0);
}

static void what_has_become_young_stays(void)
{
	uint64_t bytes;

	leave();
	before_lock = goes_on_and_leaves;
	CHECK_EQ(leftover_sweep(top, journal_name, 900, &bytes), -EAGAIN);
	CHECK(is_there(journal_name) && is_there(partial_name));
	CHECK_EQ(leftover_sweep(top, journal_name, 0, &bytes), 0);
	CHECK(!is_there(journal_name) && !is_there(partial_name));
	close(top);
}

static void removes_the_partial_file(void)
{
	CHECK_EQ(unlinkat(top, partial_name, 0), 0);
}

static void makes_it_young(void)
{
	CHECK_EQ(utimensat(top, partial_name, NULL, 0), 0);
}

/* The journal that is made for its lock goes again. */
static void what_is_alone_and_changes_gets_no_journal(void)
{
	uint64_t bytes;

	leave();
	CHECK_EQ(unlinkat(top, journal_name, 0), 0);
	before_lock = makes_it_young;
	CHECK_EQ(leftover_sweep(top, partial_name, 900, &bytes), -EAGAIN);
	CHECK(!is_there(journal_name) && is_there(partial_name));
	before_lock = removes_the_partial_file;
	CHECK_EQ(leftover_sweep(top, partial_name, 0, &bytes), -ENOENT);
	CHECK_EQ(bytes, 0);
	CHECK(!is_there(journal_name));
	close(top);
}

static const char mark_name[] = ".rftp-0123456789abcdef.tree";

static void make_mark(void)
{
	close(openat(top, mark_name, O_WRONLY | O_CREAT | O_EXCL, 0600));
}

static void is_another_mark_now(void)
{
	CHECK_EQ(unlinkat(top, mark_name, 0), 0);
	make_mark();
}

static void another_transfers_mark_stays(void)
{
	top = open(scratch_dir(), O_RDONLY | O_DIRECTORY);
	make_mark();
	before_lock = is_another_mark_now;
	CHECK_EQ(tree_mark_sweep(top, mark_name, 0), -EAGAIN);
	CHECK(is_there(mark_name));
	CHECK_EQ(tree_mark_sweep(top, mark_name, 0), 0);
	CHECK(!is_there(mark_name));
	close(top);
}

static int lister;

static void ends_listing(void)
{
	close(lister);
}

static void lists(void)
{
	before_lock = ends_listing;
}

/* Who asks whether a file is in use has its lock for a moment: a transfer goes on with it. */
static void who_looks_keeps_nobody_out(void)
{
	int fd;

	leave();
	lister = openat(top, journal_name, O_RDONLY);
	CHECK_EQ(flock(lister, LOCK_SH | LOCK_NB), 0);
	CHECK_EQ(journal_lock_file(top, journal_name, &fd), -EBUSY);
	before_lock = lists;
	CHECK_EQ(journal_lock_file(top, journal_name, &fd), 0);
	close(fd);
	close(top);
}

HARNESS_MAIN({"what_has_become_young_stays", what_has_become_young_stays},
	{"what_is_alone_and_changes_gets_no_journal", what_is_alone_and_changes_gets_no_journal},
	{"another_transfers_mark_stays", another_transfers_mark_stays},
	{"who_looks_keeps_nobody_out", who_looks_keeps_nobody_out})
