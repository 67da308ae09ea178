/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal_gaps: see journal_gaps.h.
 */
#include "tree/journal_gaps.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define GAPS_PAGE 4096

static int gaps_punch(int fd, uint64_t from, uint64_t to)
{
	int n;

	do
		n = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
			(off_t)(to - from));
	while (n && errno == EINTR);
	return n ? -errno : 0;
}

/* Behind the end of the file there is nothing to lose. */
int journal_gaps_check(int fd, uint64_t size)
{
	return size > TRANSFER_SIZE_MAX - GAPS_PAGE ? -EFBIG
						    : gaps_punch(fd, size, size + GAPS_PAGE);
}

int journal_gaps_empty(
	int fd, uint64_t size, const struct transfer_notes *proved, uint32_t block_bytes)
{
	uint64_t at = 0;
	int err = 0;

	if (!proved->count)
		return ftruncate(fd, 0) || ftruncate(fd, (off_t)size) ? -errno : 0;
	for (size_t i = 0; i <= proved->count && !err; i++) {
		uint64_t from = i < proved->count ? proved->items[i].index * block_bytes : size;

		if (from > at)
			err = gaps_punch(fd, at, from);
		at = from + block_bytes;
	}
	return err;
}
