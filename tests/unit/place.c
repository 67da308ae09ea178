/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/place.c: each operation needs its right, and without it nothing is done.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/place.h"
#include "tree/removal.h"

/* "file", "full/" with a file in it, "empty/" */
static bool make(const char *dir)
{
	return !mkdir(scratch_path(dir, "empty"), 0755) &&
	       !mkdir(scratch_path(dir, "full"), 0755) &&
	       scratch_write(scratch_path(dir, "full/f"), "in it") &&
	       scratch_write(scratch_path(dir, "file"), "file");
}

static void a_missing_right_is_said(void)
{
	struct place p = {.top = -1, .rights = PLACE_READ_ONLY};
	int top;

	CHECK_EQ(place_allows(&p, PLACE_READ | PLACE_LIST), 0);
	CHECK_EQ(place_allows(&p, PLACE_WRITE), -EROFS);
	CHECK_EQ(place_allows(&p, PLACE_READ | PLACE_DELETE), -EROFS);
	p.rights = PLACE_WRITE; /* a drop box */
	CHECK_EQ(place_allows(&p, PLACE_WRITE), 0);
	CHECK_EQ(place_allows(&p, PLACE_READ), -EACCES);
	CHECK_EQ(place_allows(&p, PLACE_DELETE), -EACCES);
	p.top = 77;
	CHECK_EQ(place_top(&p, PLACE_WRITE, &top), 0);
	CHECK_EQ(top, 77);
	CHECK_EQ(place_top(&p, 0, &top), 0);
	CHECK_EQ(place_top(&p, PLACE_WRITE | PLACE_READ, &top), -EACCES);
	p.rights = 0;
	CHECK_EQ(place_allows(&p, PLACE_LIST), -EACCES);
	CHECK_EQ(place_allows(&p, PLACE_WRITE), -EROFS);
}

static void nothing_is_done_without_rights(void)
{
	const char *dir = scratch_dir();
	struct statvfs fs;
	struct stat st;
	struct place p;
	DIR *entries;

	CHECK(make(dir));
	CHECK_EQ(place_open(&p, dir, 0), 0);
	CHECK_EQ(place_stat(&p, "file", true, &st), -EACCES);
	CHECK_EQ(place_statfs(&p, "", &fs), -EACCES);
	CHECK_EQ(place_list(&p, "", &entries), -EACCES);
	CHECK_EQ(place_check_readable(&p, "file"), -EACCES);
	CHECK_EQ(place_check_writable(&p, "file"), -EROFS);
	CHECK_EQ(place_mkdir(&p, "new", 0755, false), -EROFS);
	CHECK_EQ(place_rmdir(&p, "empty"), -EROFS);
	CHECK_EQ(place_remove(&p, "file"), -EROFS);
	CHECK_EQ(place_rename(&p, "file", "other", true), -EROFS);
	CHECK_EQ(place_change(&p, "file", &(struct change){.has_mode = true}), -EROFS);
	CHECK_EQ(place_make_link(&p, "file", "new"), -EROFS);
	p.rights = PLACE_READ_ONLY | PLACE_WRITE;
	CHECK_EQ(place_rmdir(&p, "empty"), -EACCES);
	CHECK_EQ(place_remove(&p, "file"), -EACCES);
	CHECK_EQ(place_rename(&p, "file", "other", true), -EACCES);
	p.rights = PLACE_READ_ONLY | PLACE_DELETE;
	CHECK_EQ(place_mkdir(&p, "new", 0755, false), -EACCES);
	CHECK_EQ(place_check_writable(&p, "file"), -EACCES);
	CHECK_EQ(place_rename(&p, "file", "other", true), -EACCES);
	CHECK_EQ(place_change(&p, "file", &(struct change){.has_mode = true}), -EACCES);
	CHECK_EQ(place_make_link(&p, "file", "new"), -EACCES);
	CHECK_EQ(place_stat(&p, "file", true, &st), 0);
	CHECK_EQ(place_stat(&p, "empty", true, &st), 0);
	CHECK_EQ(place_stat(&p, "new", true, &st), -ENOENT);
	CHECK_EQ(place_stat(&p, "other", true, &st), -ENOENT);
	place_close(&p);
	CHECK_EQ(p.top, -1);
	place_close(&p);
}

static void all_is_done_with_rights(void)
{
	const char *dir = scratch_dir();
	struct dirent *entry;
	struct statvfs fs;
	struct stat st;
	struct place p;
	DIR *entries;
	unsigned count = 0;
	struct removal removal;

	CHECK(make(dir));
	CHECK_EQ(place_open(&p, dir, PLACE_ALL), 0);
	CHECK_EQ(place_stat(&p, "/file", true, &st), 0);
	CHECK_EQ(st.st_size, 4);
	CHECK_EQ(place_statfs(&p, "full", &fs), 0);
	CHECK(fs.f_blocks > 0);
	CHECK_EQ(place_list(&p, "full", &entries), 0);
	while ((entry = readdir(entries)))
		count += entry->d_name[0] != '.';
	closedir(entries);
	CHECK_EQ(count, 1);
	CHECK_EQ(place_list(&p, "file", &entries), -ENOTDIR);
	CHECK_EQ(place_list(&p, "../", &entries), -EXDEV);
	CHECK_EQ(place_check_readable(&p, "file"), 0);
	CHECK_EQ(place_check_readable(&p, "nothing"), -ENOENT);
	CHECK_EQ(place_check_readable(&p, "../x"), -EXDEV);
	CHECK_EQ(place_check_writable(&p, "nothing"), 0);
	CHECK_EQ(place_check_writable(&p, "no/thing"), -ENOENT);
	CHECK_EQ(place_check_writable(&p, ""), 0);
	CHECK_EQ(place_mkdir(&p, "new/er", 0755, true), 0);
	CHECK_EQ(place_rmdir(&p, "new/er"), 0);
	CHECK_EQ(place_mkdir(&p, "tree/of/these", 0755, true), 0);
	CHECK_EQ(place_remove_tree(&p, "tree", UINT64_MAX, &removal), 0);
	CHECK_EQ(removal.removed, 3);
	CHECK_EQ(place_rename(&p, "file", "new/file", false), 0);
	CHECK_EQ(place_remove(&p, "new/file"), 0);
	CHECK_EQ(place_stat(&p, "new/file", false, &st), -ENOENT);
	CHECK_EQ(place_statfs(&p, "../..", &fs), -EXDEV);
	place_close(&p);
}

