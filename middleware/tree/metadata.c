/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/metadata.c: see metadata.h.
 */
#include "tree/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define METADATA_SET_ID (S_ISUID | S_ISGID)

/* Not ours to change, or nothing that the file system has. */
static bool metadata_may_not(int error)
{
	return error == EPERM || error == EACCES || error == EOPNOTSUPP || error == ENOSYS;
}

static void metadata_note(char note[512], const char *what, const char *why)
{
	size_t length = strlen(note);

	snprintf(note + length, 512 - length, "%s%s%s%s%s", length ? "; " : "", what,
		*why ? " (" : "", why, *why ? ")" : "");
}

/* Names those bits of `mode` beyond rwx that a file does not have. */
static void metadata_note_lost(mode_t mode, mode_t has, char note[512])
{
	mode_t lost = mode & ~has;

	if (lost & METADATA_SET_ID)
		metadata_note(note,
			!(lost & S_ISGID)   ? "set-user-ID is not kept"
			: !(lost & S_ISUID) ? "set-group-ID is not kept"
					    : "set-user-ID and set-group-ID are not kept",
			"");
	if (lost & S_ISVTX)
		metadata_note(note, "the sticky bit is not kept", "");
}

static int metadata_set_mode(int fd, const struct metadata *m, struct stat *st, char note[512])
{
	mode_t mode = m->mode & 07777;
	int err;

	if (!m->set_id && !S_ISDIR(st->st_mode))
		mode &= ~(mode_t)METADATA_SET_ID;
	err = fchmod(fd, mode) ? errno : 0;
	if (err && !metadata_may_not(err))
		return -err;
	/* it may also have left bits out without a word: of a group that is not ours, or what the
	 * file system does not have */
	if ((err || m->mode & 07000) && fstat(fd, st))
		return -errno;
	if (err && (st->st_mode & 0777) != (mode & 0777))
		metadata_note(note, "its permissions are not kept", strerror(err));
	else if (m->mode & 07000)
		metadata_note_lost(m->mode, st->st_mode, note);
	return 0;
}

int metadata_set(int fd, const struct metadata *m, char note[512])
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {m->mtime_s, (long)m->mtime_ns}};
	struct stat st;
	int err;

	note[0] = '\0';
	err = fstat(fd, &st) ? -errno : metadata_set_mode(fd, m, &st, note);
	if (err)
		return err;
	err = futimens(fd, times) ? errno : 0;
	if (err && !metadata_may_not(err))
		return -err;
	if (err && (st.st_mtim.tv_sec != m->mtime_s || st.st_mtim.tv_nsec != (long)m->mtime_ns))
		metadata_note(note, "its modification time is not kept", strerror(err));
	return 0;
}
