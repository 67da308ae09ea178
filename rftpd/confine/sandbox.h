/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine/sandbox: what the daemon gives up for ever once it is set up: all files but those
 * that it serves, writes and reads again (Landlock), and all system calls but its own (seccomp).
 */
#ifndef RFTPD_SANDBOX_H
#define RFTPD_SANDBOX_H

#include "rftpd/daemon_settings.h"

#include <stdbool.h>
#include <sys/types.h>

#define SANDBOX_EXPORTS_MAX 64u

struct sandbox_export {
	int top; /* its descriptor, while the sandbox is entered */
	bool writable;
	dev_t device;
	ino_t inode;
};

struct sandbox {
	bool files; /* nothing but what was named at the start can be reached */
	struct sandbox_export exports[SANDBOX_EXPORTS_MAX];
	unsigned export_count;
};

/* A directory that will be served.  Before sandbox_enter, which needs the descriptor.  -ENOSPC. */
int sandbox_add(struct sandbox *, int top, bool writable);

/*
 * Enters it, as far as this kernel has it, and says in the log what holds.  Before any thread is
 * started: those that are there stay outside.  `config`: the file that a reload reads; NULL: none.
 * 0; -EINVAL: require-sandbox, and it cannot be had; logged.
 */
int sandbox_enter(struct sandbox *, const struct daemon_settings *, const char *config);
/* Whether it could be entered, as far as one can tell without doing so.  0 or -EINVAL, logged. */
int sandbox_check(const struct daemon_settings *);

/* Whether this directory may be served from within: it is one of those from before, or beneath one,
 * that was writable if this is to be. */
bool sandbox_reaches(const struct sandbox *, int top, bool writable);

#endif
