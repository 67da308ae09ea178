/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/leftovers.c: all that was left behind is told, once, with what it belongs to; what is
 * in use stays, whoever asks for it to be removed.
 */
#include "tests/harness.h"

#include "base/clock.h"
#include "tests/scratch.h"
#include "tree/journal.h"
#include "tree/leftovers.h"
#include "tree/temporary.h"
#include "tree/tree_mark.h"

#include <assert.h>
#include <time.h>

#define SIZE 200000u

static const struct transfer_file source = {.size = SIZE, .mtime_s = 5};

static void put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT, 0600);

	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* A journal with one block of its file; NULL: its writer has left it. */
static struct journal *begin(int dir, const char *name, bool leave)
{
	const struct transfer_note note = {0, 77};
	struct transfer_notes found = {0};
	char partial[JOURNAL_PATH_BYTES];
	struct journal *j;
	int fd;

	assert(!journal_open(dir, name, &source, partial, &fd, &j));
	while (journal_recall(j, fd, 65536, &found))
		;
	free(found.items);
	journal_note(j, &note, 1);
	assert(pwrite(fd, "data", 4, 0) == 4);
	close(fd);
	if (!leave)
		return j;
	journal_close(j);
	return NULL;
}

static struct leftovers *look(int top, const char *path, bool remove, uint64_t age_s)
{
	const struct leftovers_params params = {
		.top = top, .path = path, .remove = remove, .age_s = age_s};
	struct leftovers *l;

	assert(!leftovers_new(&params, &l));
	return l;
}

/* The next one is of this kind and state, and belongs to that. */
static void next(struct leftovers *l, enum leftovers_kind kind, enum leftovers_state state,
	const char *name, const char *in)
{
	struct leftovers_item item;

	CHECK_EQ(leftovers_next(l, UINT64_MAX, &item), 1);
	CHECK_EQ(item.kind, kind);
	CHECK_EQ(item.state, state);
	CHECK(!strcmp(item.name, name));
	CHECK(!strncmp(item.path, in, strlen(in)));
	CHECK_EQ(item.error, 0);
	if (kind == LEFTOVERS_FILE) {
		CHECK_EQ(item.size_bytes, SIZE);
		CHECK_EQ(item.verified_bytes, 65536);
		CHECK(item.changed_s >= time(NULL) - 60);
	}
}

static void end(struct leftovers *l)
{
	struct leftovers_item item;

	CHECK_EQ(leftovers_next(l, UINT64_MAX, &item), 0);
	leftovers_free(l);
}

static void what_is_used_stays(void)
{
	const char *dir = scratch_dir();
	char name[TEMPORARY_NAME_BYTES];
	struct timespec now = {.tv_sec = time(NULL)};
	int top = open(dir, O_RDONLY | O_DIRECTORY), sub, fd, fds = scratch_open_fds();
	struct journal *j;
	struct tree_mark *mark;
	struct leftovers *l;

	CHECK_EQ(mkdirat(top, "d", 0755), 0);
	sub = openat(top, "d", O_RDONLY | O_DIRECTORY);
	put(top, "file", "stays");
	put(sub, ".rftp-file", "stays");
	j = begin(sub, "wanted", false);
	CHECK_EQ(tree_mark_open(top, "tree/x", &now, &mark), 0);
	fd = temporary_create(sub, 0600, name);
	for (int remove = 0; remove < 2; remove++) {
		l = look(top, "", remove, 0);
		next(l, LEFTOVERS_TREE, LEFTOVERS_BUSY, "tree", ".rftp-");
		/* sorted by names that are sums and chance */
		for (int i = 0; i < 2; i++) {
			struct leftovers_item item;

			CHECK_EQ(leftovers_next(l, UINT64_MAX, &item), 1);
			CHECK(!strncmp(item.path, "d/.rftp-", 8));
			CHECK_EQ(item.state, LEFTOVERS_BUSY);
			CHECK(item.kind == LEFTOVERS_FILE ? !strcmp(item.name, "wanted")
							  : item.kind == LEFTOVERS_PART);
		}
		end(l);
		CHECK_EQ(scratch_entries(dir), 3);
	}
	journal_close(j);
	close(fd);
	tree_mark_close(mark, false);
	l = look(top, "", true, 3600); /* they are too young */
	for (int i = 0; i < 3; i++) {
		struct leftovers_item item;

		CHECK_EQ(leftovers_next(l, UINT64_MAX, &item), 1);
		CHECK_EQ(item.state, LEFTOVERS_IDLE);
	}
	end(l);
	l = look(top, "d", true, 0); /* in that directory only */
	for (int i = 0; i < 2; i++) {
		struct leftovers_item item;

		CHECK_EQ(leftovers_next(l, UINT64_MAX, &item), 1);
		CHECK_EQ(item.state, LEFTOVERS_REMOVED);
		CHECK(!strncmp(item.path, ".rftp-", 6));
	}
	end(l);
	l = look(top, "", true, 0);
	next(l, LEFTOVERS_TREE, LEFTOVERS_REMOVED, "tree", ".rftp-");
	end(l);
	l = look(top, "", false, 0);
	end(l);
	CHECK_EQ(scratch_entries(dir), 2);
	CHECK_EQ(faccessat(sub, ".rftp-file", F_OK, 0), 0);
	close(sub);
	CHECK_EQ(scratch_open_fds(), fds);
	close(top);
}

