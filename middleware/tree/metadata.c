/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/metadata.c: see metadata.h.
 */
#include "tree/metadata.h"

#include "base/opener.h"
#include "tree/acls.h"
#include "tree/xattrs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

/* The owner of an open file, or of a link opened with O_PATH.  What is not kept goes from `m`'s
 * bits, too: set-user-ID was not meant for another user. */
static int metadata_set_owner(int fd, struct metadata *m, const struct stat *st, char note[512])
{
	const bool user = m->has_owner && m->uid != st->st_uid;
	const bool group = m->has_group && m->gid != st->st_gid;
	const uid_t uid = user ? m->uid : (uid_t)-1;
	const gid_t gid = group ? m->gid : (gid_t)-1;
	int err = 0, group_err = 0;

	if (!user && !group)
		return 0;
	if (!opener_fchownat(fd, "", uid, gid, AT_EMPTY_PATH))
		return 0;
	err = errno;
	/* a user may give files to the groups that he is in, and to nobody else */
	if (group && (!user || opener_fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH)))
		group_err = errno;
	if (err != EINVAL && !metadata_may_not(err))
		return -err;
	if (user) {
		metadata_note(note, "its owner is not kept", strerror(err));
		m->mode &= ~(mode_t)S_ISUID;
	}
	if (group_err) {
		metadata_note(note, "its group is not kept", user ? "" : strerror(group_err));
		if (!S_ISDIR(st->st_mode))
			m->mode &= ~(mode_t)S_ISGID;
	}
	return 0;
}

static int metadata_set_mode(int fd, const struct metadata *m, struct stat *st, char note[512])
{
	mode_t mode = m->mode & 07777;
	int err;

	if (!m->set_id && !S_ISDIR(st->st_mode))
		mode &= ~(mode_t)METADATA_SET_ID;
	err = opener_fchmod(fd, mode) ? errno : 0;
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

/* Attributes: before the mode, which may keep their own owner from them, as may the one that it has
 * until then.  None of them is worth a file. */
static void metadata_set_xattrs(
	int fd, const struct metadata *m, const struct stat *st, char note[512])
{
	char which[64], what[128];
	int err = 0;

	if (m->has_xattrs) {
		if ((st->st_mode & 0600) != 0600)
			(void)opener_fchmod(fd, (st->st_mode & 07777) | 0600);
		err = xattrs_write(fd, m->xattrs, which);
	}

	if (err) {
		snprintf(what, sizeof what, "its attribute %s is not kept", which);
		metadata_note(note, what, strerror(err));
	}
}

/* A list that is there already, from the directory's, would make of the bits for the group a mask.
 */
static void metadata_remove_acls(int fd, const struct metadata *m, bool directory, char note[512])
{
	if (m->has_acls && acls_remove(fd, directory))
		metadata_note(note, "an access control list is still there", strerror(errno));
}

static void metadata_set_acls(int fd, const struct metadata *m, bool directory, char note[512])
{
	int err = m->has_acls ? acls_write(fd, directory, m->acl, m->default_acl) : 0;

	if (err)
		metadata_note(note, "its access control list is not kept",
			err == EINVAL ? "it names somebody who is not known here" : strerror(err));
	if (m->lost)
		metadata_note(note,
			"some of its attributes or access control lists are too large, or could "
			"not be read",
			"");
}

static int metadata_set_time(
	int fd, const struct metadata *m, const struct stat *st, int flags, char note[512])
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {m->mtime_s, (long)m->mtime_ns}};
	int err = 0;

	/* futimens does not take a descriptor of O_PATH, and old kernels take no empty path */
	if (flags ? opener_utimensat(fd, "", times, flags) : opener_futimens(fd, times))
		err = errno;
	if (err && err != EINVAL && !metadata_may_not(err))
		return -err;
	if (err && (st->st_mtim.tv_sec != m->mtime_s || st->st_mtim.tv_nsec != (long)m->mtime_ns))
		metadata_note(note, "its modification time is not kept", strerror(err));
	return 0;
}

int metadata_set(int fd, const struct metadata *wanted, char note[512])
{
	struct metadata m = *wanted;
	bool directory;
	struct stat st;
	int err;

	note[0] = '\0';
	if (fstat(fd, &st))
		return -errno;
	directory = S_ISDIR(st.st_mode);
	err = metadata_set_owner(fd, &m, &st, note);
	if (!err) {
		metadata_set_xattrs(fd, &m, &st, note);
		metadata_remove_acls(fd, &m, directory, note);
		err = metadata_set_mode(fd, &m, &st, note);
	}
	if (err)
		return err;
	metadata_set_acls(fd, &m, directory, note);
	return metadata_set_time(fd, &m, &st, 0, note);
}

int metadata_set_link(int fd, const struct metadata *wanted, char note[512])
{
	struct metadata m = *wanted;
	struct stat st;
	int err;

	note[0] = '\0';
	if (fstat(fd, &st))
		return -errno;
	err = metadata_set_owner(fd, &m, &st, note);
	return err ? err : metadata_set_time(fd, &m, &st, AT_EMPTY_PATH, note);
}
