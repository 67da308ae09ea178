/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/monitor_user: one login of a user of the system, in a process of its own (monitor.h).
 */
#ifndef RFTPD_MONITOR_USER_H
#define RFTPD_MONITOR_USER_H

#include <stdint.h>
#include <sys/types.h>

#define MONITOR_NAME_MAX 256u
#define MONITOR_PASSWORD_MAX 4096u
#define MONITOR_ADDRESS_MAX 64u

struct monitor_ask { /* the two processes are of one program: it crosses as it is */
	char user[MONITOR_NAME_MAX], password[MONITOR_PASSWORD_MAX];
	char address[MONITOR_ADDRESS_MAX]; /* where he is; for PAM */
};
struct monitor_answer {
	int32_t error; /* 0: taken */
	uint32_t uid;
	char user[MONITOR_NAME_MAX]; /* who it is, as the host writes the name */
	char why[256];
};

struct monitor_export {
	int top; /* opened by root */
	int writable;
};

/* As root, in the process that it is for; never returns. */
void monitor_user_run(int fd, const char *service, const struct monitor_export *, unsigned count)
	__attribute__((noreturn));

#endif
