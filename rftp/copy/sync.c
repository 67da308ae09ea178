/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync.c: carries a plan out: what is in the way goes, then names are copied, then what
 * is extra goes.
 */
#include "rftp/copy/sync.h"

#include "base/clock.h"
#include "rftp/copy/files_from.h"
#include "rftp/copy/mover.h"
#include "rftp/copy/mover_file.h"
#include "rftp/copy/mover_inline.h"
#include "rftp/copy/retry.h"
#include "rftp/copy/rules.h"
#include "rftp/copy/sync_attrs.h"
#include "rftp/copy/sync_digest.h"
#include "rftp/copy/sync_inline.h"
#include "rftp/copy/sync_keep.h"
#include "rftp/copy/sync_list.h"
#include "rftp/copy/sync_plan.h"
#include "rftp/copy/sync_remove.h"
#include "rftp/copy/sync_request.h"
#include "rftp/copy/sync_room.h"
#include "rftp/copy/sync_top.h"
#include "rftp/copy/wishes.h"
#include "rftp/remote/visit.h"
#include "rftp/shell/interrupt.h"
#include "tree/beneath.h"
#include "tree/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sync {
	struct mover mover;
	struct client *client;
	const struct sync_params *params;
	const struct compare_params *compare;
	struct filter filter;
	struct compare_list from, to;
	struct compare_plan plan;
	bool missing;      /* the destination is not there */
	bool listed;       /* the names are not what a comparison found */
	bool changes;      /* names in the destination itself may have come or gone */
	bool renamed;      /* something may have another name in the destination */
	unsigned requests; /* for names */
	bool itself;       /* the destination gets what the source has beside mode and time */
};

/* ---- removing ---- */

/* Whether what the destination has alone goes: what speaks against it is told. */
static bool removes_extra(struct sync *s)
{
	const char *where = s->params->to_server ? s->params->remote : s->params->local;
	struct client *c = s->client;

	if (!c->settings.delete || !s->plan.extra.count)
		return false;
	if (s->from.failed || s->to.failed) /* reported, each */
		return false;
	if (s->plan.extra_names > c->settings.max_delete) {
		struct text why = {0};

		text_printf(&why,
			"nothing is removed there: %" PRIu64
			" names are more than --max-delete=%" PRIu64,
			s->plan.extra_names, c->settings.max_delete);
		report_error(&c->report, EXIT_CODE_OK, STATUS_LIMIT, where, text_str(&why));
		text_fini(&why);
		return false;
	}
	return true;
}

/* ---- copying ---- */

static int copy_to(struct sync *s)
{
	struct client *c = s->client;
	const struct outgoing_params params = {
		.top = AT_FDCWD,
		.recursive = !s->listed || c->settings.recursive,
		.links = c->settings.links,
		.filter = &s->filter,
		.direct = c->settings.direct,
		.keep = wishes_keeps(&c->settings),
		.numeric_ids = c->settings.numeric_ids,
		.hard_links = c->settings.hard_links,
		.attributes = !s->listed,
		.listed = s->listed ? NULL : &s->from,
		.listed_there = s->listed ? NULL : &s->to,
		.reread = wishes_rereads(&c->settings),
		.done = mover_file_done,
		.ctx = &s->mover,
	};
	const struct outgoing_selected selected = {
		.top = AT_FDCWD,
		.directory = s->params->local,
		.selection = &s->plan.copy,
		.itself = s->itself,
		.files = s->plan.files,
		.bytes = s->plan.bytes,
		.largest_bytes = s->plan.largest_bytes,
		.disk_bytes = compare_plan_room(&s->plan),
		.net = true,
	};
	struct message_data_request request = {
		.kind = MESSAGE_DATA_FILES,
		.flags = MESSAGE_DATA_INTO | MESSAGE_DATA_RECURSIVE,
		.path = {(const uint8_t *)s->params->remote, strlen(s->params->remote)},
	};
	struct outgoing *outgoing;
	int err = outgoing_new(&params, &outgoing);

	if (err)
		return client_no_memory(c);
	err = outgoing_add_selected(outgoing, &selected);
	if (err)
		report_errorf(&c->report, err, s->params->local, "%s",
			status_text(status_from_errno(err)));
	if (!err && !s->plan.beside.count && !s->itself && mover_inline_fits(&s->mover, outgoing)) {
		err = mover_inline_tree(&s->mover, outgoing, s->params->remote);
		outgoing_free(outgoing);
		return err;
	}
	if (!err)
		err = mover_channels(&s->mover, c->settings.channels);
	if (!err) {
		mover_request(&s->mover, MESSAGE_STORE, &request);
		mover_request_size(&request, outgoing);
		err = calls_store(c->session, c->transfer, &request);
		err = err ? client_report(c, s->params->remote, err)
			  : mover_send(&s->mover, outgoing, s->params->remote);
	}
	outgoing_free(outgoing);
	return err;
}

