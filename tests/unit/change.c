/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/change.c: set-user-ID and set-group-ID are kept, and passed on to nobody; a
 * file that is not what was seen stays as it is.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/change.h"
#include "tree/seen.h"

#define OTHER 4711u

static struct stat of(int top, const char *name)
{
	struct stat st = {0};

	fstatat(top, name, &st, AT_SYMLINK_NOFOLLOW);
	return st;
}

static void make(int top, const char *name, mode_t mode)
{
	int fd = openat(top, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	CHECK_EQ(fchmod(fd, mode), 0);
	close(fd);
}

/* Who may not change an owner is refused anyway: what counts is that nothing has changed. */
static void another_owner_gets_no_set_id(void)
{
	static const mode_t modes[] = {04755, 02755, 06755};
	int top = open(scratch_dir(), O_RDONLY | O_DIRECTORY);
	struct stat before;

	make(top, "f", 06755);
	before = of(top, "f");
	for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		for (unsigned k = 1; k < 4; k++) {
			const struct change c = {.has_mode = true,
				.mode = modes[i],
				.has_owner = k & 1,
				.uid = OTHER,
				.has_group = k & 2,
				.gid = OTHER};
			struct stat st;

			CHECK_EQ(change_run(top, "f", &c), -EPERM);
			st = of(top, "f");
			CHECK_EQ(st.st_uid, before.st_uid);
			CHECK_EQ(st.st_gid, before.st_gid);
			CHECK_EQ(st.st_mode & 07777, 06755);
		}
	}
	close(top);
}

static void what_it_has_it_keeps(void)
{
	int top = open(scratch_dir(), O_RDONLY | O_DIRECTORY);
	const struct change same = {.has_mode = true,
		.mode = 04711,
		.has_owner = true,
		.uid = geteuid(),
		.has_group = true,
		.gid = getegid()};
	const struct change other = {
		.has_mode = true, .mode = 0600, .has_owner = true, .uid = OTHER};
	struct change c = {.has_mode = true, .mode = 04700};

	make(top, "f", 04755);
	CHECK_EQ(change_run(top, "f", &same), 0);
	CHECK_EQ(of(top, "f").st_mode & 07777, 04711);
	CHECK_EQ(change_run(top, "f", &c), 0);
	c.mode = 06700;
	CHECK_EQ(change_run(top, "f", &c), -EPERM);
	CHECK_EQ(of(top, "f").st_mode & 07777, 04700);
	c.set_id = true;
	CHECK_EQ(change_run(top, "f", &c), 0);
	CHECK_EQ(of(top, "f").st_mode & 07777, 06700);
	if (!geteuid()) {
		CHECK_EQ(change_run(top, "f", &other), 0);
		CHECK_EQ(of(top, "f").st_uid, OTHER);
		CHECK_EQ(of(top, "f").st_mode & 07777, 0600);
	}
	close(top);
}

static void only_what_was_seen(void)
{
	int top = open(scratch_dir(), O_RDONLY | O_DIRECTORY);
	struct change c = {.has_mtime = true, .has_mode = true, .mode = 0640, .mtime_s = 7};
	struct stat st;

	make(top, "f", 0600);
	make(top, "g", 0600);
	CHECK_EQ(mkdirat(top, "d", 0700), 0);
	st = of(top, "f");
	c.has_seen = true;
	c.seen = (struct message_seen){.size = 1,
		.mtime_s = st.st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st.st_mtim.tv_nsec,
		.change = seen_change(&st)};
	CHECK_EQ(change_run(top, "f", &c), -ESTALE);
	c.seen.size = 0;
	c.seen.mtime_s++;
	CHECK_EQ(change_run(top, "f", &c), -ESTALE);
	c.seen.mtime_s--;
	c.seen.mtime_ns ^= 1;
	CHECK_EQ(change_run(top, "f", &c), -ESTALE);
	c.seen.mtime_ns ^= 1;
	c.seen.change ^= 1;
	CHECK_EQ(change_run(top, "f", &c), -ESTALE);
	CHECK_EQ(change_run(top, "d", &c), -ESTALE);
	CHECK_EQ(of(top, "f").st_mode & 07777, 0600);
	c.seen.change = 0; /* not known */
	CHECK_EQ(change_run(top, "f", &c), 0);
	CHECK_EQ(of(top, "f").st_mode & 07777, 0640);
	CHECK_EQ(of(top, "f").st_mtim.tv_sec, 7);
	/* it has the time, so nobody takes it for what it is not */
	c.mode = 0600;
	CHECK_EQ(change_run(top, "f", &c), 0);
	CHECK_EQ(of(top, "f").st_mode & 07777, 0600);
	close(top);
}

HARNESS_MAIN({"another_owner_gets_no_set_id", another_owner_gets_no_set_id},
	{"what_it_has_it_keeps", what_it_has_it_keeps}, {"only_what_was_seen", only_what_was_seen})
