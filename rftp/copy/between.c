/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/between.c: decides what files of one server are called at another one, asks that for a
 * grant and the first one to send, and hears how it goes on.  No byte of a file passes here.
 */
#include "rftp/copy/between.h"

#include "base/addr.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "fabric/select.h"
#include "rftp/copy/mover.h"
#include "rftp/copy/mover_file.h"
#include "rftp/copy/rules.h"
#include "rftp/copy/sources.h"
#include "rftp/copy/targets.h"
#include "rftp/remote/remote_path.h"
#include "session/calls_copy.h"
#include "tree/asked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BETWEEN_PING_NS                                                                            \
	(30 * NS_PER_S) /* the destination's session is idle meanwhile, and stays                  \
			 */

struct between {
	struct mover mover;
	struct client *client, *there;
	const char *target;
	bool into, make;
	char *made;         /* the directory that was made for a request that is not answered yet */
	struct again again; /* what of the sources is copied again, */
	struct filter whole;   /* the rules for that, */
	struct filter named;   /* and for all else */
	struct filter *filter; /* those of the request that runs */
	struct asked *asked;   /* of the request that runs */
	uint64_t pinged_ns;
	/* of the last reply */
	struct transfer_stats stats;
	enum verdict_scope outcome;
};

/* ---- the target ---- */

/* Whether the target is a directory to put things into; one that is not there is made later.  1, 0,
 * -errno (reported). */
static int between_into(struct between *b, char *const *paths, size_t count)
{
	struct client *d = b->there;
	bool several = count > 1 || b->target[strlen(b->target) - 1] == '/';
	struct message_attr attr;
	int tree = 0, err;

	err = calls_stat(d->session, b->target, &attr);
	if (!err && attr.type == MESSAGE_DIRECTORY)
		return 1;
	if (err && err != -ENOENT)
		return client_report(d, b->target, err);
	if (!several && b->client->settings.recursive)
		tree = sources_is_tree(b->client, paths[0]);
	if (tree < 0) {
		sources_absent_paths(&b->mover, paths, 1, false, tree);
		return tree;
	}
	if (!several && !tree) {
		b->make = err && b->client->settings.parents;
		return 0;
	}
	if (!err) {
		report_error(&d->report, EXIT_CODE_OK, STATUS_NOT_DIRECTORY, b->target, NULL);
		return -ENOTDIR;
	}
	b->make = true;
	return 1;
}

/* The directory that takes the sources, or the one that the file goes into.  0 or -errno
 * (reported). */
static int between_make(struct between *b)
{
	struct client *d = b->there;
	const char *slash = strrchr(b->target, '/');
	char *path = b->into ? strdup(b->target) : strndup(b->target, (size_t)(slash - b->target));
	int err = path ? 0 : client_no_memory(d);

	if (!err && *path) {
		err = calls_mkdir(d->session, path, b->into ? d->settings.parents : true);
		if (err)
			client_report(d, path, err);
	}
	b->make = false;
	if (err || !b->into) { /* of what a file goes into it is not known whether it was there */
		free(path);
		path = NULL;
	}
	b->made = path;
	return err;
}

/* A request is answered: one that was refused leaves no directory behind that is empty. */
static void between_settle(struct between *b, int err)
{
	const bool refused =
		b->outcome == VERDICT_NONE ||
		b->stats.verdict.status == STATUS_NO_SPACE; /* it goes if it is empty */

	if (b->made && err && refused && !client_is_gone(b->there)) {
		(void)calls_rmdir(b->there->session, b->made);
		b->make = true;
	}
	free(b->made);
	b->made = NULL;
}

/* ---- how it goes on ---- */

/* What a name that crossed is at the source. */
static char *between_source(const struct between *b, struct wire_bytes name)
{
	const struct asked_name *asked = asked_find(b->asked, name);
	struct text path = {0};
	size_t len;

	if (!asked)
		return strndup((const char *)name.data, name.len);
	len = strlen(asked->name);
	text_puts(&path, asked->path);
	if (!len && name.len && path.len && text_str(&path)[path.len - 1] != '/')
		text_putc(&path, '/');
	text_add(&path, (const char *)name.data + len, name.len - len);
	return text_take(&path);
}

static const char *between_side(uint8_t side)
{
	switch (side) {
	case MESSAGE_COPY_SOURCE:
		return "at the source";
	case MESSAGE_COPY_DESTINATION:
		return "at the destination";
	default:
		return "between source and destination";
	}
}

