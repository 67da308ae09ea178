/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/put.c: decides what local files are called at the server.  Walking and reading them is
 * tree/outgoing's.
 */
#include "rftp/copy/put.h"

#include "rftp/copy/mover.h"
#include "rftp/copy/mover_early.h"
#include "rftp/copy/mover_file.h"
#include "rftp/copy/mover_inline.h"
#include "rftp/copy/rules.h"
#include "rftp/copy/sync.h"
#include "rftp/copy/sync_plan.h"
#include "rftp/copy/targets.h"
#include "rftp/copy/wishes.h"
#include "rftp/remote/remote_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct put {
	struct mover mover;
	struct client *client;
	struct outgoing *outgoing;
	const struct outgoing_params *params; /* that it was made with */
	const char *target;
	struct targets targets; /* what the sources are called beneath the target */
	bool into;
	bool make; /* and the target is not there yet */
	bool made; /* it was made just now */
	size_t added;
	bool *there; /* by source: it was put already, in a request of its own; NULL: none was */
};

static bool put_is_tree(const struct put *p, const char *source)
{
	struct stat st;

	return p->client->settings.recursive && strcmp(source, "-") != 0 && !stat(source, &st) &&
	       S_ISDIR(st.st_mode);
}

/* Whether the target is a directory to put things into; one that is not there is made later, once
 * there is something to put.  1, 0, -errno (reported). */
static int put_into(struct put *p, const char *const *sources, size_t count)
{
	struct client *c = p->client;
	bool several = count > 1 || p->target[strlen(p->target) - 1] == '/';
	struct message_attr attr;
	int err;

	err = calls_stat(c->session, p->target, &attr);
	if (!err && attr.type == MESSAGE_DIRECTORY)
		return 1;
	if (err && err != -ENOENT)
		return client_report(c, p->target, err);
	if (!several && !put_is_tree(p, sources[0]))
		return 0;
	if (!err) {
		report_error(&c->report, EXIT_CODE_OK, STATUS_NOT_DIRECTORY, p->target, NULL);
		return -ENOTDIR;
	}
	p->make = true;
	return 1;
}

/* What a source is called beneath the target; "" when what is in it goes right there. */
static int put_name(const struct put *p, const char *source, char **name)
{
	size_t len;
	const char *last = targets_name(source, &len);

	*name = strndup(last, p->into ? len : 0);
	return *name ? 0 : -ENOMEM;
}

static int put_add_stdin(struct put *p)
{
	if (p->client->stdin_taken) {
		report_usage(&p->client->report,
			"'-': standard input gives the commands, so it cannot be sent");
		return -EINVAL;
	}
	if (p->into) {
		report_usage(&p->client->report,
			"'-' has no name: give a new name for it at the server, not a directory");
		return -EINVAL;
	}
	return outgoing_add_stream(p->outgoing, STDIN_FILENO, "");
}

/* What is written in place is one file.  0 or -EINVAL (reported). */
static int put_check_in_place(const struct put *p, size_t count)
{
	struct client *c = p->client;
	const struct settings *s = &c->settings;
	const char *why = s->recursive           ? "no tree"
			  : count > 1 || p->into ? "one file, not a directory"
						 : NULL;

	if (why)
		report_usage(&c->report, "%s: --append and --offset write into %s", p->target, why);
	else if (s->verify >= SETTINGS_VERIFY_READBACK)
		report_usage(&c->report,
			"%s: what --append and --offset write cannot be read back (--verify)",
			p->target);
	else if (!s->replace || s->update || s->ignore_existing)
		report_usage(&c->report,
			"%s: --append and --offset are for a file that is there, which "
			"--no-replace, --update and --ignore-existing leave alone",
			p->target);
	else
		return 0;
	return -EINVAL;
}

static const char *put_why(const struct put *p, int error)
{
	if (error == -EISDIR && !p->client->settings.recursive)
		return MOVER_WITHOUT_R;
	return NULL;
}

/* One that cannot be sent is reported, and the others are sent. */
static int put_add(struct put *p, const char *source)
{
	char *name;
	int err;

	if (!strcmp(source, "-")) {
		err = put_add_stdin(p);
		p->added += !err;
		return err;
	}
	if (put_name(p, source, &name))
		return client_no_memory(p->client);
	err = outgoing_add(p->outgoing, source, name);
	if (!err) {
		p->added++;
		err = *name ? targets_add(&p->targets, name, strlen(name), source)
			    : targets_add_directory(&p->targets, source);
	}
	if (err && err != -ENOMEM) {
		report_error(&p->client->report, EXIT_CODE_OK, status_from_errno(err), source,
			put_why(p, err));
		mover_file_absent(&p->mover, name, source, status_from_errno(err));
	}
	free(name);
	return err == -ENOMEM ? client_no_memory(p->client) : 0;
}

