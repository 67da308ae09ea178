/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/get.c: decides what remote files are called here.  Writing them is tree/incoming's.
 */
#include "rftp/copy/get.h"

#include "rftp/copy/mover.h"
#include "rftp/copy/mover_early.h"
#include "rftp/copy/mover_file.h"
#include "rftp/copy/mover_inline.h"
#include "rftp/copy/rules.h"
#include "rftp/copy/sources.h"
#include "rftp/copy/sync.h"
#include "rftp/copy/targets.h"
#include "rftp/copy/wishes.h"
#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"
#include "tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct get {
	struct mover mover;
	struct client *client;
	const char *target;
	enum incoming_kind kind; /* INTO, AS or STREAM */
	bool made;               /* the target is a directory that was made just now */
	bool no_room;            /* a request was refused for the space that it needs */
	struct again again;      /* what of the sources is copied again, */
	struct filter whole;     /* the rules for that, */
	struct filter named;     /* and for all else */
	struct filter *filter;   /* those of the request that runs */
};

/* Whether the first of the sources that can be had is a directory to be copied.  Those before it,
 * which cannot, are told of here, and leave the list: they are not asked for again.  `several`:
 * into a directory in any case.  1, 0, -errno (reported). */
static int get_find_source(struct get *g, struct sources *s, bool several)
{
	struct client *c = g->client;
	int err = -ENOENT;

	while (s->count && c->session) {
		err = sources_is_tree(c, s->paths[0]);
		if (err >= 0)
			break;
		sources_absent_paths(&g->mover, s->paths, 1, several, err);
		free(s->paths[0]);
		memmove(s->paths, s->paths + 1, --s->count * sizeof *s->paths);
		s->whole -= s->whole > 0;
	}
	return err;
}

/* A target that is not there: whether it becomes a directory that takes the sources, which is then
 * made.  1, 0, -errno (reported). */
static int get_make_directory(struct get *g, struct sources *s, size_t count)
{
	struct client *c = g->client;
	bool several = count > 1 || g->target[strlen(g->target) - 1] == '/';
	int err;

	if (!several && !c->settings.recursive)
		return 0;
	/* not for the sake of sources that are not there */
	err = get_find_source(g, s, several);
	if (err < 0 || (!several && !err))
		return err;
	if (!c->settings.dry_run)
		err = beneath_mkdir(AT_FDCWD, g->target, 0777, c->settings.parents);
	else
		err = 0;
	if (err)
		report_errorf(&c->report, err, g->target, "%s (making the directory)",
			status_text(status_from_errno(err)));
	g->made = !err && !c->settings.dry_run;
	return err ? err : 1;
}

/* What the target is; sources that turn out not to be there leave the list.  0 or -errno
 * (reported). */
static int get_target(struct get *g, struct sources *s, size_t count)
{
	struct stat st;
	int into;

	if (!strcmp(g->target, "-")) {
		g->kind = INCOMING_STREAM;
		g->mover.stdout_stream = true;
		return 0;
	}
	if (!stat(g->target, &st))
		into = S_ISDIR(st.st_mode);
	else
		into = get_make_directory(g, s, count);
	if (into < 0)
		return into;
	g->kind = into ? INCOMING_INTO : INCOMING_AS;
	if (into || (count == 1 && g->target[strlen(g->target) - 1] != '/'))
		return 0;
	report_error(&g->client->report, EXIT_CODE_OK, STATUS_NOT_DIRECTORY, g->target, NULL);
	return -ENOTDIR;
}

/* A server that leaves a file out has sent less than was asked for, whatever it says of its
 * success. */
static int get_receive(struct get *g, struct incoming *incoming, struct asked *asked)
{
	uint64_t before = g->mover.outcomes;
	const char *first = asked->names->path;
	int err = mover_receive(&g->mover, incoming, asked->count > 1 ? g->target : first);

	/* only an empty top directory has no name to tell of */
	if (err || (asked->count == 1 && g->mover.outcomes > before) ||
		(asked->tree && !*asked->names->name))
		return err;
	for (size_t i = 0; i < asked->count; i++) {
		const struct asked_name *name = &asked->names[i];

		if ((asked->count > 1 && name->came) ||
			filter_excludes(g->filter, name->name, true) ||
			filter_excludes(g->filter, name->name, false))
			continue;
		report_error(&g->client->report, EXIT_CODE_OK, STATUS_OTHER, name->path,
			"the server sent nothing: it could not read it (its log says why)");
		mover_file_absent(&g->mover, name->name, name->path, STATUS_OTHER);
		err = -EREMOTEIO;
	}
	return err;
}

/* The directory that the one file goes into, if that is what is missing.  0 or -errno (reported).
 */
