/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/landings.c: many small files get their names together, and each that cannot fails
 * alone.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/landings.h"
#include "tree/parent.h"
#include "tree/temporary.h"

#include <sys/resource.h>

#define FILES 300u /* more than are open at once */

static const char *dir;
static int top;
static struct flush_costs costs;
static struct landings_file files[FILES];
static char paths[FILES][64];

static void make(void)
{
	dir = scratch_dir();
	top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(top >= 0);
	memset(&costs, 0, sizeof costs);
	memset(files, 0, sizeof files);
}

static struct landings_file *file(unsigned i, const char *path, const char *text)
{
	snprintf(paths[i], sizeof paths[i], "%s", path);
	files[i] = (struct landings_file){.path = paths[i],
		.data = (const uint8_t *)text,
		.bytes = strlen(text),
		.metadata = {.mode = 0640, .mtime_s = 1000000000 + i, .mtime_ns = 7}};
	return &files[i];
}

static void run(unsigned count, unsigned open_max)
{
	const struct landings_params params = {.top = top, .open_max = open_max, .costs = &costs};

	landings_run(&params, files, count);
}

static bool has(const char *path, const char *text)
{
	char have[256] = "";
	int fd = open(scratch_path(dir, path), O_RDONLY | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, have, sizeof have - 1);

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text) && !strcmp(have, text);
}

static unsigned hidden(const char *path)
{
	DIR *d = opendir(scratch_path(dir, path));
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += temporary_is_name(e->d_name);
	if (d)
		closedir(d);
	return n;
}

static void tidy(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free(files[i].text);
	close(top);
}

/* In directories that are there, that are made, and that are one level apart, with few and many
 * descriptors. */
static void all_get_their_names(void)
{
	static const unsigned most[] = {2, 3, 17, 1000};

	for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
		int fds = scratch_open_fds();
		struct stat st;

		make();
		for (unsigned i = 0; i < FILES; i++) {
			char path[64];

			snprintf(path, sizeof path, "%s%u/%s%u", i % 3 ? "d" : "e/", i / 7 % 23,
				i % 2 ? "f" : "g", i);
			file(i, path, i % 5 ? "some" : "");
		}
		run(FILES, most[m]);
		for (unsigned i = 0; i < FILES; i++) {
			CHECK_EQ(files[i].err, 0);
			CHECK(!files[i].text);
			CHECK(has(files[i].path, i % 5 ? "some" : ""));
			CHECK(!stat(scratch_path(dir, files[i].path), &st));
			CHECK_EQ(st.st_mode & 07777, 0640);
			CHECK_EQ(st.st_mtim.tv_sec, 1000000000 + i);
			CHECK_EQ(st.st_mtim.tv_nsec, 7);
		}
		CHECK_EQ(hidden("d0"), 0);
		tidy(FILES);
		CHECK_EQ(scratch_open_fds(), fds);
	}
}

/* What is in the way of one is in the way of no other. */
static void each_fails_alone(void)
{
	struct stat st;

	make();
	CHECK(!mkdir(scratch_path(dir, "d"), 0755) && !mkdir(scratch_path(dir, "d/is"), 0755));
	CHECK(scratch_write(scratch_path(dir, "d/old"), "old"));
	CHECK(scratch_write(scratch_path(dir, "plain"), "plain"));
	CHECK(!symlink("old", scratch_path(dir, "d/link")) &&
		!symlink("/", scratch_path(dir, "out")) &&
		!mkfifo(scratch_path(dir, "d/fifo"), 0600));
	file(0, "d/a", "a");
	file(1, "d/is", "a directory has this name");
	file(2, "d/old", "new");
	file(3, "plain/f", "no directory");
	file(4, "out/tmp/f", "leads out");
	file(5, "d/link", "in place of a link");
	file(6, "d/fifo", "in place of a FIFO");
	file(7, "d/..", "no name");
	file(8, "../f", "out");
	file(9, "d/sub/to", "")->target = "../a";
	file(10, "d/is/x", "")->target = "y";
	file(11, "d/z", "z");
	run(12, 100);
	CHECK_EQ(files[0].err, 0);
	CHECK_EQ(files[1].err, -EISDIR);
	CHECK_EQ(files[2].err, 0);
	CHECK_EQ(files[3].err, -ENOTDIR);
	CHECK_EQ(files[4].err, -EXDEV);
	CHECK_EQ(files[5].err, 0);
	CHECK_EQ(files[6].err, -ENXIO);
	CHECK_EQ(files[7].err, -EINVAL);
	CHECK_EQ(files[8].err, -EXDEV);
	CHECK_EQ(files[9].err, 0);
	CHECK_EQ(files[10].err, 0);
	CHECK_EQ(files[11].err, 0);
	CHECK(has("d/a", "a") && has("d/old", "new") && has("plain", "plain") &&
		has("d/link", "in place of a link") && has("d/z", "z"));
	CHECK(!lstat(scratch_path(dir, "d/fifo"), &st) && S_ISFIFO(st.st_mode));
	CHECK(!lstat(scratch_path(dir, "d/sub/to"), &st) && S_ISLNK(st.st_mode));
	CHECK_EQ(st.st_mtim.tv_sec, 1000000009);
	CHECK_EQ(hidden("d"), 0);
	CHECK_EQ(hidden("."), 0);
	tidy(12);
}

