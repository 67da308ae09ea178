/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_inline.c: see sync_inline.h.
 */
#include "rftp/copy/sync_inline.h"

#include "rftp/copy/mover_inline.h"
#include "rftp/remote/remote_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is for this way ---- */

/* A server's listing may name what it likes. */
static bool may_be_asked(const struct compare_entry *e, uint32_t most)
{
	const struct wire_bytes name = {(const uint8_t *)e->name, strlen(e->name)};

	if (e->failed || e->part || e->leader || !name.len || !transfer_name_ok(name))
		return false;
	switch (e->type) {
	case MESSAGE_DIRECTORY:
		return true;
	case MESSAGE_SYMLINK:
		return e->target && *e->target;
	case MESSAGE_FILE: /* without room on a disk it is all a hole */
		return e->size <= most && (!e->size || e->disk);
	default:
		return false;
	}
}

static int add_step(struct selection *steps, const struct compare_entry *e)
{
	char *name;
	int err, len = asprintf(&name, "%s%s", e->name, e->type == MESSAGE_DIRECTORY ? "/" : "");

	if (len < 0)
		return -ENOMEM;
	err = selection_add(steps, name, (size_t)len);
	free(name);
	return err;
}

/* One name of the plan.  As sync_inline_fits. */
static int add_name(const struct compare_list *from, const char *name, uint32_t most,
	struct selection *steps, unsigned *files, unsigned most_files)
{
	const size_t len = strlen(name);
	const bool alone = len && name[len - 1] == '/';
	char *plain = strndup(name, len - alone);
	const struct compare_entry *e = plain ? compare_list_find(from, plain) : NULL;
	const struct compare_entry *end = from->entries + from->count;
	int err = plain ? 1 : -ENOMEM;

	if (!err || !e || (alone && e->type != MESSAGE_DIRECTORY))
		err = err < 0 ? err : 0;
	for (bool more = err > 0; more && err > 0;) {
		*files += e->type == MESSAGE_FILE;
		if (!may_be_asked(e, most) || *files > most_files)
			err = 0;
		else
			err = add_step(steps, e) ? -ENOMEM : 1;
		more = ++e < end && !alone && !strncmp(e->name, plain, len) && e->name[len] == '/';
	}
	free(plain);
	return err;
}

int sync_inline_fits(const struct compare_list *from, const struct compare_plan *plan,
	uint32_t most, unsigned most_files, struct selection *steps)
{
	unsigned files = 0;
	int fits = most && !plan->beside.count && plan->copy.count;

	for (size_t i = 0; i < plan->copy.count && fits > 0; i++)
		fits = add_name(from, plan->copy.names[i], most, steps, &files, most_files);
	if (fits > 0 && selection_sort(steps))
		fits = -ENOMEM;
	return fits > 0 && !files ? 0 : fits;
}

/* ---- copying ---- */

struct copying {
	const struct sync_inline *p;
	const struct transfer_sink *to;
	struct inline_file files[MOVER_INLINE_FILES];
	char *paths[MOVER_INLINE_FILES];
	unsigned count;
};

/* A directory, its end or a link, as a transfer would announce it. */
static void announce(struct copying *c, const struct compare_entry *e, uint8_t kind)
{
	const struct transfer_file file = {
		.file = 1,
		.kind = kind,
		.mode = e->mode,
		.mtime_s = e->mtime_s,
		.mtime_ns = e->mtime_ns,
		.name = {(const uint8_t *)e->name, strlen(e->name)},
		.target = {(const uint8_t *)e->target,
			kind == TRANSFER_FILE_LINK ? strlen(e->target) : 0},
	};
	char text[512] = "";
	struct end *end = NULL;
	void *cookie = NULL;
	int err = c->to->open(c->to->ctx, &file, &end, &cookie, text);

	c->to->done(c->to->ctx, &file, err ? status_from_errno(err) : STATUS_OK, text);
}

static int ask_later(struct copying *c, const struct compare_entry *e)
{
	char *path = remote_join(c->p->params->remote, e->name);

	if (!path)
		return -ENOMEM;
	c->paths[c->count] = path;
	c->files[c->count++] = (struct inline_file){.path = path, .name = e->name};
	return 0;
}

/* All that comes before the files, and which these are; or, after them, the ends of directories. */
static int walk(struct copying *c, struct selection *steps, bool ends)
{
	enum selection_step step;
	const char *name;
	int err = 0;

	steps->at = 0;
	while (!err && (step = selection_next(steps, &name)) != SELECTION_END) {
		const struct compare_entry *e = compare_list_find(c->p->from, name);

		if (!e)
			continue;
		if (ends && step == SELECTION_LEAVE)
			announce(c, e, TRANSFER_FILE_DIRECTORY_END);
		else if (!ends && step == SELECTION_ENTER)
			announce(c, e, TRANSFER_FILE_DIRECTORY);
		else if (!ends && step == SELECTION_NAME && e->type == MESSAGE_SYMLINK)
			announce(c, e, TRANSFER_FILE_LINK);
		else if (!ends && step == SELECTION_NAME)
			err = ask_later(c, e);
	}
	return err;
}

int sync_inline_copy(const struct sync_inline *p, struct selection *steps, struct selection *left)
{
	struct copying *c = calloc(1, sizeof *c);
	struct incoming *incoming = NULL;
	int err = c ? incoming_new(p->incoming, &incoming) : -ENOMEM;

	if (err) {
		report_errorf(&p->mover->client->report, err, p->params->local, "%s",
			status_text(status_from_errno(err)));
		free(c);
		return err;
	}
	c->p = p;
	c->to = incoming_sink(incoming);
	err = walk(c, steps, false);
	if (err)
		client_no_memory(p->mover->client);
	else
		err = mover_inline_get(
			p->mover, incoming, c->files, c->count, false, p->params->remote);
	(void)walk(c, steps, true);
	if (c->to->unsynced && c->to->flush && c->to->flush(c->to->ctx))
		report_error(&p->mover->client->report, EXIT_CODE_OK, STATUS_IO, p->params->local,
			"flushing it to stable storage");
	for (unsigned i = 0; i < c->count; i++) {
		if (c->files[i].left &&
			selection_add(left, c->files[i].name, strlen(c->files[i].name)) && !err)
			err = client_no_memory(p->mover->client);
		free(c->paths[i]);
	}
	incoming_free(incoming);
	free(c);
	return err;
}
