/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/landing.c: a temporary file beside the real name, and the rename.
 *
 * Owns the descriptor of the directory from open to the end: everything is named in it, so a
 * parent that is renamed or replaced by a link meanwhile redirects nothing.
 */
#include "tree/landing.h"

#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/journal.h"
#include "tree/leftover.h"
#include "tree/place.h"
#include "tree/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct landing {
	int dir;
	int fd;
	char last[256];                     /* the real name in dir */
	char temporary[JOURNAL_PATH_BYTES]; /* the longer one of the two */
	struct journal *journal;            /* NULL: it cannot be suspended */
	struct metadata metadata;           /* of the file when it is there */
	bool keep, replace, unsynced;
	struct space_share *space;
	_Atomic uint64_t claimed_bytes; /* in it, and a name */
	bool claimed_file;
	struct space_item partial; /* what was there of it at the beginning, and counts already */
};

int landing_look(
	const struct landing_params *p, int dir, const char *last, mode_t *mode, bool *exists)
{
	struct stat st, to;

	if (opener_fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	*exists = true;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* wherever the link leads: the user who named a directory, or /dev/stdout, did not mean to
	 * lose the link */
	if (S_ISLNK(st.st_mode) && !p->beneath && !beneath_stat(p->top, p->path, true, &to) &&
		!S_ISREG(to.st_mode))
		return S_ISDIR(to.st_mode) ? -EISDIR : -ENXIO;
	if (!p->replace)
		return -EEXIST;
	if (S_ISREG(st.st_mode))
		*mode = st.st_mode & 0777;
	else if (!S_ISLNK(st.st_mode))
		return -ENXIO;
	return 0;
}

/* Makes the temporary file; only we may read it until it is whole. */
static int landing_create(struct landing *landing, mode_t existing)
{
	struct stat st;

	/* with the mode of the new file, to learn what umask and the directory's default
	 * permissions make of it */
	landing->fd =
		temporary_create(landing->dir, landing->metadata.mode & 0777, landing->temporary);
	if (landing->fd < 0)
		return landing->fd;
	if (fstat(landing->fd, &st) || opener_fchmod(landing->fd, 0600)) {
		int err = -errno;

		opener_unlinkat(landing->dir, landing->temporary, 0);
		return err;
	}
	if (!landing->keep)
		landing->metadata.mode = existing != (mode_t)-1 ? existing : st.st_mode & 0777;
	return 0;
}

/* The partial file of a journal, if it can be had. */
static bool landing_go_on(struct landing *landing, const struct transfer_file *file)
{
	return file && !journal_open(landing->dir, landing->last, file, landing->temporary,
			       &landing->fd, &landing->journal);
}

static int landing_make_parents(const struct landing_params *p)
{
	const char *slash = strrchr(p->path, '/');
	struct place place;
	char *dir;
	int err;

	if (!slash || slash == p->path)
		return 0;
	dir = strndup(p->path, (size_t)(slash - p->path));
	if (!dir)
		return -ENOMEM;
	place = (struct place){
		.top = p->top, .rights = PLACE_WRITE, .space = p->space, .unsynced = p->unsynced};
	err = place_mkdir(&place, dir, 0777, true);
	free(dir);
	return err == -EINVAL ? 0 : err; /* "..": opening it says more */
}

/* A file that replaces another one needs no other name. */
static int landing_claim_all(
	struct landing *landing, const struct landing_params *p, bool resumes, bool exists)
{
	uint64_t bytes = p->claim_bytes;
	int err;

	if (!p->space || !atomic_load(&p->space->space))
		return 0;
	if (resumes)
		space_look_fd(p->space, landing->fd, &landing->partial);
	landing->partial.files = 0; /* a hidden name */
	bytes -= bytes < landing->partial.bytes ? bytes : landing->partial.bytes;
	err = space_claim(p->space, bytes, !exists);
	if (err)
		return err;
	landing->space = p->space;
	landing->claimed_bytes = bytes;
	landing->claimed_file = !exists;
	return 0;
}

int landing_claim(struct landing *landing, uint64_t bytes)
{
	int err = space_claim(landing->space, bytes, 0);

	if (!err && landing->space)
		atomic_fetch_add(&landing->claimed_bytes, bytes);
	return err;
}

/* What was claimed has come, or does not come; what there is now of it. */
static void landing_settle(
	struct landing *landing, const struct space_item *before, const struct space_item *now)
{
	if (!landing->space)
		return;
	space_change(landing->space, before, now);
	space_unclaim(landing->space, landing->claimed_bytes, landing->claimed_file);
	landing->space = NULL;
}

int landing_open_parent(const struct landing_params *p, char last[256])
{
	int dir = beneath_open_parent(p->top, p->path, last), err;

	if (dir != -ENOENT || !p->parents)
		return dir;
	err = landing_make_parents(p);
	return err ? err : beneath_open_parent(p->top, p->path, last);
}

int landing_open(const struct landing_params *p, struct landing **out)
{
	struct landing *landing;
	mode_t existing = (mode_t)-1;
	size_t length = strlen(p->path);
	bool resumes, exists = false;
	int err;

	*out = NULL;
	if (!length || p->path[length - 1] == '/')
		return -EINVAL;
	landing = calloc(1, sizeof(*landing));
	if (!landing)
		return -ENOMEM;
	landing->fd = -1;
	landing->replace = p->replace;
	landing->unsynced = p->unsynced;
	landing->metadata = p->metadata;
	landing->keep = p->keep;
	landing->dir = landing_open_parent(p, landing->last);
	if (landing->dir < 0) {
		err = landing->dir;
		goto err_free;
	}
	err = landing_look(p, landing->dir, landing->last, &existing, &exists);
	if (err)
		goto err_close;
	resumes = landing_go_on(landing, p->resume);
	if (!resumes)
		landing->fd = -1;
	err = landing_claim_all(landing, p, resumes, exists);
	if (!err && !resumes)
		err = landing_create(landing, existing);
	if (err)
		goto err_claim;
	*out = landing;
	return 0;

err_claim:
	landing_settle(landing, &landing->partial, &landing->partial);
	journal_close(landing->journal);
err_close:
	if (landing->fd >= 0)
		close(landing->fd);
	close(landing->dir);
err_free:
	free(landing);
	return err;
}

int landing_fd(const struct landing *landing)
{
	int fd = fcntl(landing->fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int landing_own_fd(const struct landing *landing)
{
	return landing->fd;
}

int landing_write(int fd, const void *data, uint64_t bytes)
{
	const char *from = data;
	uint64_t put = 0;

	while (put < bytes) {
		ssize_t n = pwrite(fd, from + put, bytes - put, (off_t)put);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		put += (uint64_t)n;
	}
	return 0;
}

int landing_fill(struct landing *landing, const void *data, uint64_t bytes, char text[512])
{
	int err = landing_write(landing->fd, data, bytes);

	if (err) {
		snprintf(text, 512, "writing at offset 0: %s", strerror(-err));
		return err;
	}
	err = beneath_sync(landing->fd);
	if (err)
		snprintf(text, 512, "fsync: %s", strerror(-err));
	return err;
}

static void landing_free(struct landing *landing)
{
	journal_close(landing->journal);
	close(landing->fd);
	close(landing->dir);
	free(landing);
}

int landing_sync(int dir, char text[512])
{
	int err = beneath_sync(dir);

	if (!err)
		return 0;
	snprintf(text, 512, "fsync of its directory: %s", strerror(-err));
	return -ENOTRECOVERABLE;
}

/* What an earlier transfer left of a file of this name, which was too large to start over and now
 * is not: the bytes that this gives back. */
static uint64_t landing_sweep(const struct landing *landing)
{
	char journal[JOURNAL_PATH_BYTES];
	uint64_t bytes = 0;

	journal_path_of(landing->last, journal);
	leftover_sweep(landing->dir, journal, 0, &bytes);
	return bytes;
}

int landing_commit(struct landing *landing, char text[512])
{
	struct space_item old, now;
	int err = 0;

	text[0] = '\0';
	err = journal_fault(landing->journal);
	if (err) {
		snprintf(text, 512, "what an earlier transfer left of it could not be emptied: %s",
			strerror(-err));
		landing_discard(landing);
		return err;
	}
	space_look(landing->space, landing->dir, landing->last, &old);
	/* journaling file systems keep the order of these and the rename, so the one fsync below is
	 * enough: the data were flushed before */
	if (landing->keep)
		err = metadata_set(landing->fd, &landing->metadata, text);
	else if (opener_fchmod(landing->fd, landing->metadata.mode))
		err = -errno;
	if (!err)
		err = beneath_rename_at(landing->dir, landing->temporary, landing->dir,
			landing->last, landing->replace);
	if (err) {
		landing_discard(landing);
		return err;
	}
	if (!landing->journal)
		old.bytes += landing_sweep(landing);
	journal_remove(landing->journal);
	landing->journal = NULL;
	space_look_fd(landing->space, landing->fd, &now);
	old.bytes += landing->partial.bytes;
	landing_settle(landing, &old, &now);
	if (!landing->unsynced)
		err = landing_sync(landing->dir, text);
	landing_free(landing);
	return err;
}

void landing_discard(struct landing *landing)
{
	if (!landing)
		return;
	opener_unlinkat(landing->dir, landing->temporary, 0);
	journal_remove(landing->journal);
	landing->journal = NULL;
	landing_settle(landing, &landing->partial, &(struct space_item){0});
	landing_free(landing);
}

bool landing_resumes(const struct landing *landing)
{
	return landing->journal;
}

bool landing_recall(struct landing *landing, uint32_t block_bytes, struct transfer_notes *found)
{
	return journal_recall(landing->journal, landing->fd, block_bytes, found);
}

void landing_note(struct landing *landing, const struct transfer_note *notes, size_t count)
{
	journal_note(landing->journal, notes, count);
}

void landing_suspend(struct landing *landing)
{
	struct space_item now;

	if (!journal_is_of_use(landing->journal)) {
		landing_discard(landing);
		return;
	}
	space_look_fd(landing->space, landing->fd, &now);
	now.files = 0;
	landing_settle(landing, &landing->partial, &now);
	landing_free(landing);
}