/* A file system without room: those that fit are there, whole, and the others are not at all. */
static void a_full_disk(void)
{
	const char *small = scratch_small(64 << 10);
	static char text[8193];
	unsigned there = 0;

	if (!small) {
		printf("# not tested: no file system may be mounted\n");
		return;
	}
	dir = small;
	top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	memset(text, 'x', sizeof text - 1);
	for (unsigned i = 0; i < 40; i++) {
		char path[16];

		snprintf(path, sizeof path, "f%u", i);
		file(i, path, text);
	}
	run(40, 8);
	for (unsigned i = 0; i < 40; i++) {
		struct stat st;

		there += !files[i].err;
		CHECK(files[i].err == 0 || files[i].err == -ENOSPC);
		CHECK(!files[i].err == !stat(scratch_path(dir, files[i].path), &st));
		CHECK(files[i].err || st.st_size == 8192);
	}
	CHECK(there >= 4 && there < 9);
	CHECK_EQ(hidden("."), 0);
	tidy(40);
}

/* Descriptors run out in the middle: what is open gets its names, and it goes on. */
static void few_descriptors(void)
{
	struct rlimit old, few;

	make();
	CHECK(!getrlimit(RLIMIT_NOFILE, &old));
	few = old;
	few.rlim_cur = (rlim_t)(top + 6);
	for (unsigned i = 0; i < 50; i++) {
		char path[32];

		snprintf(path, sizeof path, "d%u/f%u", i % 4, i);
		file(i, path, "x");
	}
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	run(50, 256);
	CHECK(!setrlimit(RLIMIT_NOFILE, &old));
	for (unsigned i = 0; i < 50; i++)
		CHECK_EQ(files[i].err, 0);
	tidy(50);
}

/* Of both ways to flush the cheaper one is taken, once both are known. */
static void flushing_by_what_it_costs(void)
{
	struct flush_place place = {.device = true}, other = {0};
	unsigned all = 0;

	memset(&costs, 0, sizeof costs);
	CHECK_EQ(flush_choose(&costs, &other, 100), FLUSH_EACH);
	CHECK_EQ(flush_choose(&costs, &place, 1), FLUSH_EACH);
	if (flush_choose(&costs, &place, 100) == FLUSH_EACH) {
		printf("# not tested: this kernel's syncfs tells of no errors\n");
		return;
	}
	costs.all_ns = 1000;
	CHECK_EQ(flush_choose(&costs, &place, 100), FLUSH_EACH); /* to know that one, too */
	costs.each_ns = 2000;
	for (unsigned i = 0; i < 640; i++)
		all += flush_choose(&costs, &place, 100) == FLUSH_ALL;
	CHECK_EQ(all, 630); /* the other one is tried now and then */
	costs.all_ns = 3000;
	CHECK_EQ(flush_choose(&costs, &place, 100), FLUSH_EACH);
}

static void a_parent_stays_open(void)
{
	struct parent p = {0};
	const char *last;
	int fd;

	make();
	CHECK(!mkdir(scratch_path(dir, "d"), 0755) && !mkdir(scratch_path(dir, "d/e"), 0755));
	fd = parent_open(&p, top, "d/e/x", &last);
	CHECK(fd >= 0 && !strcmp(last, "x"));
	CHECK(parent_has(&p, "d/e/y") && !parent_has(&p, "d/e") && !parent_has(&p, "d/e/f/y") &&
		!parent_has(&p, "d/f/y") && !parent_has(&p, "y"));
	CHECK_EQ(parent_open(&p, top, "d/e/y", &last), fd);
	CHECK_EQ(parent_open(&p, top, "d/none/y", &last), -ENOENT);
	CHECK(!parent_has(&p, "d/e/y"));
	CHECK_EQ(parent_open(&p, top, "d/..", &last), -EINVAL);
	CHECK_EQ(parent_open(&p, top, "d/", &last), -EINVAL);
	CHECK_EQ(parent_open(&p, top, "", &last), -EINVAL);
	CHECK_EQ(parent_open(&p, top, "../x", &last), -EXDEV);
	CHECK(parent_open(&p, top, "x", &last) >= 0);
	parent_fini(&p);
	close(top);
}

HARNESS_MAIN({"all_get_their_names", all_get_their_names}, {"each_fails_alone", each_fails_alone},
	{"a_full_disk", a_full_disk}, {"few_descriptors", few_descriptors},
	{"flushing_by_what_it_costs", flushing_by_what_it_costs},
	{"a_parent_stays_open", a_parent_stays_open})
