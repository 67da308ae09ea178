/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_bare.c: what comes without bytes: directories, which are made when they are
 * announced and get their mode and time once all in them has arrived, symbolic links, and hard
 * links to what has arrived.
 */
#include "tree/incoming_impl.h"

#include "base/log.h"
#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/landing_link.h"
#include "tree/leftover.h"
#include "tree/place.h"
#include "tree/seen.h"
#include "tree/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- directories ---- */

/* For opening names beneath it, so that we need not be allowed to read it. */
int incoming_open_dir(struct incoming *in)
{
	in->dir = beneath_open(in->params.top, in->path, O_PATH | O_DIRECTORY, 0);
	return in->dir < 0 ? in->dir : 0;
}

/* Opens a directory of the transfer: one in the destination, or that itself. */
static int incoming_directory(struct incoming *in, const char *name, int flags)
{
	return in->dir < 0 && *name ? -ENOTDIR
	       : in->dir >= 0       ? beneath_open(in->dir, name, flags | O_DIRECTORY, 0)
			      : beneath_open(in->params.top, in->path, flags | O_DIRECTORY, 0);
}

/* Its mode is its owner's affair: the administrator's, for an export's top. */
static bool incoming_is_top(const struct incoming *in, const struct stat *st)
{
	struct stat top;

	return in->params.top != AT_FDCWD && !fstat(in->params.top, &top) &&
	       top.st_dev == st->st_dev && top.st_ino == st->st_ino;
}

/* Of a descriptor of O_PATH, also where the kernel has no call for that (before Linux 6.6). */
static int incoming_chmod(int fd, mode_t mode)
{
	char path[32];

	if (!opener_chmod(fd, mode))
		return 0;
	if ((errno != ENOSYS && errno != EOPNOTSUPP) || opener_mine())
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode) ? -errno : 0;
}

/* A directory of ours that was there already may keep us out (O_PATH, closed here); it gets its
 * mode in the end. */
static void incoming_unlock(const struct incoming *in, int fd)
{
	struct stat st;

	if (fd < 0)
		return;
	/* if it fails, what is done with it next says so */
	if (!fstat(fd, &st) && st.st_uid == opener_uid() && (st.st_mode & 0700) != 0700 &&
		!incoming_is_top(in, &st) && incoming_chmod(fd, (st.st_mode & 07777) | 0700))
		log_debug("a directory of ours that keeps us out stays as it is");
	close(fd);
}

static int incoming_mkdir(struct incoming *in, int top, const char *path, mode_t mode)
{
	const struct place place = {.top = top,
		.rights = PLACE_WRITE,
		.space = in->params.space,
		.unsynced = in->params.fsync == INCOMING_FSYNC_NEVER};

	return place_mkdir(&place, path, mode, true);
}

static int incoming_make_directory(struct incoming *in, const char *name, mode_t mode)
{
	int err = 0;

	mode = (mode & 0777) | 0700;
	if (*name)
		err = in->dir < 0 ? -ENOTDIR : incoming_mkdir(in, in->dir, name, mode);
	else if (in->dir < 0)
		err = incoming_mkdir(in, in->params.top, in->path, mode);
	if (err)
		return err;
	incoming_unlock(in, incoming_directory(in, name, O_PATH));
	return in->dir < 0 ? incoming_open_dir(in) : 0;
}

static void incoming_sweep(const struct incoming *in, int dir)
{
	struct temporary_swept swept = {0};

	if (in->params.sweep && temporary_sweep(dir, LEFTOVER_KEEP_S, NULL, &swept))
		log_debug("a directory that may not be read is not swept");
	if (swept.files)
		log_debug("removed %llu temporary files that were left behind",
			(unsigned long long)swept.files);
}

void incoming_sweep_destination(struct incoming *in)
{
	char last[256];
	int dir;

	if (in->dir >= 0) {
		incoming_sweep(in, in->dir);
	} else if (in->params.kind == INCOMING_AS) {
		dir = beneath_open_parent(in->params.top, in->path, last);
		if (dir < 0)
			return;
		incoming_sweep(in, dir);
		close(dir);
	}
}

/* All that is in it has arrived. */
static int incoming_leave_directory(
	struct incoming *in, const struct transfer_file *file, const char *name, char text[512])
{
	struct metadata metadata;
	struct stat st;
	int fd = incoming_directory(in, name, O_RDONLY), err = 0;

