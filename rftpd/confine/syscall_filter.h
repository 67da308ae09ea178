/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine/syscall_filter: the system calls that the daemon makes, and no others (seccomp).
 *
 * No program is started, no process made, no other looked at, nothing mounted, no identity changed,
 * no packet socket opened, and no memory both written and executed.  A call that is not on the list
 * is answered with ENOSYS, as by a kernel that does not know it, so that the C library falls back
 * on an older one where it can.
 */
#ifndef RFTPD_SYSCALL_FILTER_H
#define RFTPD_SYSCALL_FILTER_H

#include <stdbool.h>

bool syscall_filter_supported(void);

/* For every thread of the process, from now on.  How many calls are allowed, or -errno. */
int syscall_filter_enter(void);

#endif
