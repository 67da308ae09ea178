/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/segment: see segment.h.
 */
#include "tree/segment.h"

#include "base/log.h"
#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/landing.h"
#include "tree/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SEGMENT_SUFFIX ".seg"
#define SEGMENT_DIGITS 8 /* at least; more come by themselves */
#define SEGMENT_DIGITS_MAX 18
#define SEGMENT_TRIES 1000 /* names that somebody else took */

/* The number of a segment's name; 0: it is none. */
static uint64_t number_of(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	if (digits < SEGMENT_DIGITS || digits > SEGMENT_DIGITS_MAX ||
		strcmp(name + digits, SEGMENT_SUFFIX))
		return 0;
	return strtoull(name, NULL, 10);
}

static int find_last(int dir, uint64_t *last)
{
	int fd = opener_openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	struct dirent *entry;
	DIR *names;

	*last = 0;
	if (fd < 0)
		return -errno;
	names = fdopendir(fd);
	if (!names) {
		close(fd);
		return -ENOMEM;
	}
	while ((entry = readdir(names)))
		if (number_of(entry->d_name) > *last)
			*last = number_of(entry->d_name);
	closedir(names);
	return 0;
}

int segment_dir_open(struct segment_dir *d, int top, const char *name, char text[512])
{
	const struct place place = {.top = top, .rights = PLACE_WRITE, .space = d->space};
	int err = place_mkdir(&place, name, 0777, true);

	d->fd = err ? err : beneath_open(top, name, O_RDONLY | O_DIRECTORY, 0);
	if (d->fd < 0)
		return d->fd;
	if (flock(d->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		snprintf(text, 512, "another feed writes to %.255s", name);
		err = -EBUSY;
	} else {
		err = find_last(d->fd, &d->number);
	}
	if (err)
		segment_dir_close(d);
	return err;
}

void segment_dir_close(struct segment_dir *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

int segment_open(struct segment_dir *d, struct landing **out)
{
	char name[SEGMENT_DIGITS_MAX + sizeof SEGMENT_SUFFIX + 4];
	struct landing_params params = {
		.top = d->fd, .path = name, .metadata.mode = 0666, .space = d->space};
	int err = -EEXIST;

	for (int tries = 0; err == -EEXIST && tries < SEGMENT_TRIES; tries++) {
		snprintf(name, sizeof name, "%0*llu" SEGMENT_SUFFIX, SEGMENT_DIGITS,
			(unsigned long long)++d->number);
		err = landing_open(&params, out);
	}
	return err;
}

void segment_drop(struct segment_dir *d, struct landing *landing)
{
	landing_discard(landing);
	d->number--;
}

int segment_append(struct landing *landing, uint64_t bytes, const void *data, size_t length,
	const char *device)
{
	int fd = landing_own_fd(landing), full = landing_claim(landing, length);
	size_t done = 0;

	if (full)
		return full;
	while (done < length) {
		ssize_t n =
			pwrite(fd, (const char *)data + done, length - done, (off_t)(bytes + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int err = n ? -errno : -EIO;

			if (ftruncate(fd, (off_t)bytes))
				log_warning("%s: a part of a packet cannot be taken away: %s",
					device, strerror(errno));
			return err;
		}
		done += (size_t)n;
	}
	return 0;
}

int segment_close(struct landing *landing)
{
	int err = fsync(landing_own_fd(landing)) ? -errno : 0;
	char text[512];

	if (err)
		landing_discard(landing);
	else
		err = landing_commit(landing, text);
	return err;
}
