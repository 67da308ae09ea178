/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/feed/feed_keeper.c: see feed_keeper.h.
 *
 * A shell, not a fork of ours: a copy of a process that has registered memory for RDMA may cost the
 * original its pages.
 */
#include "rftp/feed/feed_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char script[] = "trap '' HUP INT TERM\n"
			     "groups=' '\n"
			     "while read -r what group; do\n"
			     "	case $what in\n"
			     "	add) groups=\"$groups$group \" ;;\n"
			     "	*) groups=\"${groups%% $group *} ${groups#* $group }\" ;;\n"
			     "	esac\n"
			     "done\n"
			     "for group in $groups; do kill -s TERM -- -$group; done\n"
			     "for group in $groups; do sleep 3; break; done\n"
			     "for group in $groups; do kill -s KILL -- -$group; done\n";

static int spawn(struct feed_keeper *k, int in)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int err;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	err = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	for (int fd = STDOUT_FILENO; !err && fd <= STDERR_FILENO; fd++)
		err = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
	if (!err)
		err = posix_spawn(
			&k->pid, "/bin/sh", &actions, &attr, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -err;
}

int feed_keeper_start(struct feed_keeper *k)
{
	int fds[2], err;

	*k = (struct feed_keeper){0};
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	err = spawn(k, fds[0]);
	close(fds[0]);
	if (err) {
		close(fds[1]);
		k->pid = 0;
		return err;
	}
	k->fd = fds[1];
	return 0;
}

static void tell(const struct feed_keeper *k, const char *what, pid_t group)
{
	if (k->pid && dprintf(k->fd, "%s %ld\n", what, (long)group) < 0) {
		/* somebody has killed it; we still end what we started */
	}
}

void feed_keeper_add(const struct feed_keeper *k, pid_t group)
{
	tell(k, "add", group);
}

void feed_keeper_remove(const struct feed_keeper *k, pid_t group)
{
	tell(k, "remove", group);
}

void feed_keeper_stop(struct feed_keeper *k)
{
	if (!k->pid)
		return;
	close(k->fd);
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*k = (struct feed_keeper){0};
}