/* Two sources on one name: either would be lost.  0 or -EEXIST (reported). */
static int put_check_names(struct put *p)
{
	const struct targets_entry *clash = targets_clash(&p->targets);

	if (!clash)
		return 0;
	report_errorf(&p->client->report, -EEXIST, p->target,
		"two sources would become %s here: %s and %s; nothing was copied", clash[0].name,
		clash[0].source, clash[1].source);
	return -EEXIST;
}

/* The directory that takes the sources, or the one that the file goes into.  0 or -errno
 * (reported). */
static int put_make(struct put *p)
{
	struct client *c = p->client;
	const char *slash = strrchr(p->target, '/');
	char *path = p->into ? strdup(p->target) : strndup(p->target, (size_t)(slash - p->target));
	int err = path ? 0 : client_no_memory(c);

	if (!err && *path) {
		err = calls_mkdir(c->session, path, c->settings.parents);
		if (err)
			client_report(c, path, err);
		p->made = !err && p->into;
	}
	free(path);
	return err;
}

/* Asks, and sends: 0, or -errno: `refused` is set, or it is reported. */
static int put_ask(struct put *p, bool *refused)
{
	struct client *c = p->client;
	struct message_data_request request = {
		.kind = MESSAGE_DATA_FILES,
		.flags = (p->into ? MESSAGE_DATA_INTO : 0) |
			 (c->settings.recursive ? MESSAGE_DATA_RECURSIVE : 0),
		.path = {(const uint8_t *)p->target, strlen(p->target)},
	};
	int err = mover_channels(&p->mover, c->settings.channels);

	if (!err && p->make)
		err = put_make(p);
	p->make = false;
	if (err)
		return err;
	mover_request(&p->mover, MESSAGE_STORE, &request);
	mover_request_size(&request, p->outgoing);
	mover_early_put(&p->mover, p->outgoing, &request);
	err = calls_store(c->session, c->transfer, &request);
	*refused = err;
	if (err)
		return err;
	err = mover_send(&p->mover, p->outgoing, p->target);
	*refused = p->mover.refused;
	return err;
}

/* What was taken of the one file for a transfer that was refused early is there again. */
static int put_anew(struct put *p, const char *source)
{
	int err;

	if (!p->mover.refused)
		return 0;
	outgoing_free(p->outgoing);
	p->outgoing = NULL;
	err = outgoing_new(p->params, &p->outgoing);
	return err ? client_no_memory(p->client) : put_add(p, source);
}

static int put_store(struct put *p, const char *source)
{
	struct client *c = p->client;
	bool refused = false;
	int err;

	if (c->settings.recursive)
		outgoing_measure(p->outgoing);
	if (c->settings.recursive && p->into && mover_inline_fits(&p->mover, p->outgoing)) {
		err = p->make ? put_make(p) : 0;
		return err ? err : mover_inline_tree(&p->mover, p->outgoing, p->target);
	}
	err = put_ask(p, &refused);
	if (refused && err == -ENOENT && !p->into && c->settings.parents && !client_is_gone(c)) {
		refused = false;
		err = put_anew(p, source);
		p->make = true;
		if (!err)
			err = put_ask(p, &refused);
	}
	if (refused)
		client_report(c, p->target, err);
	/* what there is no room for leaves no directory behind, which goes if it is empty */
	if (err == -ENOSPC && p->made && !client_is_gone(c))
		(void)calls_rmdir(c->session, p->target);
	return err;
}

/* The plan of a dry run. */
static void put_print(struct client *c, const char *source, const char *target)
{
	char command[64] = "put";

	if (c->settings.in_place && c->settings.offset == MESSAGE_UNKNOWN)
		snprintf(command, sizeof command, "append");
	else if (c->settings.in_place)
		snprintf(command, sizeof command, "append -o %ju", (uintmax_t)c->settings.offset);
	sync_plan_print_copy(c, command, source, target);
}

/* ---- small files, each in one request ---- */

/* Whether all of them are small, and are called so that none takes another's place. */
static bool put_are_small(const struct put *p, const char *const *sources, size_t count)
{
	const struct settings *s = &p->client->settings;
	const uint32_t most = mover_inline_most(&p->mover);
	struct targets targets;
	uint64_t bytes = 0;
	bool ok = most && count <= MOVER_INLINE_FILES && !s->dry_run && !s->in_place &&
		  !s->rules[0] && !s->retry_from[0];

	targets_init(&targets);
	for (size_t i = 0; i < count && ok; i++) {
		struct stat st;
		size_t len;
		const char *last = targets_name(sources[i], &len);

		ok = strcmp(sources[i], "-") != 0 && !stat(sources[i], &st) &&
		     S_ISREG(st.st_mode) && st.st_size <= (off_t)most && len &&
		     (bytes += (uint64_t)st.st_size) <= MOVER_INLINE_BYTES &&
		     !targets_add(&targets, last, len, sources[i]);
	}
	ok = ok && !targets_clash(&targets);
	targets_fini(&targets);
	return ok;
}

