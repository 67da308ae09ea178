/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/feed/feed_source.c: see feed_source.h.
 *
 * A command runs in a process group of its own: a Ctrl-C is meant for the feed, which then ends its
 * sources in order.
 */
#include "rftp/feed/feed_source.h"

#include "base/clock.h"
#include "proto/message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* of all pipes of a feed: an unprivileged user has 64 MiB in all */
#define PIPES_BYTES (32 << 20)
#define PIPE_BYTES_MIN 65536
#define REAP_NS (3 * NS_PER_S)
#define REAP_STEP_MS 5

extern char **environ;

int feed_source_parse(struct feed_source *s, const char *word, const char **why)
{
	const char *equals = strchr(word, '=');

	*s = (struct feed_source){0};
	*why = NULL;
	if (!equals || equals == word || !equals[1] || (equals[1] == '|' && !equals[2]))
		*why = "not NAME=SOURCE (SOURCE is a FIFO, a file, or '|COMMAND')";
	else if (!message_name_ok(
			 (struct wire_bytes){(const uint8_t *)word, (size_t)(equals - word)}))
		*why = "the name cannot be that of a directory";
	if (*why)
		return -EINVAL;
	s->name = strndup(word, (size_t)(equals - word));
	s->from = equals + 1;
	return s->name ? 0 : -ENOMEM;
}

void feed_source_fini(struct feed_source *s)
{
	feed_source_reap(s, FEED_REAP_NOW);
	end_free(s->end);
	free(s->name);
	*s = (struct feed_source){0};
}

bool feed_source_is_command(const struct feed_source *s)
{
	return s->from[0] == '|';
}

static int spawn(struct feed_source *s, int out)
{
	const char *argv[] = {"sh", "-c", s->from + 1, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(
		&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setsigmask(&attr, &none);
	err = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn(
			&s->pid, "/bin/sh", &actions, &attr, (char *const *)argv, environ);
	if (err)
		s->pid = 0;
	else
		feed_keeper_add(s->keeper, s->pid);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -err;
}

static int open_command(struct feed_source *s)
{
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	err = spawn(s, fds[1]);
	close(fds[1]);
	if (err) {
		close(fds[0]);
		return err;
	}
	return fds[0];
}

int feed_source_open(struct feed_source *s, unsigned share, const struct feed_keeper *keeper)
{
	int fd, most = PIPES_BYTES / (int)share, err;

	s->keeper = keeper;
	/* a FIFO's writer may come later; a terminal does not become ours */
	fd = feed_source_is_command(s)
		     ? open_command(s)
		     : open(s->from, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return feed_source_is_command(s) ? fd : -errno;
	err = end_stream_open(fd, false, false, &s->end);
	if (!err && most < 1 << 20)
		(void)fcntl(fd, F_SETPIPE_SZ, most > PIPE_BYTES_MIN ? most : PIPE_BYTES_MIN);
	return err;
}

/* Waits for it until then: whether it has ended. */
static bool wait_until(struct feed_source *s, uint64_t deadline_ns, int *status)
{
	for (;;) {
		pid_t pid = waitpid(s->pid, status, WNOHANG);

		if (pid == s->pid || (pid < 0 && errno != EINTR))
			return true;
		if (!clock_until_ms(deadline_ns))
			return false;
		poll(NULL, 0, REAP_STEP_MS);
	}
}

/* Its leader has ended: what it left running in the group ends, too.  The group's number is not
 * given anew as long as there is a member. */
static void end_group(pid_t group, uint64_t deadline_ns)
{
	if (kill(-group, SIGTERM))
		return;
	while (clock_until_ms(deadline_ns)) {
		poll(NULL, 0, REAP_STEP_MS);
		if (kill(-group, 0))
			return;
	}
	kill(-group, SIGKILL);
}

int feed_source_reap(struct feed_source *s, enum feed_reap how)
{
	static const uint64_t patience_ns[] = {[FEED_REAP_IF_ENDED] = REAP_STEP_MS * NS_PER_MS,
		[FEED_REAP_SOON] = REAP_NS,
		[FEED_REAP_NOW] = 0};
	int status = 0;

	if (!s->pid)
		return -1;
	if (!wait_until(s, clock_now_ns() + patience_ns[how], &status)) {
		if (how == FEED_REAP_IF_ENDED)
			return -1;
		kill(-s->pid, SIGTERM);
		if (!wait_until(s, clock_now_ns() + REAP_NS, &status)) {
			kill(-s->pid, SIGKILL);
			while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
				;
		}
		status = 0; /* as we wanted it */
	}
	end_group(s->pid, clock_now_ns() + (how == FEED_REAP_IF_ENDED ? 0 : REAP_NS));
	feed_keeper_remove(s->keeper, s->pid);
	s->pid = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
