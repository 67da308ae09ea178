/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_room: see incoming_room.h.
 *
 * The file system is asked with one call.  Only where that says no is it looked at what is there.
 */
#include "tree/incoming_room.h"

#include "base/clock.h"
#include "base/opener.h"
#include "proto/message.h"
#include "tree/beneath.h"
#include "tree/incoming_impl.h"
#include "tree/space.h"
#include "tree/temporary.h"
#include "tree/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ROOM_NS (5 * NS_PER_S) /* to look at what is there; what takes longer is not refused */
#define ROOM_XFS_MAGIC 0x58465342

/* What a file system has left, or a quota; UINT64_MAX: nothing limits it. */
struct room_left {
	uint64_t bytes, files;
};

/* What is there, and makes room. */
struct room_there {
	uint64_t bytes, files;
	bool hidden; /* only what was left to be gone on with */
	bool all;    /* it was not looked at in time, or lies on other file systems, too: it may be
			anything */
	dev_t device;
	uint64_t until_ns;
};

/* Whether bytes take the space there that they took elsewhere, and what is free is all that there
 * is: others compress, share what is the same, or free space some time after files have gone; of
 * those that lie on other hosts nobody knows. */
static bool room_is_plain(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case MSDOS_SUPER_MAGIC:
	case EXFAT_SUPER_MAGIC:
	case ROOM_XFS_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* What only root may have counts for root alone, as whose process the file is written. */
static struct room_left room_of_disk(int fd)
{
	struct room_left left = {UINT64_MAX, UINT64_MAX};
	struct statvfs fs;
	const bool root = !geteuid();

	if (!room_is_plain(fd) || fstatvfs(fd, &fs))
		return left;
	if (fs.f_blocks) /* 0: a tmpfs without limit */
		left.bytes = (uint64_t)(root ? fs.f_bfree : fs.f_bavail) * fs.f_frsize;
	if (fs.f_files)
		left.files = root ? fs.f_ffree : fs.f_favail;
	return left;
}

static bool room_is_enough(uint64_t left, uint64_t needed, uint64_t there)
{
	return needed == MESSAGE_UNKNOWN || needed <= left || needed - left <= there;
}

static bool room_fits(const struct room_left *left, const struct transfer_room *needed,
	const struct room_there *there)
{
	return there->all || (room_is_enough(left->bytes, needed->bytes, there->bytes) &&
				     room_is_enough(left->files, needed->files, there->files));
}

/* ---- what is there ---- */

static void room_add(struct room_there *there, const char *name, const struct stat *st)
{
	const char *last = strrchr(name, '/');
	const bool hidden = temporary_is_hidden(last ? last + 1 : name);

	if (there->hidden && !hidden)
		return;
	there->bytes += space_name_bytes(st);
	there->files++;
}

/* All that is beneath `path`, or it. */
static void room_add_tree(struct room_there *there, int top, const char *path)
{
	struct walk_entry entry;
	struct walk *walk;
	struct stat st;
	int n;

	if (*path && beneath_stat(top, path, false, &st))
		return;
	if (*path && !S_ISDIR(st.st_mode)) {
		room_add(there, path, &st);
		return;
	}
	there->all |= *path && st.st_dev != there->device;
	if (there->all || walk_new(top, path, "", WALK_LINKS_KEEP, &walk)) {
		there->all = true;
		return;
	}
	walk_hidden(walk);
	walk_look(walk);
	while ((n = walk_next(walk, &entry)) > 0) {
		if (!entry.error && entry.kind != WALK_LEAVE && entry.st.st_dev != there->device)
			break;
		if (!entry.error && entry.kind != WALK_DIRECTORY && entry.kind != WALK_LEAVE)
			room_add(there, entry.path, &entry.st);
		if (clock_now_ns() > there->until_ns)
			break;
	}
	there->all |= n;
	walk_free(walk);
}

/* What was left beside the destination's names: it is in the directory itself. */
static void room_add_left(struct room_there *there, int top)
{
	int fd = beneath_open(top, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (!there->all && (entry = readdir(stream))) {
		if (temporary_is_hidden(entry->d_name) &&
			!opener_fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			room_add(there, entry->d_name, &st);
		there->all = clock_now_ns() > there->until_ns;
	}
	closedir(stream);
}

static void room_look(const struct incoming *in, struct room_there *there, int dir,
	const char *last, const struct transfer_room *needed)
{
	struct wire_bytes roots = needed->roots, name;
	char path[MESSAGE_PATH_MAX + 1];
	struct stat st;

	if (fstat(dir, &st)) {
		there->all = true;
		return;
	}
	there->device = st.st_dev;
	there->until_ns = clock_now_ns() + ROOM_NS;
	/* a file gives its space back when the new one is there, which comes first */
	there->hidden = needed->net || needed->files == 1;
	if (in->params.in_place.wanted) { /* what is there is written over, or more is appended */
		there->hidden = false;
		if (in->params.in_place.offset != MESSAGE_UNKNOWN)
			room_add_tree(there, dir, last);
		return;
	}
	if (*last) { /* the destination is called so in the directory */
		room_add_left(there, dir);
		room_add_tree(there, dir, last);
		return;
	}
	if (!roots.len) {
		room_add_tree(there, dir, "");
		return;
	}
	room_add_left(there, dir);
	while (message_next_path(&roots, &name)) {
		memcpy(path, name.data, name.len);
		path[name.len] = '\0';
		room_add_tree(there, dir, path);
	}
}

/* ---- what is said ---- */

static void room_say_disk(const struct room_left *left, const char *path,
	const struct transfer_room *needed, char *text, size_t size)
{
	char free_text[SPACE_TEXT_BYTES], needed_text[SPACE_TEXT_BYTES];

	space_say_bytes(left->bytes, free_text);
	space_say_bytes(needed->bytes, needed_text);
	if (needed->bytes != MESSAGE_UNKNOWN && needed->bytes > left->bytes)
		snprintf(text, size, "the file system of %.256s has room for %s, and %s are needed",
			*path ? path : "/", free_text, needed_text);
	else
		snprintf(text, size,
			"the file system of %.256s has room for %" PRIu64 " files, and %" PRIu64
			" are needed",
			*path ? path : "/", left->files, needed->files);
}

static void room_say_quota(struct space_share *space, const struct room_left *left,
	const struct transfer_room *needed, char text[512])
{
	char needed_text[SPACE_TEXT_BYTES];
	size_t len;

	space_say(space, text, 512);
	len = strlen(text);
	space_say_bytes(needed->bytes, needed_text);
	if (needed->bytes != MESSAGE_UNKNOWN && needed->bytes > left->bytes)
		snprintf(text + len, 512 - len, ", and %s are needed", needed_text);
	else
		snprintf(text + len, 512 - len, ", and %" PRIu64 " are needed", needed->files);
}

/* What is left to be gone on with is not needed once more. */
static struct transfer_room room_rest(
	const struct transfer_room *needed, const struct room_there *there)
{
	struct transfer_room rest = *needed;

	if (rest.bytes != MESSAGE_UNKNOWN)
		rest.bytes -= there->bytes < rest.bytes ? there->bytes : rest.bytes;
	if (rest.files != MESSAGE_UNKNOWN)
		rest.files -= there->files < rest.files ? there->files : rest.files;
	return rest;
}

/* ---- */

/* The directory that it goes to, and its name there; "": it goes into it.  -errno. */
static int room_open(const struct incoming *in, char last[256])
{
	int fd;

	*last = '\0';
	if (in->dir < 0)
		return beneath_open_parent(in->params.top, in->path, last);
	fd = fcntl(in->dir, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* What there is, without what makes room. */
static bool room_now(const struct incoming *in, int dir, const struct transfer_room *needed,
	struct room_left *disk, struct room_left *quota)
{
	static const struct room_there nothing;

	*disk = room_of_disk(dir);
	space_left(in->params.space, &quota->bytes, &quota->files);
	return room_fits(disk, needed, &nothing) && room_fits(quota, needed, &nothing);
}

/* 0; -EDQUOT, -ENOSPC, and the text. */
static int room_judge(const struct incoming *in, const struct transfer_room *needed,
	const struct room_there *there, const struct room_left *disk, const struct room_left *quota,
	char text[512])
{
	const struct transfer_room rest = room_rest(needed, there);

	if (!room_fits(quota, needed, there)) {
		room_say_quota(in->params.space, quota, &rest, text);
		return -EDQUOT;
	}
	if (room_fits(disk, needed, there))
		return 0;
	room_say_disk(disk, in->path, &rest, text, 512);
	return -ENOSPC;
}

int incoming_room(void *ctx, const struct transfer_room *all, char text[512])
{
	const struct incoming *in = ctx;
	struct transfer_room needed = *all;
	struct room_there there = {0};
	struct room_left disk, quota;
	char last[256];
	int dir, err = 0;

	/* what is net of bytes that go is not so of names: files are counted that replace others */
	if (needed.net)
		needed.files = MESSAGE_UNKNOWN;
	dir = room_open(in, last);
	if (dir < 0)
		return 0; /* why not is told when the first file comes */
	if (!room_now(in, dir, &needed, &disk, &quota)) {
		room_look(in, &there, dir, last, &needed);
		err = room_judge(in, &needed, &there, &disk, &quota, text);
	}
	close(dir);
	return err;
}

void incoming_room_say(const struct incoming *in, uint64_t bytes, char text[512])
{
	const struct transfer_room needed = {.bytes = bytes, .files = 1};
	static const struct room_there nothing;
	struct room_left disk, quota;
	char last[256];
	int dir = room_open(in, last);

	if (dir < 0)
		return;
	if (!room_now(in, dir, &needed, &disk, &quota))
		room_judge(in, &needed, &nothing, &disk, &quota, text);
	close(dir);
}
