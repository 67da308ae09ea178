/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal: see journal.h.
 *
 * Owns the names and the order: the journal is there and locked before its partial file is made,
 * and goes after it.  So a partial file without a journal is nobody's.
 */
#include "tree/journal_impl.h"

#include "block/digest.h"

#include "base/clock.h"
#include "base/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JOURNAL_PREFIX ".rftp-"
#define JOURNAL_SUFFIX ".journal"
#define JOURNAL_PARTIAL_SUFFIX ".partial"
#define JOURNAL_DIGITS 16
#define JOURNAL_TRIES 16     /* one that a sweeper takes away is made again */
#define JOURNAL_BUSY_TRIES 3 /* who lists leftovers has the lock for a moment */
#define JOURNAL_BUSY_NS (5 * NS_PER_MS)

_Static_assert(sizeof(JOURNAL_SUFFIX) == sizeof(JOURNAL_PARTIAL_SUFFIX), "names of one length");

bool journal_is_name(const char *name, bool journal)
{
	const char *digits = name + strlen(JOURNAL_PREFIX);

	return strlen(name) == JOURNAL_PATH_BYTES - 1 &&
	       !strncmp(name, JOURNAL_PREFIX, strlen(JOURNAL_PREFIX)) &&
	       strspn(digits, "0123456789abcdef") == JOURNAL_DIGITS &&
	       !strcmp(digits + JOURNAL_DIGITS, journal ? JOURNAL_SUFFIX : JOURNAL_PARTIAL_SUFFIX);
}

void journal_other_name(const char *name, char other[JOURNAL_PATH_BYTES])
{
	size_t stem = JOURNAL_PATH_BYTES - sizeof(JOURNAL_SUFFIX);

	snprintf(other, JOURNAL_PATH_BYTES, "%.*s%s", (int)stem, name,
		journal_is_name(name, true) ? JOURNAL_PARTIAL_SUFFIX : JOURNAL_SUFFIX);
}

/* A name that somebody else may have made, in a directory that others may write to: it is ours, and
 * nobody else can open it; we can, again, though the directory's default list may have made it one
 * that its owner may not write to. */
static int journal_check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != opener_uid() || st.st_mode & 077)
		return -EPERM;
	if (st.st_nlink != 1)
		return st.st_nlink ? -EPERM : -EAGAIN;
	return (st.st_mode & 0600) == 0600 || !opener_fchmod(fd, 0600) ? 0 : -errno;
}

