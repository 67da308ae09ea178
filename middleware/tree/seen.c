/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/seen.c: see seen.h.
 */
#include "tree/seen.h"

#include "block/digest.h"

/* The time of the last change, of whatever kind, cannot be set: a file that was written to has
 * another one even if it was given its old modification time. */
uint64_t seen_change(const struct stat *st)
{
	const uint64_t parts[] = {
		st->st_ino, (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec};
	uint64_t number = digest_leaf(parts, sizeof(parts));

	return number ? number : 1; /* 0 is said where it is not known */
}

bool seen_has_time(const struct stat *st, int64_t mtime_s, uint32_t mtime_ns)
{
	return st->st_mtim.tv_sec == mtime_s && (uint32_t)st->st_mtim.tv_nsec == mtime_ns;
}

bool seen_is(
	const struct message_seen *seen, const struct stat *st, int64_t mtime_s, uint32_t mtime_ns)
{
	if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size != seen->size)
		return false;
	return seen_has_time(st, mtime_s, mtime_ns) ||
	       (seen_has_time(st, seen->mtime_s, seen->mtime_ns) &&
		       (!seen->change || seen->change == seen_change(st)));
}
