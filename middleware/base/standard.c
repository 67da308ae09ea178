/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/standard: see standard.h.
 */
#include "base/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int standard_fill(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* the other way round than it would be used */
		int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* the lowest number that is free, which is this one */
		if (open("/dev/null", flags) < 0)
			return -errno;
	}
	return 0;
}
