/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine/landlock: the kernel's Landlock: what this process may do with files, by directory,
 * and on which TCP ports it may listen.  What no rule allows is refused, also to root.
 *
 * The kernel's interface is stated here as far as it is used: its header comes with the kernel that
 * the host was built with, and knows less than the one that runs.
 */
#ifndef RFTPD_LANDLOCK_H
#define RFTPD_LANDLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* linux/landlock.h */
#define LANDLOCK_EXECUTE (UINT64_C(1) << 0)
#define LANDLOCK_WRITE_FILE (UINT64_C(1) << 1)
#define LANDLOCK_READ_FILE (UINT64_C(1) << 2)
#define LANDLOCK_READ_DIR (UINT64_C(1) << 3)
#define LANDLOCK_REMOVE_DIR (UINT64_C(1) << 4)
#define LANDLOCK_REMOVE_FILE (UINT64_C(1) << 5)
#define LANDLOCK_MAKE_CHAR (UINT64_C(1) << 6)
#define LANDLOCK_MAKE_DIR (UINT64_C(1) << 7)
#define LANDLOCK_MAKE_REG (UINT64_C(1) << 8)
#define LANDLOCK_MAKE_SOCK (UINT64_C(1) << 9)
#define LANDLOCK_MAKE_FIFO (UINT64_C(1) << 10)
#define LANDLOCK_MAKE_BLOCK (UINT64_C(1) << 11)
#define LANDLOCK_MAKE_SYM (UINT64_C(1) << 12)
#define LANDLOCK_REFER (UINT64_C(1) << 13)     /* from version 2 on */
#define LANDLOCK_TRUNCATE (UINT64_C(1) << 14)  /* 3 */
#define LANDLOCK_IOCTL_DEV (UINT64_C(1) << 15) /* 5 */

#define LANDLOCK_PORTS 4
#define LANDLOCK_LEAST 2 /* before, nothing could be moved between directories */

struct landlock {
	int fd; /* of the rules; -1: none */
	int version;
	bool ports, connects; /* to listen needs rules, and so does to connect */
	uint64_t files;       /* the rights that this version knows */
};

/* The version that the kernel has; 0: none, or it is shut off. */
int landlock_version(void);

/* Begins with no rule at all.  `ports`: listening on a TCP port needs a rule, too, from version 4
 * on; to connect to one does so unless `anywhere`.  -EOPNOTSUPP: the kernel has none, or one
 * before LANDLOCK_LEAST.  landlock_close afterwards. */
int landlock_open(struct landlock *, bool ports, bool anywhere);
void landlock_close(struct landlock *);

/* Allows `rights` at `path` and beneath it; of a file, those that make sense for one.  A link is
 * followed now, once.  -ENOENT: there is nothing. */
int landlock_allow(struct landlock *, const char *path, uint64_t rights);
/* The same for a directory that is open already. */
int landlock_allow_at(struct landlock *, int fd, uint64_t rights);
/* Allows to listen on a TCP port. */
int landlock_allow_port(struct landlock *, uint16_t port);
/* Allows to connect to one. */
int landlock_allow_connect(struct landlock *, uint16_t port);

/* From now on this thread, and those that it starts, have no more than that, for ever. */
int landlock_enter(struct landlock *);

#endif