static struct stat looked_at(const char *dir, const char *name)
{
	struct stat st = {0};

	if (lstat(scratch_path(dir, name), &st))
		st.st_mode = 0;
	return st;
}

static void modes_and_times(void)
{
	const struct change when = {.has_mtime = true, .mtime_s = -5, .mtime_ns = 7};
	struct change c = {.has_mode = true, .mode = 0, .set_id = true};
	const char *dir = scratch_dir();
	struct stat st;
	struct place p;

	CHECK(make(dir));
	CHECK_EQ(place_open(&p, dir, PLACE_ALL), 0);
	CHECK_EQ(place_change(&p, "file", &c), 0);
	CHECK_EQ(looked_at(dir, "file").st_mode & 07777, 0);
	CHECK_EQ(place_change(&p, "file", &when), 0); /* what nobody may read */
	st = looked_at(dir, "file");
	CHECK_EQ(st.st_mtim.tv_sec, -5);
	CHECK_EQ(st.st_mtim.tv_nsec, 7);
	/* set-user-ID is not given, and not taken by what means something else */
	c.mode = 04755;
	CHECK_EQ(place_change(&p, "file", &c), -EPERM);
	CHECK_EQ(looked_at(dir, "file").st_mode & 07777, 0);
	CHECK(!chmod(scratch_path(dir, "file"), 04700));
	CHECK_EQ(place_change(&p, "file", &c), 0);
	CHECK_EQ(looked_at(dir, "file").st_mode & 07777, 04755);
	c.mode = 02755;
	CHECK_EQ(place_change(&p, "full", &c), 0);
	CHECK_EQ(looked_at(dir, "full").st_mode & 07777, 02755);
	/* the top is not its users' */
	CHECK_EQ(place_change(&p, "", &c), -EPERM);
	CHECK_EQ(place_change(&p, "full/..", &when), -EPERM);
	CHECK_EQ(place_change(&p, "../x", &when), -EXDEV);
	CHECK_EQ(place_change(&p, "none", &when), -ENOENT);
	c = (struct change){.now = true, .create = true};
	CHECK_EQ(place_change(&p, "none/there", &c), -ENOENT);
	CHECK_EQ(place_change(&p, "new", &c), 0);
	CHECK_EQ(looked_at(dir, "new").st_size, 0);
	CHECK_EQ(place_change(&p, "file", &c), 0);
	CHECK(looked_at(dir, "file").st_mtim.tv_sec > 0);
	CHECK(!mkfifo(scratch_path(dir, "fifo"), 0600));
	CHECK_EQ(place_change(&p, "fifo", &c), -ENXIO);
	/* links */
	CHECK_EQ(place_make_link(&p, "file", "link"), 0);
	CHECK_EQ(place_make_link(&p, "file", "link"), -EEXIST);
	CHECK_EQ(place_make_link(&p, "../file", "full/up"), 0);
	CHECK_EQ(place_make_link(&p, "/etc/passwd", "out"), 0);
	CHECK_EQ(place_make_link(&p, "x", "../out"), -EXDEV);
	CHECK_EQ(place_make_link(&p, "x", ""), -EINVAL);
	CHECK_EQ(place_change(&p, "out", &when), -EXDEV);
	CHECK_EQ(place_change(&p, "full/up", &when), 0);
	CHECK_EQ(looked_at(dir, "file").st_mtim.tv_sec, -5);
	c = when;
	c.link = true;
	c.mtime_s = 9;
	CHECK_EQ(place_change(&p, "out", &c), 0);
	CHECK_EQ(looked_at(dir, "out").st_mtim.tv_sec, 9);
	CHECK_EQ(looked_at(dir, "file").st_mtim.tv_sec, -5);
	CHECK_EQ(place_make_link(&p, "nowhere", "dangling"), 0);
	CHECK_EQ(place_change(&p, "dangling", &(struct change){.now = true, .create = true}),
		-ENOENT);
	place_close(&p);
}

static void what_cannot_be_opened(void)
{
	const char *dir = scratch_dir();
	struct place p;

	CHECK(make(dir));
	CHECK_EQ(place_open(&p, scratch_path(dir, "nothing"), PLACE_ALL), -ENOENT);
	CHECK_EQ(p.top, -1);
	CHECK_EQ(place_open(&p, scratch_path(dir, "file"), PLACE_ALL), -ENOTDIR);
	place_close(&p);
}

HARNESS_MAIN({"a_missing_right_is_said", a_missing_right_is_said},
	{"nothing_is_done_without_rights", nothing_is_done_without_rights},
	{"all_is_done_with_rights", all_is_done_with_rights}, {"modes_and_times", modes_and_times},
	{"what_cannot_be_opened", what_cannot_be_opened})