static struct incoming_params from_params(struct sync *s, struct asked *asked)
{
	struct client *c = s->client;

	return (struct incoming_params){
		.kind = INCOMING_INTO,
		.top = AT_FDCWD,
		.path = s->params->local,
		.fd = -1,
		.replace = !s->listed || wishes_replaces(&c->settings),
		.update = s->listed && c->settings.update,
		.set_id = true,
		.attributes = !s->listed,
		.listed_there = s->listed ? NULL : &s->from,
		.listed_here = s->listed ? NULL : &s->to,
		.keep = wishes_keeps(&c->settings),
		.preallocate = c->settings.preallocate,
		.resume_bytes = c->settings.resume_bytes,
		.readback = c->settings.verify >= SETTINGS_VERIFY_READBACK,
		.fsync = wishes_incoming_fsync(&c->settings),
		.sweep = true,
		.asked = asked,
		.direct = c->settings.direct,
		.done = mover_file_done,
		.ctx = &s->mover,
	};
}

/* One request for the names from *at on, as many as it has room for. */
static int copy_from_some(struct sync *s, size_t *at)
{
	struct client *c = s->client;
	struct asked asked = {.tree = true};
	const struct incoming_params params = from_params(s, &asked);
	struct message_data_request request = {
		.kind = MESSAGE_DATA_FILES,
		.flags = MESSAGE_DATA_SELECTED | (s->listed ? 0 : MESSAGE_DATA_ATTRIBUTES) |
			 (s->listed && !c->settings.recursive ? 0 : MESSAGE_DATA_RECURSIVE),
		.path = {(const uint8_t *)s->params->remote, strlen(s->params->remote)},
	};
	struct sync_request names = {.round = ++s->requests, .list = malloc(SYNC_REQUEST_BYTES)};
	struct incoming *incoming = NULL;
	uint8_t *rules = NULL;
	int err = names.list ? asked_add(&asked, "", 0, s->params->remote) : -ENOMEM;

	if (!err)
		sync_request_fill(c, &names, &s->from, &s->plan.copy, at);
	if (!err && *at == s->plan.copy.count && s->itself)
		s->itself = !sync_request_itself(&names);
	request.more_count = names.count;
	request.more = (struct wire_bytes){names.list, names.used};
	if (!err)
		err = incoming_new(&params, &incoming);
	if (err)
		report_errorf(&c->report, err, s->params->local, "%s",
			status_text(status_from_errno(err)));
	if (!err && request.more_count)
		err = mover_channels(&s->mover, c->settings.channels);
	if (!err && request.more_count)
		err = rules_request(c, &s->filter, &request, &rules);
	if (!err && request.more_count) {
		mover_request(&s->mover, MESSAGE_RETRIEVE, &request);
		err = calls_retrieve(c->session, c->transfer, &request);
		err = err ? client_report(c, s->params->remote, err)
			  : mover_receive(&s->mover, incoming, s->params->remote);
	}
	incoming_free(incoming);
	asked_fini(&asked);
	free(names.list);
	free(rules);
	return err;
}

/* What is for single requests: the plan's `copy` keeps what is not. */
static int copy_from_small(struct sync *s)
{
	const struct settings *settings = &s->client->settings;
	struct selection steps = {0}, left = {0};
	struct asked asked = {.tree = true};
	struct incoming_params params = from_params(s, &asked);
	const struct sync_inline all = {&s->mover, s->params, &s->from, &params};
	int err = 0, fits = 0;

	/* whose a directory is only a transfer tells; what is cut off is compared again */
	if (!s->listed && !s->itself && !settings->owner && !settings->group)
		fits = sync_inline_fits(&s->from, &s->plan, mover_inline_most(&s->mover),
			mover_inline_files(&s->mover), &steps);
	params.resume_bytes = 0;
	if (fits < 0 || asked_add(&asked, "", 0, s->params->remote))
		err = client_no_memory(s->client);
	if (fits > 0 && !err) {
		err = sync_inline_copy(&all, &steps, &left);
		selection_fini(&s->plan.copy);
		s->plan.copy = left;
		if (selection_sort(&s->plan.copy))
			err = client_no_memory(s->client);
	}
	selection_fini(&steps);
	asked_fini(&asked);
	return err == -EREMOTEIO && !client_is_gone(s->client) ? 0 : err;
}

