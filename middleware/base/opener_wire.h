/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/opener_wire: what opener and opener_serve say to each other: both are of one program,
 * started from one another, so structs cross as they are.
 */
#ifndef BASE_OPENER_WIRE_H
#define BASE_OPENER_WIRE_H

#include "base/opener.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

enum opener_call {
	OPENER_OPENAT2 = 1,
	OPENER_OPENAT,
	OPENER_FSTATAT,
	OPENER_READLINKAT,
	OPENER_FACCESSAT,
	OPENER_MKDIRAT,
	OPENER_UNLINKAT,
	OPENER_SYMLINKAT,
	OPENER_RENAMEAT2,
	OPENER_UTIMENSAT,
	OPENER_FCHMOD,
	OPENER_FUTIMENS,
	OPENER_LINKAT,
	OPENER_FCHOWNAT,
	OPENER_FGETXATTR,
	OPENER_FSETXATTR,
	OPENER_FREMOVEXATTR,
	OPENER_CHMOD,
	OPENER_CALLS
};

struct opener_request {
	uint32_t call;
	int32_t flags;
	uint32_t mode;
	uint64_t open_flags, resolve; /* of openat2 */
	struct timespec times[2];
	uint32_t uid, gid;
	uint32_t value_bytes;
	char path[PATH_MAX], to[PATH_MAX]; /* NUL behind each; `to`: of two */
	uint8_t value[OPENER_VALUE_MAX];   /* only what there is of it crosses */
};

struct opener_reply {
	int32_t error; /* errno; 0: done */
	int32_t length;
	struct stat st;
	uint8_t value[OPENER_VALUE_MAX]; /* of readlinkat and fgetxattr: only `length` of it */
};

/* fchmodat2, also where the C library does not know it.  -1 and errno. */
int opener_change_mode(int fd, uint32_t mode);

/* One message, with up to two descriptors.  0 or -errno. */
int opener_send(int fd, const void *data, size_t size, const int *fds, unsigned count);
/* The next: its bytes, 0 at the end, -errno.  fds: those that came, -1 for others; all close on
 * exec. */
long opener_recv(int fd, void *data, size_t size, int fds[2]);

#endif