static void between_file(struct between *b, const struct message_copy_outcome *m)
{
	char *path = between_source(b, m->name);
	struct text text = {0};
	struct outcome outcome = {
		.path = path ? path : "",
		.name = m->name,
		.directory = m->flags & MESSAGE_COPY_DIRECTORY,
		.special = m->flags & MESSAGE_COPY_SPECIAL,
		.bytes = m->bytes,
		.status = m->status,
	};

	if (m->status) {
		struct text why = {0};

		text_add(&why, (const char *)m->text.data, m->text.len);
		/* what ended all is told as such */
		if (m->flags & MESSAGE_COPY_THERE)
			text_printf(&text, "%s: ", between_side(MESSAGE_COPY_DESTINATION));
		else if (!mover_file_ends_all(m->status))
			text_printf(&text, "%s: ", between_side(MESSAGE_COPY_SOURCE));
		report_reason(&text, m->status, text_str(&why));
		text_fini(&why);
	} else {
		text_add(&text, (const char *)m->text.data, m->text.len);
	}
	outcome.text = text_str(&text);
	mover_file_done(&b->mover, &outcome);
	text_fini(&text);
	free(path);
}

static void between_stats(struct between *b, const struct message_copy_reply *m)
{
	const struct engine_ops *engine = m->engine ? engine_by_id(m->engine) : NULL;
	const char *name = NULL;
	struct transfer_stats *stats = &b->stats;

	for (unsigned i = 0; (name = select_name(i)); i++)
		if (strlen(name) == m->fabric.len && !memcmp(name, m->fabric.data, m->fabric.len))
			break;
	stats->bytes = m->bytes;
	stats->verified_bytes = m->verified_bytes;
	stats->had_bytes = m->had_bytes;
	snprintf(stats->current, sizeof stats->current, "%.*s", (int)m->current.len,
		(const char *)m->current.data);
	stats->hole_bytes = m->hole_bytes;
	stats->crossed_bytes = m->crossed_bytes;
	stats->total_bytes = m->total_bytes;
	stats->total_files = m->total_files;
	stats->files = m->files;
	stats->errors = m->errors;
	stats->ended_ns = m->ns;
	stats->fabric = name ? name : "";
	stats->engine = engine ? engine->name : "";
	stats->channels = m->channels;
	stats->block = m->block;
	stats->depth = m->depth;
	stats->protect = m->protect;
	stats->direct = m->direct;
}

static int between_copied(void *ctx, const struct message_copy_reply *m)
{
	struct between *b = ctx;
	struct wire_bytes outcomes = m->outcomes;
	struct message_copy_outcome one;
	uint64_t now = clock_now_ns();

	between_stats(b, m);
	while (message_next_outcome(&outcomes, &one))
		between_file(b, &one);
	mover_moved(&b->mover, &b->stats);
	if (!m->more && m->status) {
		b->outcome = VERDICT_TRANSFER;
		verdict_set(&b->stats.verdict, VERDICT_TRANSFER, m->status, "%s%s%.*s",
			between_side(m->side), m->text.len ? ": " : "", (int)m->text.len,
			(const char *)m->text.data);
	} else if (!m->more) {
		b->outcome = m->errors ? VERDICT_FILE : VERDICT_NONE;
	}
	/* whether it still answers is told by who sends there */
	if (now - b->pinged_ns >= BETWEEN_PING_NS && b->there->session) {
		b->pinged_ns = now;
		(void)calls_ping(b->there->session);
	}
	return b->mover.stopped ? -ECANCELED : 0;
}

/* ---- one request ---- */

/* The address that the client reached it at.  0 or -errno (reported). */
static int between_address(struct between *b, char host[64], uint16_t *port)
{
	int err = addr_split(
		calls_info(b->there->session)->address, host, 64, ADDR_DEFAULT_PORT, port);

	if (err)
		report_errorf(&b->client->report, err, calls_info(b->there->session)->address,
			"the source cannot be told this address");
	return err;
}

static int between_ask(struct between *b, struct message_send_copy *m, const char *path)
{
	struct client *c = b->client;
	int err;

	mover_begin(&b->mover);
	b->stats = (struct transfer_stats){0};
	b->outcome = VERDICT_NONE;
	b->pinged_ns = clock_now_ns();
	client_hear_queue(c);
	err = line_ask(c);
	if (err)
		return err;
	err = calls_send_copy(c->session, c->transfer, m, between_copied, b);
	if (err == -ECANCELED && !client_is_gone(c)) {
		b->outcome = VERDICT_TRANSFER;
		verdict_clear(&b->stats.verdict);
		verdict_set(&b->stats.verdict, VERDICT_TRANSFER, STATUS_CANCELLED, "%s", "");
		err = 0;
	}
	if (err == -EISDIR && !c->settings.recursive && !client_is_gone(c))
		report_error(&c->report, EXIT_CODE_OK, STATUS_IS_DIRECTORY, path, MOVER_WITHOUT_R);
	else if (err)
		client_report(c, path, err);
	if (err)
		sources_absent(&b->mover, b->asked, err);
	return err ? err : mover_end(&b->mover, &b->stats, path, b->outcome);
}