static int get_make_parent(struct get *g, const char *path)
{
	struct client *c = g->client;
	const char *slash = strrchr(g->target, '/');
	char *parent;
	int err;

	if (!c->settings.parents || g->kind != INCOMING_AS || !slash || slash == g->target) {
		report_errorf(&c->report, -ENOENT, g->target,
			"%s (the directory it should go into)", status_text(STATUS_NOT_FOUND));
		return -ENOENT;
	}
	/* not for the sake of a source that is not there */
	err = sources_is_tree(c, path);
	if (err < 0)
		return err;
	parent = strndup(g->target, (size_t)(slash - g->target));
	if (!parent)
		return client_no_memory(c);
	err = beneath_mkdir(AT_FDCWD, parent, 0777, true);
	if (err)
		report_errorf(&c->report, err, parent, "%s (making the directory)",
			status_text(status_from_errno(err)));
	free(parent);
	return err;
}

/* 0 or -errno (reported). */
static int get_incoming(struct get *g, const struct incoming_params *params, const char *path,
	struct incoming **out)
{
	int err = incoming_new(params, out);

	if (err == -ENOENT) {
		err = get_make_parent(g, path);
		if (err)
			return err;
		err = incoming_new(params, out);
	}
	if (err)
		report_errorf(&g->client->report, err, g->target, "%s",
			status_text(status_from_errno(err)));
	return err;
}

/* Where what is asked for goes, and how. */
static struct incoming_params get_params(struct get *g, struct asked *asked)
{
	const struct settings *s = &g->client->settings;

	return (struct incoming_params){
		.kind = g->kind,
		.top = AT_FDCWD,
		.path = g->target,
		.fd = STDOUT_FILENO,
		.cancel_fd = interrupt_fd(),
		.replace = wishes_replaces(s),
		.update = s->update,
		.set_id = true,
		.keep = wishes_keeps(s),
		.preallocate = s->preallocate,
		.sweep = true,
		.resume_bytes = s->resume_bytes,
		.readback = s->verify >= SETTINGS_VERIFY_READBACK,
		.fsync = wishes_incoming_fsync(s),
		.asked = asked,
		.direct = s->direct,
		.done = mover_file_done,
		.ctx = &g->mover,
	};
}

/* Asks for what was collected, and receives it. */
static int get_request(void *ctx, const struct wire_bytes *more, struct asked *asked)
{
	struct get *g = ctx;
	struct client *c = g->client;
	const char *path = asked->names->path;
	const struct incoming_params params = get_params(g, asked);
	struct message_data_request request = {
		.kind = MESSAGE_DATA_FILES,
		.flags = (c->settings.recursive ? MESSAGE_DATA_RECURSIVE : 0) |
			 (*asked->names->name ? MESSAGE_DATA_INTO : 0) |
			 (g->kind == INCOMING_STREAM ? MESSAGE_DATA_STREAM : 0),
		.path = {(const uint8_t *)path, strlen(path)},
		.more_count = (uint16_t)(asked->count - 1),
		.more = *more,
	};
	struct incoming *incoming;
	uint8_t *rules = NULL;
	bool refused;
	int err = get_incoming(g, &params, path, &incoming);

	if (err) {
		sources_absent(&g->mover, asked, err);
		return err;
	}
	g->mover.asked = asked;
	err = mover_channels(&g->mover, c->settings.channels);
	if (!err && c->settings.recursive)
		err = rules_request(c, g->filter, &request, &rules);
	if (!err) {
		mover_request(&g->mover, MESSAGE_RETRIEVE, &request);
		mover_early_get(&g->mover, asked->count > 1 || c->settings.recursive,
			g->kind == INCOMING_STREAM, &request);
		err = calls_retrieve(c->session, c->transfer, &request);
		refused = err;
		if (!err)
			err = get_receive(g, incoming, asked);
		refused |= g->mover.refused != 0;
		if (refused && err == -EISDIR && !c->settings.recursive &&
			g->kind != INCOMING_STREAM && !client_is_gone(c))
			report_error(&c->report, EXIT_CODE_OK, STATUS_IS_DIRECTORY, path,
				MOVER_WITHOUT_R);
		else if (refused)
			client_report(c, path, err);
		if (refused && err)
			sources_absent(&g->mover, asked, err);
	}
	incoming_free(incoming);
	g->no_room |= err == -ENOSPC;
	free(rules);
	g->mover.asked = NULL;
	return err;
}

/* ---- small files, each in one request ---- */

/* Those that came go to the end of the paths.  *left: how many did not. */
static void get_sort(char **paths, size_t count, const struct inline_file *files, size_t *left)
{
	char *came[MOVER_INLINE_FILES];
	size_t n = 0;

	*left = 0;
	for (size_t i = 0; i < count; i++)
		if (files[i].left)
			paths[(*left)++] = paths[i];
		else
			came[n++] = paths[i];
	for (size_t i = 0; i < n; i++)
		paths[*left + i] = came[i];
}

/* A file for each path: what the sink calls it is in `asked`. */
static int get_ask_small(
	struct get *g, char *const *paths, size_t count, struct asked *asked, char **names)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		size_t len;
		const char *name = targets_name(paths[i], &len);

		if (g->kind == INCOMING_INTO && !len)
			return -EINVAL;           /* that is no file */
		if (g->kind == INCOMING_STREAM) { /* no name here, but which it is is told */
			name = paths[i];
			len = strlen(name);
		} else if (g->kind == INCOMING_AS) {
			len = 0;
		}
		names[i] = strndup(name, len);
		err = names[i] ? asked_add(asked, name, len, paths[i]) : -ENOMEM;
	}
	return err;
}

