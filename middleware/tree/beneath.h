/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/beneath: names beneath a directory descriptor that they cannot leave.
 *
 * Every call resolves with openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS): "..", absolute links
 * and symbolic links may be used as long as the result stays beneath `top`; else -EXDEV.  Leading
 * slashes of a path are dropped: it is absolute from `top`.  "" and "/" are `top` itself.  With
 * `top` AT_FDCWD the path is the user's own and is resolved as usual.
 *
 * A path may be of any length: one that is longer than the kernel takes (4095 bytes) is resolved in
 * parts, each beneath the directory that the one before led to; a ".." or a link that leads out of
 * that is -EXDEV then.
 *
 * 0 or a descriptor, or -errno.  -ENAMETOOLONG, -ELOOP, -EACCES, ... as the kernel says them.
 */
#ifndef TREE_BENEATH_H
#define TREE_BENEATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Whether this kernel has openat2 (5.6); without it a confined tree cannot be served. */
bool beneath_supported(void);

int beneath_open(int top, const char *path, int flags, mode_t mode); /* O_CLOEXEC is added */
int beneath_stat(int top, const char *path, bool follow, struct stat *);
/* What a symbolic link says, with a NUL behind: its bytes; -EINVAL: it is none; -ENAMETOOLONG:
 * `size` is not enough. */
ssize_t beneath_read_link(int top, const char *path, char *target, size_t size);
/*
 * Opens the directory that holds the last component (to be created, removed or renamed) and copies
 * that component to `last`.  -EINVAL: the path has no last component of its own ("", "/", ends in
 * "..").  Trailing slashes are ignored.
 */
int beneath_open_parent(int top, const char *path, char last[256]);
/* With `parents`, missing directories on the way are made (0777 less umask), and one that is there
 * already is fine; else it is -EEXIST.  On stable storage on return. */
int beneath_mkdir(int top, const char *path, mode_t mode, bool parents);
/* The same without waiting for the storage. */
int beneath_mkdir_unsynced(int top, const char *path, mode_t mode, bool parents);
int beneath_rmdir(int top, const char *path);
int beneath_unlink(int top, const char *path); /* -EISDIR for a directory */
/* Without `replace` an existing target is -EEXIST.  A target on another file system is -EREMOTE, to
 * keep it apart from -EXDEV above. */
int beneath_rename(int top, const char *from, const char *to, bool replace);

/* The same with the directories open already; `from` and `to` are names in them.  -EXDEV as usual.
 */
int beneath_rename_at(int from_dir, const char *from, int to_dir, const char *to, bool replace);
/* Flushes a directory's entries; file systems and descriptors that cannot are no error. */
int beneath_sync(int dir);

#endif