static int between_request(void *ctx, const struct wire_bytes *more, struct asked *asked)
{
	struct between *b = ctx;
	struct client *c = b->client, *d = b->there;
	const char *path = asked->names->path;
	struct message_data_request store = {
		.flags = (b->into ? MESSAGE_DATA_INTO : 0) |
			 (c->settings.recursive ? MESSAGE_DATA_RECURSIVE : 0),
	};
	struct message_send_copy m = {.protect = c->settings.protect,
		.rate = c->settings.limit_rate,
		.to = {(const uint8_t *)b->target, strlen(b->target)},
		.request = {
			.kind = MESSAGE_DATA_FILES,
			.flags = (c->settings.recursive ? MESSAGE_DATA_RECURSIVE : 0) |
				 (*asked->names->name ? MESSAGE_DATA_INTO : 0),
			.path = {(const uint8_t *)path, strlen(path)},
			.more_count = (uint16_t)(asked->count - 1),
			.more = *more,
		}};
	struct calls_grant grant;
	uint8_t *rules = NULL;
	char host[64];
	int err = between_address(b, host, &m.port);

	if (!err && b->make)
		err = between_make(b);
	if (!err && c->settings.recursive)
		err = rules_request(c, b->filter, &m.request, &rules);
	if (err)
		goto out;
	mover_request(&b->mover, MESSAGE_STORE, &store);
	mover_request(&b->mover, MESSAGE_RETRIEVE, &m.request);
	m.request.channels = (uint16_t)c->settings.channels;
	m.request.resume = store.resume;
	m.to_flags = store.flags;
	err = calls_grant_copy(d->session, b->target, m.to_flags & MESSAGE_COPY_BOUND, &grant);
	if (err) {
		client_report(d, b->target, err);
		goto out;
	}
	m.host = (struct wire_bytes){(const uint8_t *)host, strlen(host)};
	m.key = (struct wire_bytes){(const uint8_t *)calls_info(d->session)->host_key,
		strlen(calls_info(d->session)->host_key)};
	m.grant = (struct wire_bytes){grant.bytes, grant.len};
	b->asked = asked;
	b->mover.remote = b->target;
	err = between_ask(b, &m, path);
	explicit_bzero(&grant, sizeof grant);
out:
	between_settle(b, err);
	free(rules);
	return err;
}

static bool between_is_over(void *ctx)
{
	const struct between *b = ctx;

	return b->outcome == VERDICT_TRANSFER || !b->there->session;
}

int between_files(struct client *c, struct client *there, const char *const *patterns, size_t count,
	const char *target)
{
	struct between b = {.client = c, .there = there, .target = target, .filter = &b.whole};
	struct sources_copy copy = {.command = "copy",
		.target = target,
		.request = between_request,
		.is_over = between_is_over,
		.ctx = &b};
	struct sources s = {0};
	int err = 0;

	if (mover_is_for_put(c))
		return -EINVAL;
	if (c->settings.files_from[0]) {
		report_usage(&c->report,
			"--files-from is for copies from here or to here, not between servers");
		return -EINVAL;
	}
	c->side = between_side(MESSAGE_COPY_SOURCE);
	there->side = between_side(MESSAGE_COPY_DESTINATION);
	mover_start_between(&b.mover, c, there, "copy");
	err = rules_read_again(c, &b.named, &b.whole, &b.again);
	if (!err)
		err = sources_expand(&b.mover, patterns, count, &b.again, &s);
	if (!err && s.count)
		err = between_into(&b, s.paths, s.count > count ? s.count : count);
	b.into = err == 1;
	err = err < 0 ? err : 0;
	if (!err && b.into)
		err = sources_check_names(c, s.paths, s.count, target);
	copy.into = b.into;
	if (!err)
		err = sources_copy(c, s.paths, s.whole, &copy);
	b.filter = &b.named;
	if (!err)
		err = sources_copy(c, s.paths + s.whole, s.count - s.whole, &copy);
	sources_fini(&s);
	filter_fini(&b.named);
	filter_fini(&b.whole);
	again_fini(&b.again);
	report_join(&c->report, &there->report);
	report_forget(&there->report);
	c->side = there->side = NULL;
	return mover_finish(&b.mover, err);
}