static int copy_from(struct sync *s)
{
	int err = s->listed ? 0 : sync_room(s->client, s->params, &s->plan);

	if (!err)
		err = copy_from_small(s);
	for (size_t at = 0; (at < s->plan.copy.count || s->itself) && !err;) {
		err = copy_from_some(s, &at);
		if (err == -EREMOTEIO && !client_is_gone(s->client)) /* single files, reported */
			err = 0;
	}
	return err;
}

/* The destination itself, with its parents. */
static int make_destination(struct sync *s)
{
	const struct sync_params *p = s->params;
	int err;

	if (!s->missing)
		return 0;
	if (p->to_server) {
		err = calls_mkdir(s->client->session, p->remote, true);
		return err ? client_report(s->client, p->remote, err) : 0;
	}
	err = beneath_mkdir(AT_FDCWD, p->local, 0777, true);
	if (err)
		report_errorf(&s->client->report, err, p->local, "%s (making the directory)",
			status_text(status_from_errno(err)));
	return err;
}

/* Whether names in the destination itself may come or go.  Before anything is carried out, which
 * uses the plan up. */
static bool changes_names(const struct sync *s)
{
	return s->plan.copy.count || s->plan.in_the_way.count || s->renamed ||
	       (s->client->settings.delete &&s->plan.extra.count);
}

/* What the destination itself gets: of a list of names nothing. */
static bool top_differs(struct sync *s, struct compare_pair *top)
{
	const struct sync_top all = {
		.from = &s->from, .to = &s->to, .compare = s->compare, .changed = s->changes};

	return !s->listed && !s->client->settings.files_from[0] &&
	       sync_top_differs(s->client, s->params, &all, top);
}

/* In the end; also when some files have failed.  *set: it has the mode that it is to have. */
static int finish_top(struct sync *s, int err, bool *set)
{
	struct compare_pair top;
	struct compare_pairs pairs = {.entries = &top, .count = 1};
	int last;

	if ((err && err != -EREMOTEIO) || !top_differs(s, &top) || !(top.mode || top.mtime))
		return err;
	last = sync_attrs(s->client, s->params, &pairs, NULL);
	*set = !last;
	return err ? err : last;
}

/* Of files that are the same; those that turn out to be others by now are copied. */
static int set_attrs(struct sync *s)
{
	const uint64_t same = s->plan.same;
	int err = sync_attrs(s->client, s->params, &s->plan.attrs, &s->plan);

	s->mover.done.skipped -= same - s->plan.same;
	s->changes |= same != s->plan.same;
	return err;
}

static int carry_out(struct sync *s)
{
	int err = make_destination(s);
	uint64_t *removed = &s->mover.done.removed;
	struct compare_pair top;
	bool opened = false, set = false;
	unsigned was = 0;

	if (!err && s->changes)
		opened = sync_top_open(s->client, s->params, &s->to, &was);

	if (!err)
		err = sync_remove(s->client, s->params, &s->plan.in_the_way, removed);
	if (!err && removes_extra(s))
		err = sync_remove(s->client, s->params, &s->plan.extra, removed);
	if (!err)
		err = set_attrs(s);
	s->itself = top_differs(s, &top) && (top.owner || top.other);
	if (!err && (s->plan.copy.count || s->itself))
		err = s->params->to_server ? copy_to(s) : copy_from(s);
	err = finish_top(s, err, &set);
	if (opened && !set)
		sync_top_close(s->client, s->params, was);
	return err;
}

static size_t beside_files(const struct compare_plan *plan)
{
	size_t count = 0;

	for (size_t i = 0; i < plan->beside.count; i++)
		count += plan->beside.entries[i].from->type == MESSAGE_FILE;
	return count;
}

