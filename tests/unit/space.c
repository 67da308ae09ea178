/* SPDX-License-Identifier: Apache-2.0 */
/* tree/space: what is claimed, what is there, and what measuring makes of changes meanwhile. */
#include "tree/space.h"

#include "tests/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const atomic_bool go_on;

static int made_top(char path[64])
{
	strcpy(path, "/tmp/rftp-space-XXXXXX");
	return mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

static void make(int top, const char *name, size_t bytes)
{
	static char zeros[1 << 16];
	int fd = openat(top, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	memset(zeros, 'x', sizeof zeros);
	CHECK_EQ(write(fd, zeros, bytes), (ssize_t)bytes);
	CHECK(!fsync(fd));
	close(fd);
}

static void removed(int top, const char *path)
{
	char command[128];

	close(top);
	snprintf(command, sizeof command, "rm -rf %s", path);
	CHECK(!system(command));
}

static void what_is_claimed_is_kept_from_others(void)
{
	struct space s;
	struct space_share a = {.space = &s, .max_bytes = 1000, .max_files = 3},
			   b = {.space = &s, .max_bytes = 2000, .max_files = SPACE_NO_MAX};
	const struct space_item nothing = {0}, one = {600, 1};
	uint64_t bytes, files;
	char text[128], path[64];
	int top = made_top(path);

	CHECK(top >= 0);
	space_init(&s);
	CHECK(!space_claim(&a, 5000, 5)); /* nobody knows yet */
	space_unclaim(&a, 5000, 5);
	CHECK(!space_measure(&s, top, &go_on));
	CHECK_EQ(space_claim(&a, 1001, 1), -EDQUOT);
	CHECK_EQ(space_claim(&a, 1, 4), -EDQUOT);
	CHECK_EQ(space_claim(&a, UINT64_MAX, 1), -EDQUOT);
	CHECK(!space_claim(&a, 700, 1));
	CHECK_EQ(space_claim(&a, 301, 1), -EDQUOT);
	CHECK(!space_claim(&b, 1300, 1));
	CHECK_EQ(space_claim(&b, 1, 1), -EDQUOT);
	/* it is less than was claimed */
	space_change(&a, &nothing, &one);
	space_unclaim(&a, 700, 1);
	space_unclaim(&b, 1300, 1);
	space_left(&a, &bytes, &files);
	CHECK_EQ(bytes, 400);
	CHECK_EQ(files, 2);
	space_say(&a, text, sizeof text);
	CHECK(!strcmp(text, "quota: 400 bytes of 1000 bytes are left, 2 of 3 files are left"));
	/* in its place another one; names that are no more; what was never seen */
	space_change(&a, &one, &(struct space_item){100, 1});
	CHECK(!space_claim(&a, 900, 2));
	space_unclaim(&a, 900, 2);
	space_change(&a, &(struct space_item){5000, 9}, &nothing);
	space_left(&b, &bytes, &files);
	CHECK_EQ(bytes, 2000);
	CHECK(files == SPACE_NO_MAX);
	/* no share, or nobody counts */
	CHECK(!space_claim(NULL, UINT64_MAX, 1));
	space_change(NULL, &nothing, &one);
	space_fini(&s);
	removed(top, path);
}

static void what_is_there_is_measured(void)
{
	struct space_item item;
	struct space_share share = {.max_bytes = SPACE_NO_MAX, .max_files = SPACE_NO_MAX};
	atomic_bool stop = true;
	struct space s;
	char path[64];
	int top = made_top(path), fd;

	space_init(&s);
	share.space = &s;
	CHECK(!mkdirat(top, "d", 0700) && !mkdirat(top, "d/e", 0700));
	make(top, "d/e/f", 40960);
	make(top, "d/g", 8192);
	CHECK(!linkat(top, "d/g", top, "other", 0));
	CHECK(!symlinkat("/", top, "link"));
	make(top, ".rftp-0123456789abcdef.part", 4096);
	make(top, ".rftp-0123456789abcdef.partial", 4096);
	fd = openat(top, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, 1 << 30));
	close(fd);
	CHECK_EQ(space_measure(&s, top, &stop), -ECANCELED);
	CHECK(!s.known);
	CHECK(!space_measure(&s, top, &go_on));
	CHECK_EQ(s.bytes, 40960 + 8192 + 4096);
	CHECK_EQ(s.files, 7);
	space_look(&share, top, "d/e/f", &item);
	CHECK(item.bytes == 40960 && item.files == 1);
	space_look(&share, top, "other", &item); /* another name has its bytes, too */
	CHECK(!item.bytes && item.files == 1);
	space_look(&share, top, ".rftp-0123456789abcdef.part", &item);
	CHECK(!item.bytes && !item.files);
	space_look(&share, top, ".rftp-0123456789abcdef.partial", &item);
	CHECK(item.bytes == 4096 && !item.files);
	space_look(&share, top, "none", &item);
	CHECK(!item.bytes && !item.files);
	CHECK_EQ(linkat(top, "d/g", top, "third", 0), 0);
	CHECK(!space_measure(&s, top, &go_on));
	CHECK(s.bytes <= 40960 + 8192 + 4096 && s.bytes > 40960 + 8192 + 4090);
	space_fini(&s);
	removed(top, path);
}

/* Without changes meanwhile the measuring is believed, whatever was counted. */
static void the_count_is_put_right(void)
{
	struct space s;
	struct space_share share = {.space = &s, .max_bytes = SPACE_NO_MAX, .max_files = 9};
	const struct space_item nothing = {0}, ghost = {1 << 20, 5};
	char path[64];
	int top = made_top(path);

	space_init(&s);
	make(top, "f", 4096);
	CHECK(!space_measure(&s, top, &go_on));
	CHECK_EQ(s.bytes, 4096);
	space_change(&share, &nothing, &ghost);
	CHECK_EQ(s.files, 6);
	CHECK(!space_measure(&s, top, &go_on));
	CHECK_EQ(s.bytes, 4096);
	CHECK_EQ(s.files, 1);
	space_fini(&s);
	removed(top, path);
}

HARNESS_MAIN({"what_is_claimed_is_kept_from_others", what_is_claimed_is_kept_from_others},
	{"what_is_there_is_measured", what_is_there_is_measured},
	{"the_count_is_put_right", the_count_is_put_right})
