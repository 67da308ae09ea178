/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/preload/old_kernel.c: a kernel without Landlock (RFTP_TEST_WITHOUT=landlock), or without
 * seccomp, as the program sees it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LANDLOCK_CREATE_RULESET 444

long syscall(long number, ...);

long syscall(long number, ...)
{
	const char *without = getenv("RFTP_TEST_WITHOUT");
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (without && ((number == LANDLOCK_CREATE_RULESET && !strcmp(without, "landlock")) ||
			       (number == SYS_seccomp && !strcmp(without, "seccomp")))) {
		errno = ENOSYS;
		return -1;
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
