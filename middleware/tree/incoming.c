/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming.c: where arriving files go.
 *
 * Owns the destination's descriptor and, of each file on its way, its landing.  A peer's name is
 * resolved beneath that descriptor, whatever links are there and whoever moves directories
 * meanwhile.
 */
#include "tree/incoming_impl.h"

#include "tree/beneath.h"
#include "tree/incoming_keep.h"
#include "tree/incoming_links.h"
#include "tree/incoming_room.h"
#include "tree/landing.h"
#include "tree/metadata.h"
#include "tree/tree_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int incoming_metadata(
	struct incoming *in, const struct transfer_file *file, struct metadata *metadata)
{
	int err;

	pthread_mutex_lock(&in->keep_lock);
	err = incoming_keep_metadata(&in->keep, file, metadata);
	pthread_mutex_unlock(&in->keep_lock);
	return err;
}

bool incoming_is_new(const struct landing_params *lp, const struct transfer_file *file)
{
	struct stat st;

	if (beneath_stat(lp->top, lp->path, false, &st) || S_ISDIR(st.st_mode))
		return false;
	return st.st_mtim.tv_sec != file->mtime_s ? st.st_mtim.tv_sec > file->mtime_s
						  : (uint32_t)st.st_mtim.tv_nsec >= file->mtime_ns;
}

static void incoming_note_disk(struct incoming *in, int fd)
{
	if (in->params.fsync == INCOMING_FSYNC_END)
		incoming_disks_note(&in->disks, fd);
}

static int incoming_flush(void *ctx)
{
	return incoming_disks_flush(&((struct incoming *)ctx)->disks);
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
	if (incoming_mark_covers(&in->mark, file, lp.top, lp.path))
		return -EALREADY;
	if (in->params.resume_bytes && file->kind == TRANSFER_FILE_REGULAR &&
		file->size >= in->params.resume_bytes)
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

	if (*name || in->used)
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
	/* nor does who may append to one file make, change or replace others */
	if (in->params.in_place.wanted && transfer_is_bare(file)) {
		snprintf(text, 512, "only the bytes of one file can be written in place");
		return incoming_refuse(in, name, -EINVAL, text);
	}
	incoming_mark_meet(&in->mark, in->dir, file, name, in->sink.resume);
	/* a stream takes no directory, but may be told of the end of one */
	if (file->kind == TRANSFER_FILE_DIRECTORY_END ||
		(transfer_is_bare(file) && in->params.kind != INCOMING_STREAM)) {
		err = incoming_bare(in, file, name, text);
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
		.attributes = file->kind == TRANSFER_FILE_ATTRIBUTES,
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
	/* only what has landed need not come again, and of a server that can be believed */
	incoming_mark_end(&in->mark, in->dir, in->over, !in->over && !in->refused && in->landed);
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
	incoming_mark_init(&in->mark);
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
	if (params->kind == INCOMING_STREAM && !params->readback)
		in->sink.whole = incoming_whole_stream;
	if (params->kind == INCOMING_INTO || params->kind == INCOMING_AS)
		in->sink.room = incoming_room;
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
	incoming_disks_fini(&in->disks);
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
