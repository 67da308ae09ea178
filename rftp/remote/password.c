/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/password: see password.h.
 */
#include "rftp/remote/password.h"

#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int password_open_private(const char *path, char why[PASSWORD_WHY_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
		snprintf(why, PASSWORD_WHY_MAX, "%.300s: %s", path, strerror(-err));
	} else if (!S_ISREG(st.st_mode) || st.st_mode & 077 ||
		   (st.st_uid != geteuid() && st.st_uid)) {
		err = -EPERM;
		snprintf(why, PASSWORD_WHY_MAX,
			"%.300s: others may read or change it (mode %04o, owner %u): chmod 600 it",
			path, (unsigned)st.st_mode & 07777, (unsigned)st.st_uid);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

static int explain(int err, const char *what, char why[PASSWORD_WHY_MAX])
{
	if (err)
		snprintf(why, PASSWORD_WHY_MAX, "%.300s: %s", what,
			err == -ENODATA  ? "there is no password in its first line"
			: err == -E2BIG  ? "its first line is too long for a password"
			: err == -EINVAL ? "its first line has a NUL"
					 : strerror(-err));
	return err;
}

int password_read_file(const char *path, char password[PASSWORD_MAX], char why[PASSWORD_WHY_MAX])
{
	int fd = password_open_private(path, why), err;

	if (fd < 0)
		return fd;
	err = secret_read_line(fd, -1, password, PASSWORD_MAX);
	close(fd);
	return explain(err, path, why);
}

/* With the signals' default actions, and its output to `to`. */
static int start(char *const argv[], int to, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int err;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&files, to, STDOUT_FILENO);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	err = posix_spawnp(pid, argv[0], &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

int password_read_program(char *const argv[], const char *what, int cancel_fd,
	char password[PASSWORD_MAX], char why[PASSWORD_WHY_MAX])
{
	int ends[2], err, status;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return explain(-errno, what, why);
	err = start(argv, ends[1], &pid);
	close(ends[1]);
	if (err) {
		close(ends[0]);
		return explain(err, what, why);
	}
	err = secret_read_line(ends[0], cancel_fd, password, PASSWORD_MAX);
	close(ends[0]);
	if (err == -ECANCELED)
		kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* one that writes more than a line may have been cut off by us */
	if ((!err || err == -ENODATA) && WIFEXITED(status) && WEXITSTATUS(status)) {
		explicit_bzero(password, PASSWORD_MAX);
		snprintf(why, PASSWORD_WHY_MAX, "%.300s: it ended with %d", what,
			WEXITSTATUS(status));
		return -ECHILD;
	}
	if ((!err || err == -ENODATA) && WIFSIGNALED(status) && WTERMSIG(status) != SIGPIPE) {
		explicit_bzero(password, PASSWORD_MAX);
		snprintf(why, PASSWORD_WHY_MAX, "%.300s: it was ended by signal %d", what,
			WTERMSIG(status));
		return -ECHILD;
	}
	return explain(err, what, why);
}

int password_read_command(
	const char *command, int cancel_fd, char password[PASSWORD_MAX], char why[PASSWORD_WHY_MAX])
{
	char *const argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)command, NULL};

	return password_read_program(argv, command, cancel_fd, password, why);
}
