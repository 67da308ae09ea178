/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_disks: see incoming_disks.h.
 */
#include "tree/incoming_disks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void incoming_disks_note(struct incoming_disks *d, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return;
	for (unsigned i = 0; i < d->count; i++)
		if (d->disks[i].device == st.st_dev)
			return;
	if (d->count < INCOMING_DISKS_MAX)
		d->disks[d->count].fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (d->count == INCOMING_DISKS_MAX || d->disks[d->count].fd < 0)
		d->error = -EMFILE;
	else
		d->disks[d->count++].device = st.st_dev;
}

int incoming_disks_flush(const struct incoming_disks *d)
{
	int err = d->error;

	for (unsigned i = 0; i < d->count; i++)
		if (syncfs(d->disks[i].fd) && !err)
			err = -errno;
	return err;
}

void incoming_disks_fini(struct incoming_disks *d)
{
	while (d->count)
		close(d->disks[--d->count].fd);
}
