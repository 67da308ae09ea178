/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/detach: see detach.h.
 */
#include "rftpd/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int detach_start(int *fd, int *code)
{
	int fds[2], status;
	char word;
	pid_t child;
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child < 0) {
		int r = -errno;

		close(fds[0]);
		close(fds[1]);
		return r;
	}
	if (!child) {
		close(fds[0]);
		*fd = fds[1];
		setsid();
		return 0;
	}
	close(fds[1]);
	do
		n = read(fds[0], &word, 1);
	while (n < 0 && errno == EINTR);
	close(fds[0]);
	*code = 0;
	/* without a word it ended, and said why */
	if (n != 1 && waitpid(child, &status, 0) == child)
		*code = WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
	return 1;
}

int detach_finish(int fd)
{
	struct stat st;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int r = 0;

	if (null < 0)
		return -errno;
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		r = -errno;
	if (!r && (fstat(STDERR_FILENO, &st) || !S_ISREG(st.st_mode)) &&
		dup2(null, STDERR_FILENO) < 0)
		r = -errno;
	if (null > STDERR_FILENO)
		close(null);
	if (!r && write(fd, "", 1) != 1)
		r = -errno;
	close(fd);
	return r;
}

/* ---- the file with our number ---- */

static int lock_and_write(struct pid_file *f)
{
	struct stat st, named;
	char text[32];
	int len;

	if (flock(f->fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EEXIST : -errno;
	/* its owner may have removed it between our open and our lock */
	if (fstat(f->fd, &st) < 0 || stat(f->path, &named) < 0)
		return -errno;
	if (st.st_ino != named.st_ino || st.st_dev != named.st_dev)
		return -EEXIST;
	len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
	if (ftruncate(f->fd, 0) < 0 || pwrite(f->fd, text, (size_t)len, 0) != len)
		return errno ? -errno : -EIO;
	return 0;
}

int pid_file_open(struct pid_file *f, const char *path)
{
	char here[PATH_MAX] = "";
	int r;

	f->fd = -1;
	if (path[0] != '/' && !getcwd(here, sizeof here))
		return -errno;
	if (snprintf(f->path, sizeof f->path, "%s%s%s", here, *here ? "/" : "", path) >=
		(int)sizeof f->path)
		return -ENAMETOOLONG;
	f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (f->fd < 0)
		return -errno;
	errno = 0;
	r = lock_and_write(f);
	if (r) {
		close(f->fd);
		f->fd = -1;
	}
	return r;
}

void pid_file_close(struct pid_file *f)
{
	if (f->fd < 0)
		return;
	unlink(f->path);
	close(f->fd);
	f->fd = -1;
}
