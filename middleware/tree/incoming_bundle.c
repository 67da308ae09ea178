/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_bundle.c: small files and links that come together.
 *
 * What is asked in the transfer's thread is settled there; landing runs in worker threads, which
 * read of the destination what does not change any more.
 */
#include "tree/incoming_impl.h"

#include "tree/landings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The cookie of what goes to the destination itself; that of what goes beneath it is NULL. */
static const char incoming_itself;

int incoming_admit(void *ctx, const struct transfer_file *file, void **cookie, char text[512])
{
	struct incoming *in = ctx;
	const char *name = (const char *)file->name.data;
	int err = 0;

	if (in->params.asked && !asked_take(in->params.asked, file)) {
		snprintf(text, 512, "the server sent what was not asked for");
		return -EBADMSG;
	}
	if (in->params.kind == INCOMING_NULL)
		return 0;
	*cookie = *name ? NULL : (void *)&incoming_itself;
	if (*name && in->dir < 0)
		err = -ENOTDIR;
	else if (!*name && in->dir >= 0) /* INTO, or AS when the directory came before */
		err = -EISDIR;
	return err ? incoming_refuse(in, name, err, text) : 0;
}

/* One file, in place of what the destination names. */
static int incoming_land_itself(
	struct incoming *in, const struct landings_file *file, char text[512])
{
	const struct landing_params lp = {.top = in->params.top,
		.path = in->path,
		.metadata = file->metadata,
		.keep = true,
		.replace = true,
		.unsynced = in->params.fsync == INCOMING_FSYNC_NEVER,
		.space = in->params.space,
		.claim_bytes = file->bytes};
	struct landing *landing;
	int err = landing_open(&lp, &landing);

	if (err)
		return err;
	err = incoming_write(landing, &lp, file->data, file->bytes, text);
	if (err)
		landing_discard(landing);
	else
		err = landing_commit(landing, text);
	return err;
}

static void incoming_landed(
	const struct incoming *in, const struct landings_file *file, struct transfer_arrival *a)
{
	char text[512] = "";

	a->text = file->text;
	if (!file->err)
		return;
	a->status = status_from_errno(file->err);
	if (file->text)
		return;
	incoming_refuse(in, (const char *)a->file.name.data, file->err, text);
	a->text = *text ? strdup(text) : NULL;
}

static void incoming_land_one(struct incoming *in, struct landings_file *file)
{
	char text[512] = "";

	file->err = incoming_land_itself(in, file, text);
	file->text = *text ? strdup(text) : NULL;
}

/* 0 or -ENOMEM. */
static int incoming_file(
	struct incoming *in, const struct transfer_arrival *a, struct landings_file *file)
{
	*file = (struct landings_file){
		.path = (const char *)a->file.name.data, .data = a->data, .bytes = a->file.size};
	if (a->file.kind == TRANSFER_FILE_LINK)
		file->target = (const char *)a->file.target.data;
	return incoming_metadata(in, &a->file, &file->metadata);
}

/* What goes to the destination itself is done; of the others, how many there are. */
static unsigned incoming_sort(struct incoming *in, struct transfer_arrival *const *arrivals,
	unsigned count, struct landings_file *files)
{
	unsigned together = 0;

	for (unsigned i = 0; i < count; i++) {
		struct landings_file *file = &files[together];

		if (incoming_file(in, arrivals[i], file)) {
			arrivals[i]->status = STATUS_NO_MEMORY;
		} else if (arrivals[i]->cookie) {
			incoming_land_one(in, file);
			incoming_landed(in, file, arrivals[i]);
		} else {
			together++;
		}
	}
	return together;
}

void incoming_land(
	void *ctx, struct transfer_arrival *const *arrivals, unsigned count, unsigned open_max)
{
	struct incoming *in = ctx;
	/* to be flushed at the end is to be flushed now: who lands this may not note disks */
	struct landings_params params = {.open_max = open_max,
		.costs = &in->costs,
		.space = in->params.space,
		.unsynced = in->params.fsync == INCOMING_FSYNC_NEVER};
	struct landings_file *files;
	unsigned together;

	if (in->params.kind == INCOMING_NULL || !count)
		return;
	files = calloc(count, sizeof(*files));
	for (unsigned i = 0; i < count && !files; i++)
		arrivals[i]->status = STATUS_NO_MEMORY;
	if (!files)
		return;
	together = incoming_sort(in, arrivals, count, files);
	if (together) { /* it is there, or `admit` had refused them, and stays */
		params.top = in->dir;
		landings_run(&params, files, together);
	}
	together = 0;
	for (unsigned i = 0; i < count; i++)
		if (!arrivals[i]->cookie && !arrivals[i]->status)
			incoming_landed(in, &files[together++], arrivals[i]);
	free(files);
}
