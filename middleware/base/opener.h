/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/opener: a process that opens and changes names as another user, and the calls on names,
 * which go there when a thread works for that user.
 *
 * The calls are the kernel's, and fail as they do: -1 and errno.  A thread without an opener makes
 * them itself.  What is open already (read, write, fstat, fsync, locks, a directory's entries)
 * needs nobody: its right was given when it was opened.
 *
 * Threads inherit the opener of the thread that starts them (base/worker).
 */
#ifndef BASE_OPENER_H
#define BASE_OPENER_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#define OPENER_VALUE_MAX 65536u

struct opener;
struct open_how;

/* Of a connection to the other process, which it takes over, also on error (-ENOMEM).  The process
 * ends with the last opener_free. */
int opener_new(int fd, uid_t uid, struct opener **out);
void opener_free(struct opener *); /* gives one reference back; takes NULL */
/* One reference more, for another session of the user; takes NULL. */
struct opener *opener_ref(struct opener *);

/* For this thread, from now on; NULL: none.  Which it had before is given back. */
struct opener *opener_use(struct opener *);
struct opener *opener_mine(void);
/* As whom this thread's calls are made. */
uid_t opener_uid(void);

/* A path must be shorter than PATH_MAX.  Any thread; one call at a time of an opener. */
int opener_openat2(int dir, const char *path, const struct open_how *);
int opener_openat(int dir, const char *path, int flags, mode_t);
int opener_fstatat(int dir, const char *path, struct stat *, int flags);
ssize_t opener_readlinkat(int dir, const char *path, char *out, size_t size);
int opener_faccessat(int dir, const char *path, int mode, int flags);
int opener_mkdirat(int dir, const char *path, mode_t);
int opener_unlinkat(int dir, const char *path, int flags);
int opener_symlinkat(const char *target, int dir, const char *path);
int opener_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int opener_utimensat(int dir, const char *path, const struct timespec times[2], int flags);
int opener_fchmod(int fd, mode_t);
/* Of any descriptor, also of one that was opened with O_PATH.  ENOSYS: the kernel cannot. */
int opener_chmod(int fd, mode_t);
int opener_futimens(int fd, const struct timespec times[2]);
int opener_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int opener_fchownat(int dir, const char *path, uid_t, gid_t, int flags);
/* Values of up to OPENER_VALUE_MAX bytes, which is the kernel's limit, too. */
ssize_t opener_fgetxattr(int fd, const char *name, void *value, size_t size);
int opener_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
int opener_fremovexattr(int fd, const char *name);

/*
 * The other process' part: answers until the connection ends.  What it may do is this process'
 * rights; a request that is none of the above, or not well-formed, ends it.
 */
void opener_serve(int fd);

#endif