	/* it could not be made, and that was told */
	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd == -EACCES) {
		snprintf(text, 512, "its permissions and time are not kept: it cannot be opened");
		return 0;
	}
	if (fd < 0)
		return fd;
	incoming_sweep(in, fd); /* which would change its time */
	if (!*name)
		incoming_mark_drop(&in->mark); /* so would that: it is the last one */
	err = incoming_metadata(in, file, &metadata);
	if (!err && fstat(fd, &st))
		err = -errno;
	else if (!err && !incoming_is_top(in, &st))
		err = metadata_set(fd, &metadata, text);
	close(fd);
	return err;
}

/* ---- files that are there ---- */

#define INCOMING_THERE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

static bool incoming_is_as_listed(const struct incoming *in, const struct transfer_file *file,
	const char *name, const struct stat *st)
{
	const struct compare_list *here = in->params.listed_here;
	const struct compare_entry *e;
	struct message_seen seen;

	if (file->seen && !seen_is(&file->there, st, file->mtime_s, file->mtime_ns))
		return false;
	if (!in->params.listed_there || !here || seen_has_time(st, file->mtime_s, file->mtime_ns))
		return true; /* nothing was listed here, or it gets no other time */
	e = compare_list_find(here, name);
	if (!e)
		return false;
	seen = compare_seen(e);
	return compare_list_has(in->params.listed_there, name, file->mtime_s, file->mtime_ns) &&
	       seen_is(&seen, st, file->mtime_s, file->mtime_ns);
}

/* Whether it is what was compared: with the source's time anything else would be taken for what the
 * source has.  0; -ESTALE; -errno. */
static int incoming_judge_there(const struct incoming *in, const struct transfer_file *file,
	const char *name, int fd, struct stat *st, char text[512])
{
	if (fstat(fd, st))
		return -errno;
	if (S_ISREG(st->st_mode) && (uint64_t)st->st_size == file->there.size &&
		incoming_is_as_listed(in, file, name, st))
		return 0;
	snprintf(text, 512, "was changed after it was compared");
	return -ESTALE;
}

/* A file that is there.  One of ours may keep us out: it is opened with another mode. */
struct incoming_there {
	int fd;
	struct stat st; /* as it was judged */
	int locked;     /* of O_PATH, of one that had the mode `was`; -1: it has its own */
	mode_t was;
};

static void incoming_lock(const struct incoming_there *there)
{
	if (incoming_chmod(there->locked, there->was))
		log_warning("a file of ours that was opened for a moment could not be given its "
			    "mode back");
}

static int incoming_open_locked(struct incoming *in, const struct transfer_file *file,
	const char *name, struct incoming_there *there, char text[512])
{
	struct stat st, *opened = &there->st;
	int fd = beneath_open(in->dir, name, O_PATH | O_NOFOLLOW, 0), err;

	if (fd < 0)
		return fd;
	err = incoming_judge_there(in, file, name, fd, &st, text);
	if (!err && (st.st_uid != opener_uid() || (st.st_mode & 0600) == 0600))
		err = -EACCES;
	if (!err)
		err = incoming_chmod(fd, (st.st_mode & 07777) | 0600);
	if (err) {
		close(fd);
		return err;
	}
	there->locked = fd;
	there->was = st.st_mode & 07777;
	there->fd = beneath_open(in->dir, name, INCOMING_THERE_FLAGS, 0);
	if (there->fd < 0)
		return there->fd;
	if (fstat(there->fd, opened))
		return -errno;
	/* only its mode, and so the time of its last change, is another one */
	if (opened->st_dev == st.st_dev && opened->st_ino == st.st_ino &&
		opened->st_size == st.st_size && opened->st_mtim.tv_sec == st.st_mtim.tv_sec &&
		opened->st_mtim.tv_nsec == st.st_mtim.tv_nsec)
		return 0;
	snprintf(text, 512, "was replaced after it was compared");
	return -ESTALE;
}

static int incoming_set_attributes(
	struct incoming *in, const struct transfer_file *file, const char *name, char text[512])
{
	struct incoming_there there = {.locked = -1};
	struct metadata metadata;
	int err = 0;