/* What only a transfer can do, or only that says well, is left to it.  0 or -errno. */
static int put_small(struct put *p, const struct outgoing_params *params,
	const char *const *sources, size_t count)
{
	struct mover_inline_put put = {.object = p->target};
	char *path = NULL;
	int err = 0;

	if (!put_are_small(p, sources, count))
		return 0;
	/* several go into a directory, whatever it is called */
	if (asprintf(&path, "%s%s", p->target,
		    count > 1 && p->target[strlen(p->target) - 1] != '/' ? "/" : "") < 0)
		return client_no_memory(p->client);
	put.path = path;
	put.left = calloc(count, sizeof *put.left);
	p->there = calloc(count, sizeof *p->there);
	if (!put.left || !p->there || outgoing_new(params, &put.outgoing)) {
		err = client_no_memory(p->client);
		goto out;
	}
	for (size_t i = 0; i < count && !err; i++) {
		size_t len;
		const char *last = targets_name(sources[i], &len);
		char *name = strndup(last, len);

		err = name ? outgoing_add(put.outgoing, sources[i], name) : -ENOMEM;
		free(name);
	}
	if (err) {
		err = 0; /* it is gone by now */
		goto out;
	}
	err = mover_inline_put(&p->mover, &put);
	for (size_t i = 0; i < count; i++)
		p->there[i] = !put.left[i];
out:
	outgoing_free(put.outgoing);
	free(put.left);
	free(path);
	return err;
}

static bool put_has(const struct put *p, size_t source)
{
	return p->there && p->there[source];
}

/* Whether nothing is left to be put. */
static bool put_has_all(const struct put *p, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!put_has(p, i))
			return false;
	return true;
}

/* The setting `files-from`: names of the one directory that is the source. */
static int put_listed(
	struct client *c, const char *const *sources, size_t count, const char *target)
{
	const struct sync_params params = {
		.local = sources[0], .remote = target, .to_server = true};

	if (c->settings.in_place || count != 1 || !strcmp(sources[0], "-")) {
		report_usage(&c->report,
			"--files-from names files of one directory, which is the source");
		return -EINVAL;
	}
	return sync_listed(c, &params);
}

int put_files(struct client *c, const char *const *sources, size_t count, const char *target)
{
	struct put p = {.client = c, .target = target};
	struct filter filter = {0};
	const struct outgoing_params params = {
		.top = AT_FDCWD,
		.filter = &filter,
		.recursive = c->settings.recursive,
		.links = c->settings.links,
		.direct = c->settings.direct,
		.keep = wishes_keeps(&c->settings),
		.numeric_ids = c->settings.numeric_ids,
		.hard_links = c->settings.hard_links,
		.dense = c->settings.in_place,
		.reread = wishes_rereads(&c->settings),
		.measured = mover_file_scanned,
		.done = mover_file_done,
		.ctx = &p.mover,
	};
	int err;

	if (c->settings.files_from[0])
		return put_listed(c, sources, count, target);
	targets_init(&p.targets);
	mover_start(&p.mover, c, "put");
	if (!client_session(c))
		return mover_finish(&p.mover, -ENOTCONN);
	err = rules_read(c, &filter);
	p.mover.remote = target;
	if (!err)
		err = put_small(&p, &params, sources, count);
	if (err == -EREMOTEIO) /* single files, which were told of */
		err = 0;
	if (!err && !put_has_all(&p, count))
		err = put_into(&p, sources, count);
	if (err < 0 || put_has_all(&p, count))
		goto out;
	p.into = err;
	if (c->settings.in_place) {
		err = put_check_in_place(&p, count);
		if (err)
			goto out;
	}
	p.params = &params;
	err = outgoing_new(&params, &p.outgoing);
	if (err) {
		client_no_memory(c);
		goto out;
	}
	for (size_t i = 0; i < count && !err; i++)
		err = put_has(&p, i) ? 0 : put_add(&p, sources[i]);
	if (!err && p.into)
		err = put_check_names(&p);
	for (size_t i = 0; i < count && !err && c->settings.dry_run; i++)
		put_print(c, sources[i], target);
	if (!err && p.added && !c->settings.dry_run)
		err = put_store(&p, sources[0]);
out:
	free(p.there);
	targets_fini(&p.targets);
	outgoing_free(p.outgoing);
	filter_fini(&filter);
	return mover_finish(&p.mover, err);
}
