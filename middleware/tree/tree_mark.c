/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/tree_mark: see tree_mark.h.
 */
#include "tree/tree_mark.h"

#include "base/opener.h"

#include "block/digest.h"
#include "tree/journal.h"
#include "tree/journal_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MARK_PREFIX ".rftp-"
#define MARK_SUFFIX ".tree"
#define MARK_DIGITS 16
#define MARK_LOOKED_AT_MAX 65536u /* entries of a directory */

struct tree_mark {
	int dir, fd;
	char path[TREE_MARK_NAME_BYTES];
	bool found; /* it was left behind */
	struct timespec began;
};

bool tree_mark_is_name(const char *name)
{
	const char *digits = name + strlen(MARK_PREFIX);

	return strlen(name) == TREE_MARK_NAME_BYTES - 1 &&
	       !strncmp(name, MARK_PREFIX, strlen(MARK_PREFIX)) &&
	       strspn(digits, "0123456789abcdef") == MARK_DIGITS &&
	       !strcmp(digits + MARK_DIGITS, MARK_SUFFIX);
}

bool tree_mark_any(int dir)
{
	int fd = opener_openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool found = false;

	if (!entries && fd >= 0)
		close(fd);
	for (unsigned i = 0; entries && i < MARK_LOOKED_AT_MAX && !found; i++) {
		e = readdir(entries);
		if (!e)
			break;
		found = tree_mark_is_name(e->d_name);
	}
	if (entries)
		closedir(entries);
	return found;
}

/* Whether it holds the record of that name. */
static bool mark_is_of(int fd, const char *first, size_t length)
{
	uint8_t buf[JOURNAL_RECORD_MORE + 64 + JOURNAL_NAME_MAX];
	struct journal_record r;
	ssize_t n = pread(fd, buf, sizeof(buf), 0);

	return n > 0 && journal_record_get(&r, buf, (size_t)n) > 0 && r.type == JOURNAL_TREE &&
	       r.name.len == length && !memcmp(r.name.data, first, length);
}

static int mark_make(const struct tree_mark *m, const char *first, size_t length)
{
	uint8_t buf[JOURNAL_RECORD_MORE + 64 + JOURNAL_NAME_MAX];
	struct timespec times[2] = {m->began, m->began};
	ssize_t n = journal_record_put_tree(
		(struct wire_bytes){(const uint8_t *)first, length}, buf, sizeof(buf));

	if (n < 0)
		return (int)n;
	if (ftruncate(m->fd, 0) || pwrite(m->fd, buf, (size_t)n, 0) != n ||
		opener_futimens(m->fd, times))
		return errno ? -errno : -EIO;
	return 0;
}

int tree_mark_open(int dir, const char *first, const struct timespec *began, struct tree_mark **out)
{
	size_t length = strcspn(first, "/");
	struct tree_mark *m;
	struct stat st;
	int err;

	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->dir = dir;
	m->began = *began;
	snprintf(m->path, sizeof(m->path), MARK_PREFIX "%016llx" MARK_SUFFIX,
		(unsigned long long)digest_leaf(first, length));
	err = journal_lock_file(dir, m->path, &m->fd);
	if (err)
		goto err_free;
	if (mark_is_of(m->fd, first, length) && !fstat(m->fd, &st)) {
		m->found = true;
		m->began = st.st_mtim;
		/* so that its time of change is when it was last used */
		err = opener_fchmod(m->fd, 0600) ? -errno : 0;
	} else {
		err = mark_make(m, first, length);
	}
	if (err)
		goto err_close;
	*out = m;
	return 0;

err_close:
	opener_unlinkat(dir, m->path, 0);
	close(m->fd);
err_free:
	free(m);
	return err;
}

void tree_mark_close(struct tree_mark *m, bool over)
{
	if (!m)
		return;
	if (over)
		opener_unlinkat(m->dir, m->path, 0);
	close(m->fd);
	free(m);
}

bool tree_mark_covers(const struct tree_mark *m, const struct stat *now)
{
	return m && m->found && S_ISREG(now->st_mode) &&
	       (now->st_ctim.tv_sec > m->began.tv_sec ||
		       (now->st_ctim.tv_sec == m->began.tv_sec &&
			       now->st_ctim.tv_nsec >= m->began.tv_nsec));
}

static int mark_open(int dir, const char *name, int flags)
{
	int fd =
		opener_openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int tree_mark_get(int dir, const char *name, char first[256], int64_t *used_s, bool *busy)
{
	uint8_t buf[JOURNAL_RECORD_MORE + 64 + JOURNAL_NAME_MAX];
	int fd = mark_open(dir, name, O_RDONLY), err = 0;
	struct journal_record r;
	struct stat st;
	ssize_t n;

	*first = '\0';
	if (fd < 0)
		return fd;
	n = pread(fd, buf, sizeof(buf), 0);
	if (fstat(fd, &st)) {
		err = -errno;
	} else if (!S_ISREG(st.st_mode)) {
		err = -EPERM;
	} else {
		*used_s = st.st_ctim.tv_sec;
		*busy = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
		if (n <= 0 || journal_record_get(&r, buf, (size_t)n) <= 0 || r.type != JOURNAL_TREE)
			err = -ENODATA;
		else if (r.name.len)
			snprintf(first, 256, "%.*s", (int)r.name.len, (const char *)r.name.data);
	}
	close(fd);
	return err;
}

/* Whether it may go, by what it is now. */
static int mark_judge(int fd, uint64_t keep_s)
{
	time_t now = time(NULL);
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EPERM;
	/* the name may be another transfer's mark, if this one was removed since it was opened */
	if (!st.st_nlink)
		return -EAGAIN;
	if (keep_s && (now < st.st_ctim.tv_sec || (uint64_t)(now - st.st_ctim.tv_sec) < keep_s))
		return -EAGAIN;
	return 0;
}

int tree_mark_sweep(int dir, const char *name, uint64_t keep_s)
{
	int fd = mark_open(dir, name, O_RDWR), err;

	if (fd < 0)
		return fd;
	err = mark_judge(fd, keep_s);
	if (!err && flock(fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (!err) /* once more: it may have been used, and left again, until it was locked */
		err = mark_judge(fd, keep_s);
	if (!err && opener_unlinkat(dir, name, 0))
		err = -errno;
	close(fd);
	return err;
}