static int journal_open_file(int dir, const char *path)
{
	int fd = opener_openat(
		dir, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static int journal_lock(int fd)
{
	const struct timespec pause = {.tv_nsec = JOURNAL_BUSY_NS};

	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB); tries++) {
		if (errno != EWOULDBLOCK)
			return errno == EINTR ? -EAGAIN : -errno;
		if (tries == JOURNAL_BUSY_TRIES)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
	return 0;
}

int journal_lock_file(int dir, const char *path, int *fd)
{
	int err = -EAGAIN;

	for (int tries = 0; err == -EAGAIN && tries < JOURNAL_TRIES; tries++) {
		*fd = journal_open_file(dir, path);
		if (*fd < 0)
			return *fd;
		err = journal_lock(*fd);
		if (!err)
			err = journal_check(*fd);
		if (err)
			close(*fd);
	}
	return err == -EAGAIN ? -EBUSY : err;
}

static int journal_open_partial(struct journal *j, const char *partial)
{
	int fd = journal_open_file(j->dir, partial), err;

	if (fd < 0)
		return fd;
	err = journal_check(fd);
	if (!err)
		return fd;
	close(fd);
	return err == -EAGAIN ? -EBUSY : err;
}

bool journal_is_same(const struct journal *j, const struct journal_file *file)
{
	return file->size == j->file.size && file->mtime_s == j->file.mtime_s &&
	       file->mtime_ns == j->file.mtime_ns && file->identity == j->file.identity &&
	       file->name.len == j->file.name.len &&
	       !memcmp(file->name.data, j->name, file->name.len);
}

/* Whether what is there is of another source: nothing of it counts then. */
static bool journal_is_foreign(const struct journal *j)
{
	uint8_t buf[JOURNAL_RECORD_MORE + 64 + JOURNAL_NAME_MAX];
	ssize_t n = pread(j->fd, buf, sizeof(buf), 0);
	struct journal_record r;

	return n <= 0 || journal_record_get(&r, buf, (size_t)n) <= 0 || r.type != JOURNAL_FILE ||
	       !journal_is_same(j, &r.file);
}

void journal_path_of(const char *name, char path[JOURNAL_PATH_BYTES])
{
	snprintf(path, JOURNAL_PATH_BYTES, JOURNAL_PREFIX "%016llx" JOURNAL_SUFFIX,
		(unsigned long long)digest_leaf(name, strlen(name)));
}

int journal_open(int dir, const char *name, const struct transfer_file *file,
	char partial[JOURNAL_PATH_BYTES], int *fd, struct journal **out)
{
	struct journal *j;
	int err;

	if (!file->size || file->size > TRANSFER_SIZE_MAX || strlen(name) > JOURNAL_NAME_MAX)
		return -EINVAL;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->dir = dir;
	strcpy(j->name, name);
	j->holes = file->has & TRANSFER_HAS_HOLES;
	j->file = (struct journal_file){.version = JOURNAL_VERSION,
		.size = file->size,
		.mtime_s = file->mtime_s,
		.mtime_ns = file->mtime_ns,
		.identity = file->identity,
		.name = {(const uint8_t *)j->name, strlen(name)}};
	journal_path_of(name, j->path);
	journal_other_name(j->path, partial);
	err = journal_lock_file(dir, j->path, &j->fd);
	if (err)
		goto err_free;
	*fd = journal_open_partial(j, partial);
	err = *fd < 0 ? *fd : 0;
	if (err)
		goto err_close;
	if (journal_is_foreign(j) && (ftruncate(j->fd, 0) || ftruncate(*fd, 0))) {
		err = -errno;
		goto err_partial;
	}
	*out = j;
	return 0;

err_partial:
	close(*fd);
err_close:
	close(j->fd);
err_free:
	free(j);
	return err;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	journal_recall_free(j->recall);
	close(j->fd);
	free(j);
}

void journal_remove(struct journal *j)
{
	if (!j)
		return;
	opener_unlinkat(j->dir, j->path, 0);
	journal_close(j);
}

bool journal_is_of_use(const struct journal *j)
{
	return j->noted && !j->broken && !j->fault;
}

int journal_fault(const struct journal *j)
{
	return j ? j->fault : 0;
}

static void journal_write(struct journal *j, const uint8_t *record, ssize_t length)
{
	ssize_t done = 0;

	while (length > 0 && done < length && !j->broken) {
		ssize_t n = pwrite(j->fd, record + done, (size_t)(length - done), j->end + done);

		if (n < 0 && errno == EINTR)
			continue;
		j->broken = n <= 0;
		done += n > 0 ? n : 0;
	}
	j->broken |= length < 0;
	/* half a record is none; the next one takes its place */
	if (!j->broken)
		j->end += length;
}

void journal_begin(struct journal *j)
{
	uint8_t record[JOURNAL_RECORD_MORE + 64 + JOURNAL_NAME_MAX];

	journal_write(j, record, journal_record_put_file(&j->file, record, sizeof(record)));
}

void journal_note(struct journal *j, const struct transfer_note *notes, size_t count)
{
	struct journal_block *blocks = NULL;
	uint8_t *record = NULL;

	if (!count || j->broken)
		return;
	blocks = malloc(JOURNAL_BLOCKS_MAX * sizeof(*blocks));
	record = malloc(JOURNAL_RECORD_MAX);
	while (blocks && record && count) {
		unsigned n = count < JOURNAL_BLOCKS_MAX ? (unsigned)count : JOURNAL_BLOCKS_MAX;

		for (unsigned i = 0; i < n; i++)
			blocks[i] = (struct journal_block){notes[i].index, notes[i].leaf};
		journal_write(j, record,
			journal_record_put_blocks(blocks, n, record, JOURNAL_RECORD_MAX));
		notes += n;
		count -= n;
		j->noted = true;
	}
	free(blocks);
	free(record);
}
