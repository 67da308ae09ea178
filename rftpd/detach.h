/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/detach: into the background, and the file with the process number.
 *
 * The fork comes first, before any thread exists; the parent stays until the child says that it
 * serves, so that whoever started it learns how it went.
 */
#ifndef RFTPD_DETACH_H
#define RFTPD_DETACH_H

#include <limits.h>

/* Forks.  In the parent: waits for the child's word and returns 1 with the exit code to use in
 * *code. In the child: 0; *fd is for detach_finish.  -errno: no fork. */
int detach_start(int *fd, int *code);
/* In the child, when it serves: tells the parent, and leaves the terminal: stdin and stdout become
 * /dev/null, and so does stderr unless it is a regular file. */
int detach_finish(int fd);

struct pid_file {
	int fd; /* -1: none; locked while we live */
	char path[PATH_MAX];
};

/* Writes our number.  -EEXIST: the file belongs to a process that lives. */
int pid_file_open(struct pid_file *, const char *path);
/* Removes it. */
void pid_file_close(struct pid_file *);

#endif
