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

/* What one request carries. */
struct put_part {
	struct outgoing *outgoing;
	struct filter filter;
	struct outgoing_params params; /* that it was made with */
	const char *first;             /* of its sources */
	size_t added;
};

enum { PUT_WHOLE, PUT_NAMED, PUT_PARTS };

struct put {
	struct mover mover;
	struct client *client;
	struct put_part parts[PUT_PARTS]; /* what is copied again whole, and all else */
	struct put_part *part;            /* that is made, or runs */
	struct again again;
	const char *target;
	struct targets targets; /* what the sources are called beneath the target */
	bool into;
	bool make;   /* and the target is not there yet */
	bool made;   /* it was made just now */
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
	return outgoing_add_stream(p->part->outgoing, STDIN_FILENO, "");
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
		p->part->added += !err;
		return err;
	}
	if (put_name(p, source, &name))
		return client_no_memory(p->client);
	err = outgoing_add(p->part->outgoing, source, name);
	if (!err) {
		p->part->added++;
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
	mover_request_size(&request, p->part->outgoing);
	mover_early_put(&p->mover, p->part->outgoing, &request);
	err = calls_store(c->session, c->transfer, &request);
	*refused = err;
	if (err)
		return err;
	err = mover_send(&p->mover, p->part->outgoing, p->target);
	*refused = p->mover.refused;
	return err;
}

/* What was taken of the one file for a transfer that was refused early is there again. */
static int put_anew(struct put *p, const char *source)
{
	int err;

	if (!p->mover.refused)
		return 0;
	outgoing_free(p->part->outgoing);
	p->part->outgoing = NULL;
	err = outgoing_new(&p->part->params, &p->part->outgoing);
	return err ? client_no_memory(p->client) : put_add(p, source);
}

static int put_store(struct put *p, const char *source)
{
	struct client *c = p->client;
	bool refused = false;
	int err;

	if (c->settings.recursive)
		outgoing_measure(p->part->outgoing);
	if (c->settings.recursive && p->into && mover_inline_fits(&p->mover, p->part->outgoing)) {
		err = p->make ? put_make(p) : 0;
		return err ? err : mover_inline_tree(&p->mover, p->part->outgoing, p->target);
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

/* The parts' rules, and how they are read. */
static int put_parts(struct put *p)
{
	const struct settings *s = &p->client->settings;

	for (unsigned i = 0; i < PUT_PARTS; i++)
		p->parts[i].params = (struct outgoing_params){
			.top = AT_FDCWD,
			.filter = &p->parts[i].filter,
			.recursive = s->recursive,
			.links = s->links,
			.direct = s->direct,
			.keep = wishes_keeps(s),
			.numeric_ids = s->numeric_ids,
			.hard_links = s->hard_links,
			.dense = s->in_place,
			.reread = wishes_rereads(s),
			.measured = mover_file_scanned,
			.done = mover_file_done,
			.ctx = &p->mover,
		};
	return rules_read_again(
		p->client, &p->parts[PUT_NAMED].filter, &p->parts[PUT_WHOLE].filter, &p->again);
}

/* Whether a source is to be put, and was not yet. */
static bool put_asks(const struct put *p, const char *const *sources, size_t i)
{
	return !put_has(p, i) && (!again_is_sources(&p->again) || again_has(&p->again, sources[i]));
}

/* Adds each source to its part, if it is to be put.  0 or -errno (reported). */
static int put_add_all(struct put *p, const char *const *sources, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const bool whole = again_has(&p->again, sources[i]);

		if (!put_asks(p, sources, i))
			continue;
		p->part = &p->parts[whole ? PUT_WHOLE : PUT_NAMED];
		if (!p->part->outgoing && outgoing_new(&p->part->params, &p->part->outgoing))
			return client_no_memory(p->client);
		if (!p->part->first)
			p->part->first = sources[i];
		err = put_add(p, sources[i]);
	}
	return err;
}

static int put_store_all(struct put *p)
{
	int err = 0;

	for (unsigned i = 0; i < PUT_PARTS && !err; i++) {
		p->part = &p->parts[i];
		if (p->part->added)
			err = put_store(p, p->part->first);
		/* single files, which were told of, do not keep the others back */
		if (err == -EREMOTEIO && !i && p->parts[PUT_NAMED].added &&
			!client_is_gone(p->client))
			err = 0;
	}
	return err;
}

static int put_sources(struct put *p, const char *const *sources, size_t count)
{
	struct client *c = p->client;
	int err = put_parts(p);

	if (!err)
		err = put_small(p, &p->parts[PUT_NAMED].params, sources, count);
	if (err == -EREMOTEIO) /* single files, which were told of */
		err = 0;
	if (!err && !put_has_all(p, count))
		err = put_into(p, sources, count);
	if (err < 0 || put_has_all(p, count))
		return err;
	p->into = err;
	err = c->settings.in_place ? put_check_in_place(p, count) : 0;
	if (!err)
		err = put_add_all(p, sources, count);
	if (!err && p->into)
		err = put_check_names(p);
	if (err || !c->settings.dry_run)
		return err ? err : put_store_all(p);
	for (size_t i = 0; i < count; i++)
		if (put_asks(p, sources, i))
			put_print(c, sources[i], p->target);
	return 0;
}

int put_files(struct client *c, const char *const *sources, size_t count, const char *target)
{
	struct put p = {.client = c, .target = target};
	int err = -ENOTCONN;

	if (c->settings.files_from[0])
		return put_listed(c, sources, count, target);
	targets_init(&p.targets);
	mover_start(&p.mover, c, "put");
	p.mover.remote = target;
	if (client_session(c))
		err = put_sources(&p, sources, count);
	free(p.there);
	targets_fini(&p.targets);
	for (unsigned i = 0; i < PUT_PARTS; i++) {
		outgoing_free(p.parts[i].outgoing);
		filter_fini(&p.parts[i].filter);
	}
	again_fini(&p.again);
	return mover_finish(&p.mover, err);
}
