/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/doctor/doctor_disk.c: whether files in a directory can be written and read past the page
 * cache, and asynchronously.  The trial's file has no name, or loses it at once.
 */
#include "rftp/doctor/doctor_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DISK_TRIAL_BYTES (1u << 20)
#define DISK_ALIGN 4096

void doctor_aio(struct doctor *d)
{
	io_context_t ctx = NULL;
	int err = io_setup(64, &ctx); /* -errno */

	if (!err) {
		io_destroy(ctx);
		doctor_say(d, DOCTOR_OK, "", NULL, "64 requests at once");
	} else if (err == -EAGAIN) {
		doctor_say(d, DOCTOR_WARN, "", "sysctl fs.aio-max-nr=1048576",
			"the host's requests are all taken: files are read and written in turn");
	} else {
		doctor_say(d, DOCTOR_INFO, "", NULL, "not in this kernel (%s): threads do without",
			strerror(-err));
	}
}

/* A file to write and read with O_DIRECT, that is gone when it is closed. */
static int disk_open(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600), saved;
	char *path = NULL;

	/* not every file system has files without a name */
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	if (asprintf(&path, "%s/.rftp-doctor-XXXXXX", directory) < 0)
		return -ENOMEM;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0) {
		int direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);

		saved = errno;
		unlink(path);
		close(fd);
		errno = saved;
		fd = direct;
	}
	saved = errno;
	free(path);
	return fd < 0 ? -saved : fd;
}

static int disk_one(io_context_t ctx, struct iocb *request)
{
	struct io_event event;
	int err = io_submit(ctx, 1, &request);

	if (err == 1)
		err = io_getevents(ctx, 1, 1, &event, NULL);
	if (err < 0)
		return err;
	return err == 1 && (long)event.res == (long)DISK_TRIAL_BYTES ? 0
	       : (long)event.res < 0                                 ? (int)(long)event.res
								     : -EIO;
}

/* Writes a pattern and reads it back. */
static int disk_trial(int fd)
{
	io_context_t ctx = NULL;
	uint8_t *out = NULL, *in = NULL;
	struct iocb request;
	int err = io_setup(1, &ctx);

	if (err)
		return err;
	if (posix_memalign((void **)&out, DISK_ALIGN, DISK_TRIAL_BYTES) ||
		posix_memalign((void **)&in, DISK_ALIGN, DISK_TRIAL_BYTES)) {
		err = -ENOMEM;
		goto out_free;
	}
	for (unsigned i = 0; i < DISK_TRIAL_BYTES; i++)
		out[i] = (uint8_t)(i * 131u >> 7);
	io_prep_pwrite(&request, fd, out, DISK_TRIAL_BYTES, 0);
	err = disk_one(ctx, &request);
	if (err)
		goto out_free;
	io_prep_pread(&request, fd, in, DISK_TRIAL_BYTES, 0);
	err = disk_one(ctx, &request);
	if (!err && memcmp(in, out, DISK_TRIAL_BYTES))
		err = -EIO;
out_free:
	free(out);
	free(in);
	io_destroy(ctx);
	return err;
}

void doctor_direct(struct doctor *d)
{
	bool asked = d->direct == END_DIRECT_ON;
	int fd = disk_open(d->directory), err = fd < 0 ? fd : disk_trial(fd);

	if (fd >= 0)
		close(fd);
	switch (err) {
	case 0:
		doctor_say(d, DOCTOR_OK, d->directory, NULL,
			"1 MiB was written and read back by libaio");
		break;
	case -EINVAL:
	case -EOPNOTSUPP:
		doctor_say(d, asked ? DOCTOR_FAIL : DOCTOR_INFO, d->directory,
			asked ? "rftp --direct=auto ..." : NULL,
			"its file system has none: files there go through the page cache");
		break;
	case -EACCES:
	case -EPERM:
	case -EROFS:
		doctor_say(
			d, DOCTOR_SKIP, d->directory, NULL, "cannot be tried: %s", strerror(-err));
		break;
	case -ENOENT:
	case -ENOTDIR:
		doctor_say(d, DOCTOR_FAIL, d->directory, "mkdir -p, or another directory", "%s",
			strerror(-err));
		break;
	case -ENOSPC:
	case -EDQUOT:
		doctor_say(d, DOCTOR_FAIL, d->directory, "df -h, df -i", "%s", strerror(-err));
		break;
	case -EAGAIN:
	case -ENOSYS:
		doctor_say(d, DOCTOR_SKIP, d->directory, NULL, "see the row libaio");
		break;
	default:
		doctor_say(d, DOCTOR_FAIL, d->directory, "dmesg | tail", "%s", strerror(-err));
	}
}
