/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_remove: see sync_remove.h.
 *
 * At the server files go first, each by a request of its own, of which many are under way; then
 * directories, each by as many requests as it takes.
 */
#include "rftp/copy/sync_remove.h"

#include "base/clock.h"
#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"
#include "session/calls_names.h"
#include "tree/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SYNC_REMOVE_NS UINT64_C(100000000)

struct sync_remove {
	struct client *c;
	const struct sync_params *params;
	uint64_t *removed;
	char **files; /* at the server: paths of those that are no directories */
	size_t count;
};

static void tell_json(const struct sync_remove *s, const char *path, uint16_t status)
{
	struct text json = {0};

	report_json_begin(&json, "removed");
	report_json_string(&json, "path", s->params->to_server ? NULL : path);
	report_json_string(&json, "remote", s->params->to_server ? path : NULL);
	report_json_string(&json, "status", status_name(status));
	report_json_end(&s->c->report, &json);
}

/* What is said of a name that was to go.  0 or -errno: it is over. */
static int done(struct sync_remove *s, const char *path, int err)
{
	struct client *c = s->c;

	if (err == -ENOENT)
		err = 0;
	*s->removed += !err;
	if (report_json(&c->report))
		tell_json(s, path, err ? status_from_errno(err) : STATUS_OK);
	if (!err)
		report_verbose(&c->report, "removed %s", path);
	else if (s->params->to_server)
		client_report(c, path, err);
	else
		report_errorf(&c->report, err, path, "%s", status_text(status_from_errno(err)));
	return c->session && err != -ECANCELED ? 0 : err;
}

/* ---- there ---- */

static const char *file_path(void *ctx, size_t index)
{
	return ((const struct sync_remove *)ctx)->files[index];
}

static void file_done(void *ctx, size_t index, int err)
{
	struct sync_remove *s = ctx;

	(void)done(s, s->files[index], err); /* who ends it says so, too */
}

static int remove_files(struct sync_remove *s, const struct compare_names *names)
{
	struct calls_removal all = {.path = file_path, .done = file_done, .ctx = s};
	int err = 0;

	s->files = calloc(names->count, sizeof *s->files);
	if (!s->files)
		return client_no_memory(s->c);
	for (size_t i = 0; i < names->count && !err; i++) {
		const struct compare_entry *e = names->entries[i];

		if (e->type == MESSAGE_DIRECTORY)
			continue;
		s->files[s->count] = remote_join(s->params->remote, e->name);
		if (!s->files[s->count++])
			err = client_no_memory(s->c);
	}
	all.count = s->count;
	if (!err)
		err = calls_remove_all(s->c->session, &all);
	while (s->count)
		free(s->files[--s->count]);
	free(s->files);
	return err;
}

static int remove_directory(struct client *c, const char *path)
{
	struct message_removed removed = {.more = 1};
	int err = 0;

	while (!err && removed.more)
		err = interrupt_signal() ? -ECANCELED
					 : calls_remove_tree(c->session, path, &removed);
	return err;
}

static int remove_there(struct sync_remove *s, const struct compare_names *names)
{
	int err = remove_files(s, names);

	for (size_t i = 0; i < names->count && !err; i++) {
		const struct compare_entry *e = names->entries[i];
		char *path;

		if (e->type != MESSAGE_DIRECTORY)
			continue;
		path = remote_join(s->params->remote, e->name);
		err = path ? done(s, path, remove_directory(s->c, path)) : client_no_memory(s->c);
		free(path);
	}
	return err;
}

/* ---- here ---- */

static int remove_local(const char *name, int top)
{
	struct removal removal = {.more = true};
	int err = 0;

	while (!err && removal.more)
		err = interrupt_signal() ? -ECANCELED
					 : removal_run(top, name, clock_now_ns() + SYNC_REMOVE_NS,
						   NULL, &removal);
	free(removal.fault);
	return err;
}

static int remove_here(struct sync_remove *s, const struct compare_names *names)
{
	const char *local = s->params->local;
	int top = open(local, O_PATH | O_DIRECTORY | O_CLOEXEC), err = top < 0 ? -errno : 0;

	if (err) {
		report_errorf(&s->c->report, err, local, "%s", status_text(status_from_errno(err)));
		return err;
	}
	for (size_t i = 0; i < names->count && !err; i++) {
		const char *name = names->entries[i]->name;
		char *path = remote_join(local, name);

		err = path ? done(s, path, remove_local(name, top)) : client_no_memory(s->c);
		free(path);
	}
	close(top);
	return err;
}

int sync_remove(struct client *c, const struct sync_params *params,
	const struct compare_names *names, uint64_t *removed)
{
	struct sync_remove s = {.c = c, .params = params, .removed = removed};

	if (!names->count)
		return 0;
	return params->to_server ? remove_there(&s, names) : remove_here(&s, names);
}
