/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/aborts.h: whether a call that breaks a contract meets its assert.  Knows processes only.
 */
#ifndef TESTS_ABORTS_H
#define TESTS_ABORTS_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs run(arg) in a child, quietly: true when it ended by SIGABRT. */
static inline bool aborts(void (*run)(void *arg), void *arg)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		struct rlimit none = {0, 0};
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		setrlimit(RLIMIT_CORE, &none);
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		run(arg);
		_exit(0);
	}
	if (child < 0)
		return false;
	while (waitpid(child, &status, 0) < 0)
		;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
