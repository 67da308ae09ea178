/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/preload/hang.c: a directory that does not answer, as a file server that has gone; or a
 * device that does not.
 *
 * Preloaded into a program, it makes every openat2 of a path with the component RFTP_TEST_HANG in
 * it wait for as long as the file RFTP_TEST_GATE is there, and one with the component
 * RFTP_TEST_SLOW in it take a tenth of a second while it is; or, with RFTP_TEST_HANG_FREE, every
 * close of an eventfd, which is what freeing queues of completions does.  Who waits makes a file
 * beside it first, RFTP_TEST_GATE.N, so that a test can see it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...);

static void wait_at(const char *gate)
{
	static _Atomic unsigned count;
	char name[4096];
	int fd;

	snprintf(name, sizeof name, "%s.%u", gate, count++);
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	while (!access(gate, F_OK)) /* the test opens it by removing the file */
		usleep(5000);
}

static int is_eventfd(int fd)
{
	char name[64], target[64];
	ssize_t n;

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	n = readlink(name, target, sizeof target - 1);
	if (n < 0)
		return 0;
	target[n] = '\0';
	return !!strstr(target, "eventfd");
}

int close(int fd)
{
	const char *gate = getenv("RFTP_TEST_GATE");
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");

	if (gate && getenv("RFTP_TEST_HANG_FREE") && !access(gate, F_OK) && is_eventfd(fd))
		wait_at(gate);
	return next(fd);
}

long syscall(long number, ...)
{
	const char *hang = getenv("RFTP_TEST_HANG"), *gate = getenv("RFTP_TEST_GATE");
	const char *slow = getenv("RFTP_TEST_SLOW");
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_openat2 && hang && gate && strstr((const char *)a[1], hang) &&
		!access(gate, F_OK))
		wait_at(gate);
	if (number == SYS_openat2 && slow && gate && strstr((const char *)a[1], slow) &&
		!access(gate, F_OK))
		usleep(100000);
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
