/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/temporary: the hidden names that files have while they arrive, and how those are found that
 * nobody writes to any more.
 *
 * A name is ".rftp-" + 16 hex digits + ".part": 8 of the host, 8 by chance.  Its writer holds a
 * lock (flock) on the file as long as it has it open, which the kernel takes away when the writer
 * dies, however it dies.  A file without a lock is removed; where the lock of another host's writer
 * may not be seen, or there are no locks, only one that has not been written to for a day; so a
 * symbolic link.
 */
#ifndef TREE_TEMPORARY_H
#define TREE_TEMPORARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define TEMPORARY_NAME_BYTES sizeof(".rftp-0123456789abcdef.part")

bool temporary_is_name(const char *name);
/* Whether it is one of these, or one of tree/journal's: left out of listings of trees. */
bool temporary_is_hidden(const char *name);

/* Makes a file of such a name in a directory, and locks it.  A descriptor for reading and writing,
 * or -errno. */
int temporary_create(int dir, mode_t mode, char name[TEMPORARY_NAME_BYTES]);

/* Makes a symbolic link of such a name, which has no lock.  0 or -errno. */
int temporary_symlink(int dir, const char *target, char name[TEMPORARY_NAME_BYTES]);

/* Makes another name, of that form, of the file `last` in `from`; likewise. */
int temporary_link(int from, const char *last, int dir, char name[TEMPORARY_NAME_BYTES]);

/* Whether one is left behind: 0, and it is gone if it was to be; -EBUSY: its writer has it open;
 * -EAGAIN: it may be in use, at another host; -errno.  *st is set but for names that cannot be
 * looked at. */
int temporary_check(int dir, const char *name, bool remove, struct stat *st);

struct temporary_swept {
	uint64_t files, bytes; /* removed */
};

/* Removes what is left behind in a directory, tree/journal's when nothing was added to it for
 * `keep_s`; needs no permission to read `dir` itself.  0 or
 * -errno: it could not be read.  Adds to `swept`.  Ends early once `stop`, which may be NULL, is
 * set. */
int temporary_sweep(
	int dir, uint64_t keep_s, const atomic_bool *stop, struct temporary_swept *swept);
/* For a directory that is to be removed: removes all that is left behind in it, whatever its age,
 * if there is nothing else in it; else nothing.  -ENOTEMPTY: there is, or somebody writes to some
 * of it. */
int temporary_clear(int dir);
/* As temporary_sweep for all directories beneath `top`, too; links are not followed.  For a thread
 * of its own: it takes as long as it takes, and less of the disk's time than others.  -ENOMEM. */
int temporary_sweep_tree(
	int top, uint64_t keep_s, const atomic_bool *stop, struct temporary_swept *swept);

#endif