	if (!in->params.attributes) {
		in->refused = true;
		snprintf(text, 512, "attributes came of a file that is not to have any");
		return -EBADMSG;
	}
	if (!in->params.replace)
		return -EEXIST;
	if (in->dir < 0)
		return -ENOTDIR;
	there.fd = beneath_open(in->dir, name, INCOMING_THERE_FLAGS, 0);
	if (there.fd == -EACCES)
		err = incoming_open_locked(in, file, name, &there, text);
	else if (there.fd < 0)
		err = there.fd;
	else
		err = incoming_judge_there(in, file, name, there.fd, &there.st, text);
	if (!err)
		err = incoming_metadata(in, file, &metadata);
	if (!err)
		err = metadata_set(there.fd, &metadata, text);
	if (err && there.locked >= 0)
		incoming_lock(&there);
	if (there.locked >= 0)
		close(there.locked);
	if (there.fd >= 0)
		close(there.fd);
	if (!err && file->has & TRANSFER_HAS_NAMES)
		incoming_remember(in, file,
			&(struct incoming_landed){.number = file->file,
				.dev = there.st.st_dev,
				.ino = there.st.st_ino});
	return err;
}

/* ---- links ---- */

static int incoming_make_link(
	struct incoming *in, const struct transfer_file *file, const char *name, char text[512])
{
	struct landing_params lp = {.top = in->dir,
		.path = name,
		.replace = in->params.replace,
		.parents = true,
		.unsynced = in->params.fsync != INCOMING_FSYNC_FILE,
		.space = in->params.space};
	char target[TRANSFER_TARGET_MAX + 1];
	int err;

	if (in->dir < 0)
		return -ENOTDIR;
	memcpy(target, file->target.data, file->target.len);
	target[file->target.len] = '\0';
	if (in->params.update && incoming_is_new(&lp, file))
		return -EEXIST;
	err = incoming_metadata(in, file, &lp.metadata);
	return err ? err : landing_link(&lp, target, text);
}

void incoming_remember(
	struct incoming *in, const struct transfer_file *file, const struct incoming_landed *landed)
{
	/* without memory for it its links fail, and say so */
	if (landed->number && incoming_links_add(&in->links, landed))
		log_warning("file %u: no room to remember it for its hard links", file->file);
}

void incoming_remember_kept(struct incoming *in, const struct transfer_file *file, const char *name)
{
	struct incoming_landed landed = {.number = file->file};
	struct stat st;

	if (!(file->has & TRANSFER_HAS_NAMES) || in->dir < 0 ||
		beneath_stat(in->dir, name, false, &st) || !S_ISREG(st.st_mode))
		return;
	landed.dev = st.st_dev;
	landed.ino = st.st_ino;
	incoming_remember(in, file, &landed);
}

static int incoming_make_hard_link(
	struct incoming *in, const struct transfer_file *file, const char *name, char text[512])
{
	const struct incoming_landed *landed = incoming_links_find(&in->links, file->first);
	struct landing_params lp = {.top = in->dir,
		.path = name,
		.replace = in->params.replace,
		.beneath = true,
		.parents = true,
		.space = in->params.space};
	struct landing_file first = {.path = (const char *)file->target.data};
	int err;

	if (in->dir < 0)
		return -ENOTDIR;
	if (!landed) {
		snprintf(text, 512, "the file that it is a hard link to did not arrive");
		return -ENOENT;
	}
	first.dev = landed->dev;
	first.ino = landed->ino;
	err = landing_hard_link(&lp, &first, text);
	if (err == -ESTALE)
		snprintf(text, 512, "the file that it is a hard link to was replaced meanwhile");
	return err;
}

int incoming_bare(
	struct incoming *in, const struct transfer_file *file, const char *name, char text[512])
{
	if (in->params.kind != INCOMING_INTO && in->params.kind != INCOMING_AS)
		return 0;
	switch (file->kind) {
	case TRANSFER_FILE_DIRECTORY:
		return incoming_make_directory(in, name, (mode_t)file->mode);
	case TRANSFER_FILE_DIRECTORY_END:
		return incoming_leave_directory(in, file, name, text);
	case TRANSFER_FILE_LINK:
		return incoming_make_link(in, file, name, text);
	case TRANSFER_FILE_ATTRIBUTES:
		return incoming_set_attributes(in, file, name, text);
	case TRANSFER_FILE_HARD_LINK:
		return incoming_make_hard_link(in, file, name, text);
	default:
		return 0; /* a special file is only told of */
	}
}
