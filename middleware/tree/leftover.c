/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/leftover: see leftover.h.
 */
#include "tree/leftover.h"

#include "base/opener.h"

#include "tree/journal.h"
#include "tree/journal_reader.h"
#include "tree/space.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ALONE_S 60          /* one without the other may just be being made, or be made real */
#define READ_MAX (64 << 20) /* bytes of a journal that are looked at for a list */

bool leftover_is_name(const char *name)
{
	return journal_is_name(name, true) || journal_is_name(name, false);
}

static int leftover_open(int dir, const char *name, int flags)
{
	int fd =
		opener_openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Adds up what the records say. */
static int leftover_read(int fd, struct leftover *l)
{
	struct journal_reader reader;
	struct journal_record r;
	uint32_t block = 0;
	int n = journal_reader_init(&reader, fd);

	while (n >= 0 && reader.at < READ_MAX && (n = journal_reader_next(&reader, &r)) > 0) {
		if (r.type == JOURNAL_FILE) {
			memcpy(l->name, r.file.name.data, r.file.name.len);
			l->name[r.file.name.len] = '\0';
			l->size = r.file.size;
			l->noted_bytes = 0;
			block = r.file.block;
		}
		l->noted_bytes += (uint64_t)r.count * block;
	}
	if (l->noted_bytes > l->size) /* the last block is shorter than others */
		l->noted_bytes = l->size;
	journal_reader_fini(&reader);
	if (n < 0 && n != -EBADMSG)
		return n;
	return block ? 0 : -ENODATA;
}

int leftover_get(int dir, const char *journal, struct leftover *l)
{
	int fd = leftover_open(dir, journal, O_RDONLY), err;
	char partial[JOURNAL_PATH_BYTES];
	struct stat st;

	*l = (struct leftover){0};
	if (fd < 0)
		return fd;
	err = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? leftover_read(fd, l) : -ENXIO;
	l->changed_s = st.st_mtim.tv_sec;
	journal_other_name(journal, partial);
	if ((!err || err == -ENODATA) && !opener_fstatat(dir, partial, &st, AT_SYMLINK_NOFOLLOW))
		l->partial_bytes = space_disk_bytes(&st);
	/* for no longer than it takes to ask: who wants it meanwhile finds it taken */
	l->busy = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return err;
}

static bool leftover_is_old(const struct stat *st, uint64_t age_s)
{
	time_t now = time(NULL);

	/* the clock of files may be ahead of this one by some milliseconds */
	return !age_s ||
	       (now >= st->st_mtim.tv_sec && (uint64_t)(now - st->st_mtim.tv_sec) >= age_s);
}

/* Whether a partial file that has no journal may go. */
static int leftover_judge_alone(int dir, const char *partial, uint64_t keep_s, uint64_t *bytes)
{
	struct stat st;

	if (opener_fstatat(dir, partial, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	*bytes = space_disk_bytes(&st);
	if (!S_ISREG(st.st_mode))
		return -EPERM;
	return leftover_is_old(&st, keep_s < ALONE_S ? keep_s : ALONE_S) ? 0 : -EAGAIN;
}

/* One that has no journal: under the lock that who makes another of that name would take. */
static int leftover_sweep_alone(
	int dir, const char *partial, const char *journal, uint64_t keep_s, uint64_t *bytes)
{
	uint64_t found;
	struct stat locked;
	int fd, err = leftover_judge_alone(dir, partial, keep_s, &found);

	if (!err)
		err = journal_lock_file(dir, journal, &fd);
	if (err)
		return err;
	if (fstat(fd, &locked)) {
		err = -errno;
	} else if (locked.st_size) {
		err = -EAGAIN; /* somebody has made one meanwhile, and left again */
	} else {
		/* it may have become another one until now */
		err = leftover_judge_alone(dir, partial, keep_s, &found);
		if (!err && opener_unlinkat(dir, partial, 0))
			err = -errno;
		if (!err)
			*bytes = found;
		/* whatever came of it: this was made for the lock only */
		if (opener_unlinkat(dir, journal, 0) && !err)
			err = -errno;
	}
	close(fd);
	return err;
}

/* Whether a journal, which is open, may go with its partial file, if that is there. */
static int leftover_judge_both(
	int fd, int dir, const char *partial, uint64_t keep_s, bool *whole, uint64_t *bytes)
{
	struct stat st, data;

	*whole = !opener_fstatat(dir, partial, &data, AT_SYMLINK_NOFOLLOW);
	*bytes = *whole ? space_disk_bytes(&data) : 0;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EPERM;
	/* what the names are now may be another transfer's, if it has lost its own since it was
	 * opened */
	if (!st.st_nlink)
		return -EAGAIN;
	return leftover_is_old(&st, *whole || keep_s < ALONE_S ? keep_s : ALONE_S) ? 0 : -EAGAIN;
}

static int leftover_sweep_both(
	int dir, int fd, const char *journal, const char *partial, uint64_t keep_s, uint64_t *bytes)
{
	uint64_t found;
	bool whole;
	int err = leftover_judge_both(fd, dir, partial, keep_s, &whole, &found);

	if (!err && flock(fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	/* once more: a transfer may have gone on with it, and left again, until it was locked */
	if (!err)
		err = leftover_judge_both(fd, dir, partial, keep_s, &whole, &found);
	if (err)
		return err;
	if (whole && opener_unlinkat(dir, partial, 0))
		return -errno;
	*bytes = found;
	return opener_unlinkat(dir, journal, 0) ? -errno : 0;
}

int leftover_sweep(int dir, const char *name, uint64_t keep_s, uint64_t *bytes)
{
	bool is_journal = journal_is_name(name, true);
	char other[JOURNAL_PATH_BYTES];
	int fd, err;

	*bytes = 0;
	journal_other_name(name, other);
	fd = leftover_open(dir, is_journal ? name : other, O_RDWR);
	if (fd == -ENOENT && !is_journal)
		return leftover_sweep_alone(dir, name, other, keep_s, bytes);
	if (fd < 0)
		return fd;
	/* a partial file is swept with its journal */
	err = is_journal ? leftover_sweep_both(dir, fd, name, other, keep_s, bytes) : -EAGAIN;
	close(fd);
	return err;
}