bool get_asks_small(const struct settings *s)
{
	return mover_inline_suits(s) && !s->recursive && !s->dry_run && !s->rules[0] &&
	       !s->retry_from[0];
}

/* Whether the paths may be small files: the server knows. */
static bool get_may_be_small(const struct get *g, size_t count)
{
	/* of a stream each file would be a transfer, which is slower still */
	if (count > 1 && g->kind != INCOMING_STREAM && !mover_inline_files(&g->mover))
		return false;
	return count <= MOVER_INLINE_FILES && get_asks_small(&g->client->settings) &&
	       mover_inline_most(&g->mover);
}

/* What is no small file, or cannot be had so, is left to a transfer: *left paths, which come
 * first.  0 or -errno. */
static int get_small(struct get *g, char **paths, size_t count, size_t *left)
{
	struct inline_file files[MOVER_INLINE_FILES] = {0};
	char *names[MOVER_INLINE_FILES] = {0};
	struct incoming_params params;
	struct incoming *incoming = NULL;
	struct asked asked = {0};
	int err = 0;

	*left = count;
	if (!count || !get_may_be_small(g, count))
		return 0;
	params = get_params(g, &asked);
	/* what goes wrong here goes wrong there, and is told */
	if (!get_ask_small(g, paths, count, &asked, names) && !incoming_new(&params, &incoming) &&
		incoming_sink(incoming)->whole) {
		for (size_t i = 0; i < count; i++)
			files[i] = (struct inline_file){.path = paths[i], .name = names[i]};
		g->mover.asked = &asked;
		err = mover_inline_get(&g->mover, incoming, files, (unsigned)count,
			g->kind == INCOMING_STREAM, count > 1 ? g->target : paths[0]);
		/* one alone is all of it: what it fails by is told as that of the whole */
		if (count == 1 && err && err != -EREMOTEIO)
			sources_absent(&g->mover, &asked, err);
		g->mover.asked = NULL;
		get_sort(paths, count, files, left);
	}
	incoming_free(incoming);
	asked_fini(&asked);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	return err;
}

/* The setting `files-from`: names of the one directory that is the source. */
static int get_listed(
	struct client *c, const char *const *patterns, size_t count, const char *target)
{
	struct sync_params params = {.local = target};
	char **paths;
	size_t path_count;
	int err;

	if (count != 1 || remote_has_magic(patterns[0]) || !strcmp(target, "-")) {
		report_usage(&c->report,
			"--files-from names files of one directory, which is the source");
		return -EINVAL;
	}
	if (!client_session(c))
		return -ENOTCONN;
	err = remote_glob(c->session, patterns[0], &paths, &path_count);
	if (err)
		return client_report(c, patterns[0], err);
	params.remote = paths[0];
	err = sync_listed(c, &params);
	remote_glob_free(paths, path_count);
	return err;
}

/* The sources that are copied again whole, then all others, by the rules for each. */
static int get_all(struct get *g, const struct sources *s, size_t left)
{
	struct client *c = g->client;
	const struct sources_copy copy = {.command = "get",
		.target = g->target,
		.into = g->kind == INCOMING_INTO,
		.request = get_request,
		.ctx = g};
	const size_t whole = s->whole < left ? s->whole : left;
	int err;

	g->filter = &g->whole;
	err = sources_copy(c, s->paths, whole, &copy);
	g->filter = &g->named;
	return err ? err : sources_copy(c, s->paths + whole, left - whole, &copy);
}

int get_files(struct client *c, const char *const *patterns, size_t count, const char *target)
{
	struct get g = {.client = c, .target = target, .filter = &g.named};
	FILE *out = c->report.out;
	struct sources s = {0};
	size_t left = 0;
	int err = -ENOTCONN;

	if (mover_is_for_put(c))
		return -EINVAL;
	if (c->settings.files_from[0])
		return get_listed(c, patterns, count, target);
	if (!strcmp(target, "-"))
		c->report.out = stderr; /* stdout carries the file */
	mover_start(&g.mover, c, "get");
	if (client_session(c))
		err = rules_read_again(c, &g.named, &g.whole, &g.again);
	if (!err)
		err = sources_expand(&g.mover, patterns, count, &g.again, &s);
	if (!err && s.count)
		err = get_target(&g, &s, s.count > count ? s.count : count);
	if (!err && g.kind == INCOMING_INTO)
		err = sources_check_names(c, s.paths, s.count, target);
	if (!err)
		err = get_small(&g, s.paths, s.count, &left);
	if (err == -EREMOTEIO) /* single files, which were told of */
		err = 0;
	if (!err)
		err = get_all(&g, &s, left);
	/* what there is no room for leaves no directory behind, which goes if it is empty */
	if (g.made && g.no_room)
		(void)rmdir(target);
	sources_fini(&s);
	filter_fini(&g.named);
	filter_fini(&g.whole);
	again_fini(&g.again);
	err = mover_finish(&g.mover, err);
	c->report.out = out;
	return err;
}