int sync_run(struct client *c, const struct sync_params *asked)
{
	struct sync_params whole = *asked;
	const struct sync_params *params = &whole;
	const struct compare_params compare = {.level = c->settings.compare,
		.remove = c->settings.delete,
		/* a daemon gives nobody set-user-ID */
		.mode_mask = asked->to_server ? 01777 : 07777,
		.owner = c->settings.owner,
		.group = c->settings.group,
		.numeric = c->settings.numeric_ids,
		/* the mode of a file with a list is a part of it */
		.lists = c->settings.acls};
	struct sync s = {.client = c, .params = params, .compare = &compare};
	struct sync_list lists = {.filter = &s.filter, .from = &s.from, .to = &s.to};
	struct selection listed = {0};
	struct compare_pair top;
	int err;

	if (mover_is_for_put(c))
		return -EINVAL;
	whole.mode_mask = compare.mode_mask;
	mover_start(&s.mover, c, "sync");
	if (!client_session(c))
		return mover_finish(&s.mover, -ENOTCONN);
	s.mover.remote = params->remote;
	err = rules_read(c, &s.filter);
	if (!err) {
		err = sync_list_both(c, params, &lists);
		if (err)
			mover_file_absent(&s.mover, "",
				params->to_server ? params->local : params->remote,
				status_from_errno(err));
	}
	s.missing = lists.missing;
	if (!err && c->settings.files_from[0]) {
		err = files_from_read(c, &listed);
		if (!err) {
			files_from_restrict(&s.from, &listed, true);
			files_from_restrict(&s.to, &listed, false);
		}
	}
	if (!err && c->settings.detect_renames && c->settings.delete &&!s.from.failed &&
		!s.to.failed) {
		s.renamed = true;
		err = sync_digest_renames(c, params, &s.from, &s.to);
	}
	if (!err && c->settings.compare == COMPARE_DIGEST)
		err = sync_digest_same(c, params, &s.from, &s.to);
	if (!err &&
		(compare_links(&s.from, &s.to) || compare_make(&s.from, &s.to, &compare, &s.plan)))
		err = client_no_memory(c);
	if (!err)
		err = sync_keep_excluded(c,
			&(struct sync_keep){params, &s.filter, &s.from, &s.to, &compare}, &s.plan);
	if (!err) {
		sync_plan_tell_failed(
			c, &s.from, params->to_server ? params->local : params->remote);
		sync_plan_tell_failed(c, &s.to, params->to_server ? params->remote : params->local);
		sync_keep_tell(c, params, &s.plan);
		report_verbose(&c->report,
			"%" PRIu64 " files are the same (%zu but for mode, time or what else is "
			"kept), %" PRIu64 " are to be copied, %" PRIu64
			" names are extra; special files that are left out: %" PRIu64,
			s.plan.same, s.plan.attrs.count + beside_files(&s.plan), s.plan.files,
			s.plan.extra_names, s.plan.special);
		s.mover.done.skipped += s.plan.same;
		if (!c->settings.dry_run)
			sync_keep_special(&s.mover, params, &s.plan);
	}
	s.changes = changes_names(&s);
	if (!err && c->settings.dry_run) {
		const bool extra = removes_extra(&s);

		sync_plan_print(c, params, &(struct sync_plan){&s.from, &s.to, &s.plan, extra});
		s.mover.done.removed = s.plan.in_the_way.count + (extra ? s.plan.extra.count : 0);
		if (top_differs(&s, &top) && (!s.missing || s.plan.copy.count))
			sync_plan_print_attrs(c, params, &top);
	} else if (!err) {
		err = carry_out(&s);
	}
	selection_fini(&listed);
	compare_plan_fini(&s.plan);
	compare_list_fini(&s.from);
	compare_list_fini(&s.to);
	filter_fini(&s.filter);
	return mover_finish(&s.mover, err);
}

int sync_listed(struct client *c, const struct sync_params *params)
{
	struct sync s = {.client = c, .params = params, .listed = true};
	int err;

	s.plan.files = s.plan.bytes = s.plan.largest_bytes = MESSAGE_UNKNOWN;
	mover_start(&s.mover, c, params->to_server ? "put" : "get");
	if (!client_session(c))
		return mover_finish(&s.mover, -ENOTCONN);
	s.mover.remote = params->remote;
	err = rules_read(c, &s.filter);
	if (!err)
		err = files_from_read(c, &s.plan.copy);
	if (!err)
		err = sync_top_find(c, params, &s.missing);
	if (!err && c->settings.dry_run)
		err = sync_plan_print_names(c, params, &s.filter, &s.plan, s.missing);
	else if (!err && s.plan.copy.count)
		err = carry_out(&s);
	compare_plan_fini(&s.plan);
	filter_fini(&s.filter);
	return mover_finish(&s.mover, err);
}

static int sync_once(struct client *c, const char *name, struct sync_params *params)
{
	struct url url;
	int err = visit_open(c, name, &url);

	if (err)
		return err;
	params->remote = url.path;
	err = sync_run(c, params);
	url_fini(&url);
	return err;
}

int sync_main(struct client *c, char *const *names, int count)
{
	struct sync_params params = {.to_server = count == 2 && url_is(names[1])};
	uint64_t began_ns = clock_now_ns();
	unsigned done = 0;
	int err;

	if (count != 2 || url_is(names[0]) == url_is(names[1])) {
		report_usage(&c->report, "sync takes SRC and DST, two directories, one of them "
					 "rftp://HOST[:PORT]/PATH");
		return -EINVAL;
	}
	params.local = names[!params.to_server];
	do {
		err = sync_once(c, names[params.to_server], &params);
	} while (retry_again(c, err, done++, began_ns));
	return err;
}
