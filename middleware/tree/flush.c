/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/flush.c: see flush.h.
 */
#include "tree/flush.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FLUSH_FEW 4u          /* so few files are flushed one by one */
#define FLUSH_TRY_OTHER 64u   /* every so many times */
#define FLUSH_OLD_WEIGHT 3u   /* of what was measured before, to 1 of what is measured now */
#define FLUSH_KERNEL_MAJOR 5u /* the first whose syncfs tells of errors */
#define FLUSH_KERNEL_MINOR 8u

void flush_look(int dir, struct flush_place *place)
{
	struct statfs fs;
	struct stat st;

	*place = (struct flush_place){0};
	if (fstat(dir, &st) || fstatfs(dir, &fs))
		return;
	place->dev = st.st_dev;
	place->memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
	place->device =
		major(st.st_dev) && fs.f_type != FUSE_SUPER_MAGIC && fs.f_type != MSDOS_SUPER_MAGIC;
}

/* Whether this kernel's syncfs tells of errors. */
static bool flush_tells(void)
{
	unsigned first = 0, second = 0;
	struct utsname host;

	if (uname(&host) || sscanf(host.release, "%u.%u", &first, &second) != 2)
		return false;
	return first > FLUSH_KERNEL_MAJOR ||
	       (first == FLUSH_KERNEL_MAJOR && second >= FLUSH_KERNEL_MINOR);
}

enum flush_way flush_choose(
	struct flush_costs *costs, const struct flush_place *place, unsigned count)
{
	uint64_t all = atomic_load(&costs->all_ns), each = atomic_load(&costs->each_ns);
	enum flush_way way;

	if (!place->device || count < FLUSH_FEW || !flush_tells())
		return FLUSH_EACH;
	if (!all)
		return FLUSH_ALL;
	if (!each)
		return FLUSH_EACH;
	way = all <= each ? FLUSH_ALL : FLUSH_EACH;
	if (atomic_fetch_add(&costs->turn, 1) % FLUSH_TRY_OTHER == FLUSH_TRY_OTHER - 1)
		way = way == FLUSH_ALL ? FLUSH_EACH : FLUSH_ALL;
	return way;
}

static int flush_one(int fd)
{
	int n;

	do
		n = fsync(fd);
	while (n && errno == EINTR);
	return n ? -errno : 0;
}

static void flush_each(const int *fds, int *errors, unsigned count)
{
	/* all of them are on their way before the first one is waited for */
	for (unsigned i = 0; i < count && count > 1; i++)
		(void)sync_file_range(fds[i], 0, 0, SYNC_FILE_RANGE_WRITE);
	for (unsigned i = 0; i < count; i++)
		errors[i] = flush_one(fds[i]);
}

static void flush_note(atomic_uint_least64_t *cost, uint64_t ns)
{
	uint64_t before = atomic_load(cost);

	atomic_store(cost,
		(before ? (before * FLUSH_OLD_WEIGHT + ns) / (FLUSH_OLD_WEIGHT + 1) : ns) + 1);
}

void flush_files(struct flush_costs *costs, const struct flush_place *place, const int *fds,
	int *errors, unsigned count)
{
	enum flush_way way = flush_choose(costs, place, count);
	uint64_t start = clock_now_ns();

	if (!count)
		return;
	for (unsigned i = 0; i < count; i++)
		errors[i] = 0;
	/* a descriptor tells of the errors since it was opened: the first is older than any write
	 */
	if (way == FLUSH_EACH || syncfs(fds[0]))
		flush_each(fds, errors, count);
	if (count >= FLUSH_FEW)
		flush_note(way == FLUSH_ALL ? &costs->all_ns : &costs->each_ns,
			(clock_now_ns() - start) / count);
}
