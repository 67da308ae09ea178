/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_place.c: see incoming_place.h.
 */
#include "tree/incoming_place.h"

#include "tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A FIFO must not be waited for. */
static int place_descriptor(int top, const char *path, const struct incoming_place *p)
{
	const bool append = p->offset == UINT64_MAX;
	int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | (append ? O_APPEND : 0), fd, dir;
	char last[256];

	fd = beneath_open(top, path, flags, 0);
	if (fd != -ENOENT || !p->create)
		return fd;
	fd = beneath_open(top, path, flags | O_CREAT, 0666);
	if (fd < 0)
		return fd;
	/* its name is there to stay */
	dir = beneath_open_parent(top, path, last);
	if (dir >= 0) {
		int err = beneath_sync(dir);

		close(dir);
		if (err) {
			close(fd);
			return err;
		}
	}
	return fd;
}

int incoming_place_open(
	int top, const char *path, const struct incoming_place *p, struct end **end, int *out)
{
	int fd = place_descriptor(top, path, p), err = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -ENXIO;
	else if (p->offset != UINT64_MAX && lseek(fd, (off_t)p->offset, SEEK_SET) < 0)
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	*out = fd;
	return end_stream_open(fd, true, false, end);
}
