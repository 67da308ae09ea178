/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sources.c: see sources.h.
 */
#include "rftp/copy/sources.h"

#include "rftp/copy/mover.h"
#include "rftp/copy/mover_file.h"
#include "rftp/copy/sync_plan.h"
#include "rftp/copy/targets.h"
#include "rftp/remote/remote_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIST_BYTES 24576u /* of paths in one request, beside the first one and the rules */

void sources_fini(struct sources *s)
{
	remote_glob_free(s->paths, s->count);
	*s = (struct sources){0};
}

/* Adds what one pattern stands for.  0 or -errno (reported). */
static int sources_add(struct mover *m, const char *pattern, struct sources *s)
{
	struct client *c = m->client;
	char **found, **all;
	size_t n;
	int err = remote_glob(c->session, pattern, &found, &n);

	if (err == -ENOENT) {
		report_error(
			&c->report, EXIT_CODE_OK, STATUS_NOT_FOUND, pattern, "nothing matches");
		mover_file_absent(m, "", pattern, STATUS_NOT_FOUND);
		return 0;
	}
	if (err)
		return client_report(c, pattern, err);
	all = realloc(s->paths, (s->count + n) * sizeof *all);
	if (!all) {
		remote_glob_free(found, n);
		return client_no_memory(c);
	}
	s->paths = all;
	memcpy(all + s->count, found, n * sizeof *found);
	s->count += n;
	free(found);
	return 0;
}

/* Of the paths from `from` on, those that are copied again whole go to the front. */
static void sources_sort(
	struct sources *s, size_t from, const struct again *again, const char *pattern)
{
	const bool all = again_has(again, pattern);

	for (size_t i = from; i < s->count; i++) {
		char *path = s->paths[i];

		if (!all && !again_has(again, path))
			continue;
		s->paths[i] = s->paths[s->whole];
		s->paths[s->whole++] = path;
	}
}

int sources_expand(struct mover *m, const char *const *patterns, size_t count,
	const struct again *again, struct sources *s)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const size_t from = s->count;

		err = sources_add(m, patterns[i], s);
		sources_sort(s, from, again, patterns[i]);
	}
	while (again_is_sources(again) && s->count > s->whole)
		free(s->paths[--s->count]);
	return err;
}

int sources_is_tree(struct client *c, const char *path)
{
	struct message_attr attr;
	int err = calls_stat(c->session, path, &attr);

	if (err)
		return client_report(c, path, err);
	if (attr.type != MESSAGE_DIRECTORY)
		return 0;
	if (c->settings.recursive)
		return 1;
	report_error(&c->report, EXIT_CODE_OK, STATUS_IS_DIRECTORY, path, MOVER_WITHOUT_R);
	return -EISDIR;
}

/* Adds what is in a directory at the server; what cannot be listed adds nothing: the copy itself
 * will say why.  0 or -errno (reported). */
static int sources_add_directory(struct client *c, struct targets *targets, const char *path)
{
	struct calls_list list;
	int err = calls_list(c->session, path, &list);

	if (err)
		return calls_lost(c->session) ? client_report(c, path, err) : 0;
	for (size_t i = 0; i < list.count && !err; i++) {
		const char *name = list.entries[i].name;

		err = targets_add(targets, name, strlen(name), path);
	}
	calls_list_free(&list);
	return err ? client_no_memory(c) : 0;
}

int sources_check_names(struct client *c, char *const *paths, size_t count, const char *target)
{
	const struct targets_entry *clash;
	struct targets targets;
	int err = 0;

	if (count < 2)
		return 0;
	targets_init(&targets);
	for (size_t i = 0; i < count && !err; i++) {
		size_t len;
		const char *name = targets_name(paths[i], &len);

		if (len)
			err = targets_add(&targets, name, len, paths[i]) ? client_no_memory(c) : 0;
		else if (c->settings.recursive)
			err = sources_add_directory(c, &targets, paths[i]);
	}
	clash = err ? NULL : targets_clash(&targets);
	if (clash) {
		err = -EEXIST;
		report_errorf(&c->report, err, target,
			"two sources would become %s here: %s and %s; nothing was copied",
			clash[0].name, clash[0].source, clash[1].source);
	}
	targets_fini(&targets);
	return err;
}

void sources_absent(struct mover *m, const struct asked *asked, int error)
{
	for (size_t i = 0; i < asked->count && m->client->session; i++)
		mover_file_absent(
			m, asked->names[i].name, asked->names[i].path, status_from_errno(error));
}

void sources_absent_paths(struct mover *m, char *const *paths, size_t count, bool into, int error)
{
	struct asked asked = {0};

	for (size_t i = 0; i < count; i++) {
		size_t len;
		const char *name = targets_name(paths[i], &len);

		if (asked_add(&asked, name, into ? len : 0, paths[i]))
			break; /* the others are not in the list */
	}
	sources_absent(m, &asked, error);
	asked_fini(&asked);
}

/* For one request: all of the paths that have a name to arrive under (`into` a directory), as far
 * as a request has room for more than the first one; else the first.  *count: of how many there
 * are, for how many it is, at least one.  They are added to `asked`; *more are those behind the
 * first, encoded, whose data is the caller's to free, also after an error.  0 or -ENOMEM. */
static int sources_gather(
	char *const *paths, size_t *count, bool into, struct asked *asked, struct wire_bytes *more)
{
	uint8_t *list = malloc(LIST_BYTES);
	size_t most = *count < MESSAGE_PATHS_MAX ? *count : MESSAGE_PATHS_MAX, used = 0, len = 0;
	int err = list ? 0 : -ENOMEM;

	*count = 0;
	while (!err && *count < most) {
		const char *path = paths[*count];
		struct wire_bytes bytes = {(const uint8_t *)path, strlen(path)};
		const char *name = targets_name(path, &len);

		len = into ? len : 0;
		if (*count && (!len || message_add_path(list, LIST_BYTES, &used, bytes)))
			break;
		err = asked_add(asked, name, len, path);
		(*count)++;
		if (!len)
			break;
	}
	*more = (struct wire_bytes){list, used};
	*count += !*count; /* none could be collected */
	return err;
}

/* *count: for how many of the paths it was. */
static int sources_request(
	struct client *c, char *const *paths, size_t *count, const struct sources_copy *copy)
{
	struct asked asked = {.tree = c->settings.recursive};
	struct wire_bytes more;
	int err = sources_gather(paths, count, copy->into, &asked, &more);

	err = err ? client_no_memory(c) : copy->request(copy->ctx, &more, &asked);
	asked_fini(&asked);
	free((void *)more.data);
	return err;
}

int sources_copy(
	struct client *c, char *const *paths, size_t count, const struct sources_copy *copy)
{
	int err = 0;

	for (size_t i = 0, some; i < count && !err; i += some) {
		some = 1;
		if (c->settings.dry_run) {
			sync_plan_print_copy(c, copy->command, paths[i], copy->target);
			continue;
		}
		some = count - i;
		err = sources_request(c, paths + i, &some, copy);
		/* what cannot be had does not keep the others back */
		if (err && c->session && !client_is_cancelled(c) && err != -ECANCELED &&
			!(copy->is_over && copy->is_over(copy->ctx)))
			err = 0;
	}
	return err;
}
