/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/children: see children.h.
 */
#include "rftpd/children.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t ended; /* of the processes that were started */
static unsigned started;

static void take_ended(int number)
{
	int before = errno;

	(void)number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		ended = (sig_atomic_t)((unsigned)ended + 1);
	errno = before;
}

void children_watch(void)
{
	struct sigaction reap = {.sa_handler = take_ended, .sa_flags = SA_RESTART};

	sigaction(SIGCHLD, &reap, NULL);
}

int children_fork(unsigned most)
{
	pid_t pid = started - (unsigned)ended < most ? fork() : -1;

	if (!pid)
		signal(SIGCHLD, SIG_DFL);
	started += pid > 0;
	return pid;
}
