/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming.c: where arriving files go.
 *
 * Owns the destination's descriptor and, of each file on its way, its landing.  A peer's name is
 * resolved beneath that descriptor, whatever links are there and whoever moves directories
 * meanwhile. Knows no session; what a name means on the other side is not its business.
 */
#include "tree/incoming_impl.h"

#include "base/log.h"
#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/incoming_keep.h"
#include "tree/incoming_links.h"
#include "tree/landing.h"
#include "tree/leftover.h"
#include "tree/metadata.h"
#include "tree/place.h"
#include "tree/temporary.h"
#include "tree/tree_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For opening names beneath it; we need not be allowed to read it. */
static int incoming_open_dir(struct incoming *in)
{
	in->dir = beneath_open(in->params.top, in->path, O_PATH | O_DIRECTORY, 0);
	return in->dir < 0 ? in->dir : 0;
}

/* The file's path as people here know it. */
static void incoming_path(const struct incoming *in, const char *name, char *out, size_t size)
{
	size_t length = strlen(in->path);

	if (in->params.kind == INCOMING_STREAM)
		snprintf(out, size, "-");
	else if (in->params.kind == INCOMING_NULL)
		*out = '\0';
	else if (!*name)
		snprintf(out, size, "%s", in->path);
	else
		snprintf(out, size, "%s%s%s", in->path,
			length && in->path[length - 1] != '/' ? "/" : "", name);
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

/* One of ours that was there already may keep us out; it gets its mode when it is filled. */
static void incoming_unlock(struct incoming *in, const char *name)
{
	struct stat st;
	int fd = incoming_directory(in, name, O_PATH);

	if (fd < 0)
		return;
	/* if it fails, the files that go into it say so */
	if (!fstat(fd, &st) && st.st_uid == opener_uid() && (st.st_mode & 0700) != 0700 &&
		!incoming_is_top(in, &st) && incoming_chmod(fd, (st.st_mode & 07777) | 0700))
		log_debug("a directory of ours that keeps us out stays as it is");
	close(fd);
}

static int incoming_mkdir(struct incoming *in, int top, const char *path, mode_t mode)
{
	const struct place place = {.top = top, .rights = PLACE_WRITE, .space = in->params.space};

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
	incoming_unlock(in, name);
	return in->dir < 0 ? incoming_open_dir(in) : 0;
}

int incoming_metadata(
	struct incoming *in, const struct transfer_file *file, struct metadata *metadata)
{
	int err;

	pthread_mutex_lock(&in->keep_lock);
	err = incoming_keep_metadata(&in->keep, file, metadata);
	pthread_mutex_unlock(&in->keep_lock);
	return err;
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

/* Where a single file went, and what names go beneath. */
static void incoming_sweep_destination(struct incoming *in)
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

/* Several files have a mark: from the second one on, for a directory is one, too. */
static void incoming_mark(struct incoming *in, const struct transfer_file *file, const char *name)
{
	int err;

	if (file->file == 1)
		snprintf(in->first, sizeof(in->first), "%.*s", (int)strcspn(name, "/"), name);
	if (in->marked || !in->sink.resume || in->dir < 0 ||
		(file->kind != TRANSFER_FILE_DIRECTORY && file->file == 1))
		return;
	in->marked = true;
	err = tree_mark_open(in->dir, in->first, &in->began, &in->mark);
	in->busy = err == -EBUSY;
	if (err)
		log_debug("the transfer can not be marked: if it is cut off, files that have "
			  "landed will come again");
}

static void incoming_unmark(struct incoming *in, bool over)
{
	tree_mark_close(in->mark, over);
	in->mark = NULL;
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
		snprintf(text, 512, "its permissions and time are not kept: it can not be opened");
		return 0;
	}
	if (fd < 0)
		return fd;
	incoming_sweep(in, fd); /* which would change its time */
	if (!*name)
		incoming_unmark(in, true); /* so would that: it is the last one */
	err = incoming_metadata(in, file, &metadata);
	if (!err && fstat(fd, &st))
		err = -errno;
	else if (!err && !incoming_is_top(in, &st))
		err = metadata_set(fd, &metadata, text);
	close(fd);
	return err;
}

/* Whether what is there stays: a file, or a link, that is not older than what comes. */
static bool incoming_is_new(const struct landing_params *lp, const struct transfer_file *file)
{
	struct stat st;

	if (beneath_stat(lp->top, lp->path, false, &st) || S_ISDIR(st.st_mode))
		return false;
	return st.st_mtim.tv_sec != file->mtime_s ? st.st_mtim.tv_sec > file->mtime_s
						  : (uint32_t)st.st_mtim.tv_nsec >= file->mtime_ns;
}

/* Whether a file has landed in the transfer that this one goes on with, and is as it would be now.
 */
static bool incoming_is_there(const struct incoming *in, const struct landing_params *lp,
	const struct transfer_file *file)
{
	struct stat st;

	/* of one with other names, these are made of what has come */
	return file->kind == TRANSFER_FILE_REGULAR && in->mark &&
	       !(file->has & TRANSFER_HAS_NAMES) && !beneath_stat(lp->top, lp->path, false, &st) &&
	       tree_mark_covers(in->mark, &st) && (uint64_t)st.st_size == file->size &&
	       st.st_mtim.tv_sec == file->mtime_s &&
	       (uint32_t)st.st_mtim.tv_nsec == file->mtime_ns &&
	       (st.st_mode & 0777) == (file->mode & 0777);
}

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

/* Whether this file's other names are told; where it stays as it was, they become names of that
 * one. */
static void incoming_remember(
	struct incoming *in, const struct transfer_file *file, const struct incoming_landed *landed)
{
	/* without memory for it its links fail, and say so */
	if (landed->number && incoming_links_add(&in->links, landed))
		log_warning("file %u: no room to remember it for its hard links", file->file);
}

static void incoming_remember_kept(
	struct incoming *in, const struct transfer_file *file, const char *name)
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

/* Where something was written to, for incoming_flush: each file system once. */
static void incoming_note_disk(struct incoming *in, int fd)
{
	struct stat st;

	if (in->params.fsync != INCOMING_FSYNC_END || fstat(fd, &st))
		return;
	for (unsigned i = 0; i < in->disk_count; i++)
		if (in->disks[i].device == st.st_dev)
			return;
	if (in->disk_count < INCOMING_DISKS_MAX)
		in->disks[in->disk_count].fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (in->disk_count == INCOMING_DISKS_MAX || in->disks[in->disk_count].fd < 0)
		in->disks_error = -EMFILE;
	else
		in->disks[in->disk_count++].device = st.st_dev;
}

static int incoming_flush(void *ctx)
{
	struct incoming *in = ctx;
	int err = in->disks_error;

	for (unsigned i = 0; i < in->disk_count; i++)
		if (syncfs(in->disks[i].fd) && !err)
			err = -errno;
	return err;
}

/* Whether it is not known before how much of the disk it takes. */
static bool incoming_grows(const struct transfer_file *file)
{
	return file->size == MESSAGE_UNKNOWN || file->has & TRANSFER_HAS_HOLES;
}

static int incoming_claim(void *ctx, uint64_t bytes)
{
	return landing_claim(ctx, bytes);
}

int incoming_aim(struct incoming *in, const struct transfer_file *file, const char *name,
	struct landing_params *lp)
{
	int err;

	*lp = (struct landing_params){.top = in->dir,
		.path = name,
		.replace = in->params.replace,
		.parents = true,
		.unsynced = in->params.fsync != INCOMING_FSYNC_FILE,
		.space = in->params.space,
		.claim_bytes = incoming_grows(file) ? 0 : file->size};
	err = incoming_metadata(in, file, &lp->metadata);
	if (err)
		return err;
	lp->keep = file->kind == TRANSFER_FILE_REGULAR;
	lp->beneath = *name;
	if (!*name) {
		if (in->dir >= 0) /* INTO, or AS when the directory came before */
			return -EISDIR;
		lp->top = in->params.top;
		lp->path = in->path;
		lp->parents = false;
	} else if (in->dir < 0) {
		return -ENOTDIR;
	}
	return in->params.update && incoming_is_new(lp, file) ? -EEXIST : 0;
}

static int incoming_open_file(struct incoming *in, const struct transfer_file *file,
	const char *name, struct landing **landing, struct end **end)
{
	struct landing_params lp;
	int fd, err = incoming_aim(in, file, name, &lp);

	if (err)
		return err;
	if (incoming_is_there(in, &lp, file))
		return -EALREADY;
	/* of a file with holes zeros are not written: what is there must be zeros, too */
	if (in->params.resume_bytes && file->kind == TRANSFER_FILE_REGULAR &&
		file->size >= in->params.resume_bytes && !(file->has & TRANSFER_HAS_HOLES))
		lp.resume = file;
	err = landing_open(&lp, landing);
	if (err)
		return err;
	incoming_note_disk(in, landing_own_fd(*landing));
	fd = landing_fd(*landing);
	err = fd < 0 ? fd
		     : end_file_open_as(fd,
			       &(struct end_file_params){.writing = true,
				       .size = file->size,
				       .direct = in->params.direct,
				       .sparse = file->has & TRANSFER_HAS_HOLES,
				       .preallocate = in->params.preallocate,
				       .claim = incoming_grows(file) && lp.space ? incoming_claim
										 : NULL,
				       .claim_ctx = *landing},
			       end);
	if (err) {
		landing_discard(*landing);
		*landing = NULL;
	}
	return err;
}

static int incoming_open_in_place(
	struct incoming *in, const struct transfer_file *file, const char *name, struct end **end)
{
	int fd, err;

	if (*name || in->used || transfer_is_bare(file))
		return -EINVAL;
	err = incoming_place_open(in->params.top, in->path, &in->params.in_place, in->params.space,
		file->size, end, &fd);
	if (err)
		return err;
	in->used = true;
	incoming_note_disk(in, fd);
	return 0;
}

int incoming_refuse(const struct incoming *in, const char *name, int err, char text[512])
{
	char path[512];

	if (!text[0] && err == -EDQUOT && in->params.space) {
		space_say(in->params.space, text, 512);
		return err;
	}
	if (!text[0] && in->params.top != AT_FDCWD &&
		(in->params.kind == INCOMING_INTO || in->params.kind == INCOMING_AS)) {
		incoming_path(in, name, path, sizeof(path));
		snprintf(text, 512, "creating %.480s", path);
	}
	return err;
}

static int incoming_open(void *ctx, const struct transfer_file *file, struct end **end,
	void **cookie, char text[512])
{
	struct incoming *in = ctx;
	struct incoming_file *f;
	char name[INCOMING_NAME_BYTES];
	int err;

	*end = NULL;
	*cookie = NULL;
	if (!transfer_name_ok(file->name))
		return -ENAMETOOLONG;
	if (file->name.len)
		memcpy(name, file->name.data, file->name.len);
	name[file->name.len] = '\0';

	/* a server does not choose which files a client writes; and who asks for files does not
	 * wait for a stream, which may be silent for ever */
	if (in->params.asked && (file->kind == TRANSFER_FILE_STREAM ||
					(!asked_take(in->params.asked, file) &&
						in->params.kind != INCOMING_STREAM))) {
		in->refused = true;
		snprintf(text, 512, "the server sent what was not asked for");
		return -EBADMSG;
	}
	incoming_mark(in, file, name);
	if (file->kind == TRANSFER_FILE_DIRECTORY && in->params.kind != INCOMING_STREAM) {
		err = in->params.kind == INCOMING_NULL
			      ? 0
			      : incoming_make_directory(in, name, (mode_t)file->mode);
		return err ? incoming_refuse(in, name, err, text) : 0;
	}
	if (file->kind == TRANSFER_FILE_DIRECTORY_END) {
		if (in->params.kind != INCOMING_INTO && in->params.kind != INCOMING_AS)
			return 0;
		err = incoming_leave_directory(in, file, name, text);
		return err ? incoming_refuse(in, name, err, text) : 0;
	}
	if (file->kind == TRANSFER_FILE_SPECIAL && in->params.kind != INCOMING_STREAM)
		return 0; /* it is only told of */
	if (file->kind == TRANSFER_FILE_LINK && in->params.kind != INCOMING_STREAM) {
		err = in->params.kind == INCOMING_NULL ? 0
						       : incoming_make_link(in, file, name, text);
		return err ? incoming_refuse(in, name, err, text) : 0;
	}
	if (file->kind == TRANSFER_FILE_HARD_LINK && in->params.kind != INCOMING_STREAM) {
		err = in->params.kind == INCOMING_NULL
			      ? 0
			      : incoming_make_hard_link(in, file, name, text);
		return err ? incoming_refuse(in, name, err, text) : 0;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->file = file->file;
	if (in->params.kind == INCOMING_NULL) {
		err = end_null_open(UINT64_MAX, end);
	} else if (file->kind == TRANSFER_FILE_NULL) {
		snprintf(text, 512, "no bytes to keep in a transfer of files");
		err = -EINVAL;
	} else if (in->params.in_place.wanted) {
		err = incoming_open_in_place(in, file, name, end);
	} else if (in->params.kind != INCOMING_STREAM) {
		err = incoming_open_file(in, file, name, &f->landing, end);
	} else if (in->used || transfer_is_bare(file)) {
		snprintf(text, 512, "only one file can go to a stream");
		err = -EINVAL;
	} else {
		in->used = true;
		err = end_stream_open(in->params.fd, true, true, end);
	}
	if (err == -EEXIST)
		incoming_remember_kept(in, file, name);
	if (err) {
		free(f);
		return incoming_refuse(in, name, err, text);
	}
	f->next = in->files;
	in->files = f;
	*cookie = f;
	return 0;
}

static int incoming_commit(
	void *ctx, void *cookie, const struct transfer_file *file, uint64_t size, char text[512])
{
	struct incoming_file *f = cookie;
	struct landing *landing;
	struct stat st;
	int err = 0;

	(void)ctx;
	if (!f)
		return 0; /* a directory */
	landing = f->landing;
	f->landing = NULL;
	if (landing && file->has & TRANSFER_HAS_NAMES && !fstat(landing_own_fd(landing), &st))
		f->landed = (struct incoming_landed){file->file, st.st_dev, st.st_ino};
	if (landing)
		err = landing_commit(landing, text);
	if (!err)
		f->bytes = size;
	return err;
}

static void incoming_discard(void *ctx, void *cookie)
{
	struct incoming_file *f = cookie;

	(void)ctx;
	if (!f)
		return;
	landing_discard(f->landing);
	f->landing = NULL;
}

static bool incoming_resumes(void *ctx, void *cookie)
{
	struct incoming_file *f = cookie;

	(void)ctx;
	return f && f->landing && landing_resumes(f->landing);
}

static bool incoming_recall(
	void *ctx, void *cookie, uint32_t block_bytes, struct transfer_notes *found)
{
	(void)ctx;
	return landing_recall(((struct incoming_file *)cookie)->landing, block_bytes, found);
}

static void incoming_note(void *ctx, void *cookie, const struct transfer_note *notes, size_t count)
{
	(void)ctx;
	landing_note(((struct incoming_file *)cookie)->landing, notes, count);
}

static void incoming_suspend(void *ctx, void *cookie)
{
	struct incoming_file *f = cookie;

	(void)ctx;
	landing_suspend(f->landing);
	f->landing = NULL;
}

static const struct transfer_resume incoming_resume = {.wanted = incoming_resumes,
	.recall = incoming_recall,
	.note = incoming_note,
	.suspend = incoming_suspend};

static void incoming_done(
	void *ctx, const struct transfer_file *file, uint16_t status, const char *text)
{
	struct incoming *in = ctx;
	struct incoming_file **at = &in->files, *f;
	size_t room;
	/* of a bundle; of others the record says it */
	uint64_t bytes = !status && file->kind == TRANSFER_FILE_REGULAR ? file->size : 0;
	char name[INCOMING_NAME_BYTES] = "", *path;
	struct outcome outcome;

	while (*at && (*at)->file != file->file)
		at = &(*at)->next;
	f = *at;
	if (f) {
		*at = f->next;
		bytes = status ? 0 : f->bytes;
		if (!status)
			incoming_remember(in, file, &f->landed);
		landing_discard(
			f->landing); /* there only if neither commit nor discard was called */
		free(f);
	}
	in->landed |= status == STATUS_THERE || (!status && file->kind == TRANSFER_FILE_REGULAR);
	/* a directory is told when it is made; of its end only what went wrong */
	if (!in->params.done || (file->kind == TRANSFER_FILE_DIRECTORY_END && !status && !*text))
		return;
	if (file->name.len && file->name.len < sizeof(name)) {
		memcpy(name, file->name.data, file->name.len);
		name[file->name.len] = '\0';
	}
	room = strlen(in->path) + sizeof(name) + 8;
	path = malloc(room);
	if (path)
		incoming_path(in, name, path, room);
	outcome = (struct outcome){.path = path ? path : in->path,
		.name = file->name,
		.directory = file->kind == TRANSFER_FILE_DIRECTORY ||
			     file->kind == TRANSFER_FILE_DIRECTORY_END,
		.special = file->kind == TRANSFER_FILE_SPECIAL,
		.bytes = bytes,
		.status = status,
		.text = text};
	in->params.done(in->params.ctx, &outcome);
	free(path);
}

/* Whether the destination can be one. */
static int incoming_check(struct incoming *in)
{
	char last[256];
	int dir;

	switch (in->params.kind) {
	case INCOMING_INTO:
		return incoming_open_dir(in);
	case INCOMING_AS:
		dir = beneath_open_parent(in->params.top, in->path, last);
		if (dir < 0)
			return dir;
		close(dir);
		return 0;
	case INCOMING_STREAM:
	case INCOMING_NULL:
		return 0;
	}
	return -EINVAL;
}

/* The mark of several files goes, or stays for whoever goes on. */
static void incoming_end_mark(struct incoming *in)
{
	/* one that somebody else had, who was just being cut off */
	if (in->over && in->busy && tree_mark_open(in->dir, in->first, &in->began, &in->mark))
		in->mark = NULL;
	/* only what has landed need not come again, and of a server that can be believed */
	incoming_unmark(in, in->over || in->refused || !in->landed);
	in->busy = false;
}

void incoming_is_over(struct incoming *in)
{
	in->over = true;
	incoming_end_mark(in);
}

static void incoming_over(void *ctx)
{
	incoming_is_over(ctx);
}

int incoming_new(const struct incoming_params *params, struct incoming **out)
{
	struct incoming *in = calloc(1, sizeof(*in));
	int err = -ENOMEM;

	*out = NULL;
	if (!in)
		return -ENOMEM;
	in->params = *params;
	if (params->in_place.wanted)
		in->params.resume_bytes = 0;
	pthread_mutex_init(&in->keep_lock, NULL);
	in->keep = (struct incoming_keep){.set_id = params->set_id, .has = params->keep};
	if (in->keep.has)
		in->keep.has |= TRANSFER_HAS_LOST;
	clock_gettime(CLOCK_REALTIME_COARSE, &in->began); /* as file systems have it */
	in->dir = -1;
	in->path = strdup(params->path ? params->path : "");
	if (!in->path)
		goto err_free;
	in->params.path = in->path;
	err = incoming_check(in);
	if (err)
		goto err_free;
	in->sink = (struct transfer_sink){.open = incoming_open,
		.commit = incoming_commit,
		.discard = incoming_discard,
		.done = incoming_done,
		.over = incoming_over,
		.ctx = in};
	/* a file that may stay away, as it has landed before, is asked for before its bytes are
	 * sent */
	if (params->kind != INCOMING_STREAM && !params->in_place.wanted && params->replace &&
		!params->update && params->direct != END_DIRECT_ON && !params->readback &&
		!(params->resume_bytes && in->dir >= 0 && tree_mark_any(in->dir))) {
		in->sink.admit = incoming_admit;
		in->sink.land = incoming_land;
	}
	if ((params->kind == INCOMING_INTO || params->kind == INCOMING_AS) && !params->readback &&
		params->direct != END_DIRECT_ON)
		in->sink.whole = incoming_whole;
	in->sink.readback = params->readback;
	in->sink.unsynced = params->fsync != INCOMING_FSYNC_FILE;
	if (params->fsync == INCOMING_FSYNC_END)
		in->sink.flush = incoming_flush;
	if (in->params.resume_bytes &&
		(params->kind == INCOMING_INTO || params->kind == INCOMING_AS))
		in->sink.resume = &incoming_resume;
	*out = in;
	return 0;

err_free:
	free(in->path);
	free(in);
	return err;
}

void incoming_free(struct incoming *in)
{
	struct incoming_file *f;

	if (!in)
		return;
	while ((f = in->files)) {
		in->files = f->next;
		landing_discard(f->landing);
		free(f);
	}
	incoming_end_mark(in);
	while (in->disk_count)
		close(in->disks[--in->disk_count].fd);
	if (in->params.sweep)
		incoming_sweep_destination(in);
	if (in->dir >= 0)
		close(in->dir);
	incoming_keep_fini(&in->keep);
	incoming_links_fini(&in->links);
	free(in->path);
	free(in);
}

const struct transfer_sink *incoming_sink(struct incoming *in)
{
	return &in->sink;
}
