/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/input: see input.h.
 */
#include "base/input.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

ssize_t input_read(int fd, int cancel_fd, void *data, size_t size)
{
	struct pollfd fds[2] = {{fd, POLLIN, 0}, {cancel_fd, POLLIN, 0}};
	ssize_t n;

	for (;;) {
		if (poll(fds, 2, -1) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		if (fds[1].revents)
			return -ECANCELED;
		n = read(fd, data, size);
		if (n >= 0 || errno != EINTR)
			return n < 0 ? -errno : n;
	}
}
