/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/place: what a session may touch: one directory, what may be done beneath it, and every
 * operation on names there.  Names cannot leave the directory (tree/beneath resolves them).
 *
 * Where what is there is counted (tree/space), each operation keeps the count, and what there is no
 * room for is -EDQUOT.
 *
 * An operation for which the place lacks a right does nothing: -EROFS where nothing may be changed
 * at all, else -EACCES.  All others are 0 or a descriptor, or -errno as tree/beneath and the kernel
 * say it.  Every operation may block for as long as the file system does.  A place does not change
 * while it is in use, so any number of threads may use it.
 */
#ifndef TREE_PLACE_H
#define TREE_PLACE_H

#include "tree/change.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

enum place_right {         /* bits */
	PLACE_READ = 1,    /* what is in files */
	PLACE_LIST = 2,    /* names and attributes */
	PLACE_WRITE = 4,   /* make files and directories, and replace files */
	PLACE_DELETE = 8,  /* remove and rename */
	PLACE_APPEND = 16, /* add to files that are there */
};
#define PLACE_READ_ONLY (PLACE_READ | PLACE_LIST)
#define PLACE_ALL (PLACE_READ | PLACE_LIST | PLACE_WRITE | PLACE_DELETE | PLACE_APPEND)

struct space_share;
struct place {
	int top; /* the directory's descriptor; beneath.h: AT_FDCWD for the user's own names */
	unsigned rights;
	struct space_share *space; /* what is there is counted; NULL: it is not */
	bool unsynced;             /* nothing waits until a directory that is made is on storage */
};

/* Opens the directory.  -ENOSYS: this kernel cannot keep names beneath it (beneath_supported). */
int place_open(struct place *, const char *directory, unsigned rights);
/* Does nothing to one that was closed or is {.top = -1}. */
void place_close(struct place *);

/* 0, or -errno: what a missing one of `rights` is answered with. */
int place_allows(const struct place *, unsigned rights);

/* The directory, for a transfer that does there what `rights` are for: 0 and its descriptor, which
 * stays the place's, or -errno as above. */
int place_top(const struct place *, unsigned rights, int *top);

int place_stat(const struct place *, const char *path, bool follow, struct stat *);
/* A file to read: a descriptor, which the caller closes.  A FIFO is not waited for. */
int place_open_file(const struct place *, const char *path);
int place_statfs(const struct place *, const char *path, struct statvfs *);
/* The directory's entries; closedir by the caller. */
int place_list(const struct place *, const char *path, DIR **out);
int place_mkdir(const struct place *, const char *path, mode_t mode, bool parents);
int place_rmdir(const struct place *, const char *path);
int place_remove(const struct place *, const char *path);
struct removal;
/* A directory with all that is in it; as removal_run. */
int place_remove_tree(const struct place *, const char *path, uint64_t until_ns, struct removal *);
int place_rename(const struct place *, const char *from, const char *to, bool replace);

/* Modes and times; the directory's own are not its users' to change: -EPERM. */
int place_change(const struct place *, const char *path, const struct change *);
int place_make_link(const struct place *, const char *target, const char *path);

/* Whether a file or tree may be read at `path`; or one be written: in it when it is a directory,
 * else beside it.  (What else is wrong with the path, who reads or writes there finds out.) */
int place_check_readable(const struct place *, const char *path);
int place_check_writable(const struct place *, const char *path);

#endif
