/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_names: requests about names: STAT, MKDIR, RMDIR, REMOVE, RENAME, STATFS.
 *
 * What may be done, and where, is the session's place's to say (tree/place).
 */
#include "proto/status.h"
#include "rftpd/serve/handle.h"

#include <errno.h>

/* What a client may set: a daemon hands no set-user-id bits out. */
#define MODE_ALLOWED 01777

static int get_path(char path[MESSAGE_PATH_MAX + 1], const uint8_t *data, size_t len)
{
	struct message_path m;
	int r = message_get_path(&m, data, len);

	if (!r)
		handle_path(path, m.path);
	return r;
}

/* The answer to a request that has no result but that it was done.  The calls' -EINVAL says that
 * the path has no last component of its own. */
static int answer(struct daemon_session *s, uint16_t type, int error, const char *path)
{
	if (error)
		return handle_refuse_path(s, type, error == -EINVAL ? -ENAMETOOLONG : error, path);
	return daemon_session_reply(s, type, NULL, 0);
}

int handle_stat(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct message_attr attr;
	struct stat st;
	uint8_t reply[33];
	int r = get_path(path, data, len);

	if (r)
		return r;
	r = place_stat(s->place, path, true, &st);
	if (r)
		return handle_refuse_path(s, MESSAGE_STAT, r, path);
	handle_attr(&attr, &st);
	return daemon_session_reply(
		s, MESSAGE_STAT, reply, message_put_attr(&attr, reply, sizeof reply));
}

int handle_mkdir(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct message_mkdir m;
	int r = message_get_mkdir(&m, data, len);

	if (r)
		return r;
	handle_path(path, m.path);
	return answer(s, MESSAGE_MKDIR,
		place_mkdir(s->place, path, m.mode & MODE_ALLOWED, m.flags & MESSAGE_MKDIR_PARENTS),
		path);
}

int handle_rmdir(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	int r = get_path(path, data, len);

	return r ? r : answer(s, MESSAGE_RMDIR, place_rmdir(s->place, path), path);
}

int handle_remove(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	int r = get_path(path, data, len);

	return r ? r : answer(s, MESSAGE_REMOVE, place_remove(s->place, path), path);
}

int handle_rename(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char from[MESSAGE_PATH_MAX + 1], to[MESSAGE_PATH_MAX + 1];
	struct message_rename m;
	struct stat st;
	int r = message_get_rename(&m, data, len);

	if (r)
		return r;
	handle_path(from, m.from);
	handle_path(to, m.to);
	r = place_rename(s->place, from, to, m.flags & MESSAGE_RENAME_REPLACE);
	if (r == -EINVAL)
		return daemon_session_refuse(s, MESSAGE_RENAME, STATUS_INVALID,
			"%.240s to %.240s: a directory cannot go beneath itself, nor the top be "
			"renamed",
			from, to);
	if (!r)
		return daemon_session_reply(s, MESSAGE_RENAME, NULL, 0);
	/* name the one that is at fault */
	return handle_refuse_path(
		s, MESSAGE_RENAME, r, place_stat(s->place, from, false, &st) ? from : to);
}

int handle_statfs(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct message_statfs_reply m;
	struct statvfs fs;
	uint8_t reply[40];
	int r = get_path(path, data, len);

	if (r)
		return r;
	r = place_statfs(s->place, path, &fs);
	if (r)
		return handle_refuse_path(s, MESSAGE_STATFS, r, path);
	m = (struct message_statfs_reply){
		.total_bytes = (uint64_t)fs.f_blocks * fs.f_frsize,
		.free_bytes = (uint64_t)fs.f_bfree * fs.f_frsize,
		.available_bytes = (uint64_t)fs.f_bavail * fs.f_frsize,
		.total_files = fs.f_files,
		.free_files = fs.f_ffree,
	};
	return daemon_session_reply(
		s, MESSAGE_STATFS, reply, message_put_statfs_reply(&m, reply, sizeof reply));
}