static void what_is_left_of_one_file_is_told_once(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_RDONLY | O_DIRECTORY);
	struct leftovers *l;

	begin(top, "wanted", true);
	CHECK_EQ(scratch_entries(dir), 2);
	l = look(top, "/", false, 0);
	next(l, LEFTOVERS_FILE, LEFTOVERS_IDLE, "wanted", ".rftp-");
	end(l);
	CHECK_EQ(scratch_entries(dir), 2);
	l = look(top, "/", true, 0);
	next(l, LEFTOVERS_FILE, LEFTOVERS_REMOVED, "wanted", ".rftp-");
	end(l);
	CHECK_EQ(scratch_entries(dir), 0);
	close(top);
}

/* A partial file alone, a journal that says nothing, and one of another host. */
static void what_is_of_no_use(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_RDONLY | O_DIRECTORY);
	struct leftovers *l;

	put(top, ".rftp-0000000000000000.partial", "x");
	put(top, ".rftp-0000000000000001.journal", "garbage");
	put(top, ".rftp-0000000000000002.part", "x");
	put(top, ".rftp-0000000000000003.tree", "garbage");
	CHECK_EQ(symlinkat("/etc", top, ".rftp-0000000000000004.journal"), 0);
	CHECK_EQ(mkdirat(top, ".rftp-0000000000000005.partial", 0700), 0);
	for (int remove = 0; remove < 2; remove++) {
		enum leftovers_state then = remove ? LEFTOVERS_REMOVED : LEFTOVERS_IDLE;
		struct leftovers_item item;

		l = look(top, "", remove, 0);
		next(l, LEFTOVERS_PART, then, "", ".rftp-0000000000000000.partial");
		next(l, LEFTOVERS_PART, then, "", ".rftp-0000000000000001.journal");
		next(l, LEFTOVERS_PART, LEFTOVERS_UNSURE, "", ".rftp-0000000000000002.part");
		next(l, LEFTOVERS_TREE, then, "", ".rftp-0000000000000003.tree");
		CHECK_EQ(leftovers_next(l, UINT64_MAX, &item), 1); /* a link is none of ours */
		CHECK_EQ(item.state, LEFTOVERS_UNSURE);
		CHECK(item.error);
		end(l);
	}
	CHECK_EQ(scratch_entries(dir), 3);
	close(top);
}

static void a_file_is_no_directory(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_RDONLY | O_DIRECTORY);
	struct leftovers_params params = {.top = top, .path = "file"};
	struct leftovers_item item;
	struct leftovers *l;

	put(top, "file", "x");
	CHECK_EQ(leftovers_new(&params, &l), -ENOTDIR);
	params.path = "missing";
	CHECK_EQ(leftovers_new(&params, &l), -ENOENT);
	l = look(top, "", false, 0);
	CHECK_EQ(leftovers_next(l, 0, &item), -EAGAIN); /* the time is over */
	end(l);
	close(top);
}

HARNESS_MAIN({"what_is_used_stays", what_is_used_stays},
	{"what_is_left_of_one_file_is_told_once", what_is_left_of_one_file_is_told_once},
	{"what_is_of_no_use", what_is_of_no_use},
	{"a_file_is_no_directory", a_file_is_no_directory})
