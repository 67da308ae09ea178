/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/tree_mark: a hidden file in the destination of a transfer of many files, there as long as
 * that is not over.
 *
 * Who finds one that was left behind goes on with that transfer: files that have landed since it
 * began, and are what the source is, need not come again.  Its name is ".rftp-" + 16 hex digits of
 * XXH3-64 of the first name that came, up to its first '/', + ".tree"; it holds one record of
 * rftp-journal(5), and its modification time is when the transfer began.  Who uses it holds a lock
 * (flock) on it.
 */
#ifndef TREE_TREE_MARK_H
#define TREE_TREE_MARK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define TREE_MARK_NAME_BYTES sizeof(".rftp-0123456789abcdef.tree")

struct tree_mark;

bool tree_mark_is_name(const char *name);
/* Whether there is one in the directory: a transfer into it was cut short, or runs.  Of a very
 * large directory only a part is looked at. */
bool tree_mark_any(int dir);

/* `dir` must stay open as long as the mark; `began`: when this transfer did, for a new one.
 * -EBUSY: another transfer has it; other -errno: there can be none. */
int tree_mark_open(
	int dir, const char *first, const struct timespec *began, struct tree_mark **out);
/* The transfer is over, or was cut short: then the mark stays.  Takes NULL. */
void tree_mark_close(struct tree_mark *, bool over);
/* Whether one was left behind, and what is now called like a file has landed since. */
bool tree_mark_covers(const struct tree_mark *, const struct stat *now);

/* What one is called after, in `first` (256 bytes), when it was last used, and whether somebody
 * uses it now.  0 or -errno: it cannot be read; -ENODATA: it says nothing. */
int tree_mark_get(int dir, const char *name, char first[256], int64_t *used_s, bool *busy);
/* Removes one that nobody uses, and that was last used `keep_s` ago.  0; -EBUSY: somebody uses it;
 * -EAGAIN: it is too young; -errno. */
int tree_mark_sweep(int dir, const char *name, uint64_t keep_s);

#endif
