/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_attrs.c: see sync_attrs.h.
 */
#include "rftp/copy/sync_attrs.h"

#include "rftp/remote/changes.h"
#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"
#include "tree/change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct attrs {
	struct client *client;
	const struct compare_pairs *pairs;
	struct compare_plan *plan;
	int err;
};

static bool attrs_are_of_file(const struct compare_pair *pair)
{
	return pair->to && pair->from->type == MESSAGE_FILE && pair->mtime;
}

static void attrs_changed(void *ctx, size_t number)
{
	struct attrs *a = ctx;
	const struct compare_pair *pair = &a->pairs->entries[number];

	if (!a->plan || !attrs_are_of_file(pair)) { /* a server's answer to what was not asked */
		report_error(&a->client->report, EXIT_CODE_OK, STATUS_CHANGED,
			*pair->from->name ? pair->from->name : "the directory itself",
			"the server says that it was changed, which it was not asked");
		return;
	}
	report_verbose(&a->client->report, "%s was changed after it was compared: it is copied",
		pair->from->name);
	if (!a->err && compare_plan_copy_too(a->plan, pair))
		a->err = client_no_memory(a->client);
}

static int attrs_remote(struct client *c, const struct sync_params *p, struct attrs *a)
{
	const struct compare_pairs *pairs = a->pairs;
	struct changes *changes = changes_new(c);
	int err = changes ? 0 : -ENOMEM;

	if (!err)
		changes_tell_changed(changes, attrs_changed, a);
	for (size_t i = 0; i < pairs->count && !err; i++) {
		const struct compare_pair *pair = &pairs->entries[i];
		const struct compare_entry *e = pair->from;
		const bool link = e->type == MESSAGE_SYMLINK, seen = attrs_are_of_file(pair);
		const struct message_change change = {
			.flags = (uint8_t)((pair->mode ? MESSAGE_CHANGE_MODE : 0) |
					   (pair->mtime ? MESSAGE_CHANGE_MTIME : 0) |
					   (link ? MESSAGE_CHANGE_LINK : 0) |
					   (seen ? MESSAGE_CHANGE_SEEN : 0)),
			.mode = !pair->mode               ? 0
				: e->type == MESSAGE_FILE ? e->mode & p->mode_mask
							  : e->mode,
			.mtime_s = pair->mtime ? e->mtime_s : 0,
			.mtime_ns = pair->mtime ? e->mtime_ns : 0,
			.seen = seen ? compare_seen(pair->to) : (struct message_seen){0},
		};
		/* the directory itself has no name in it */
		char *path = *e->name ? remote_join(p->remote, e->name) : strdup(p->remote);

		err = path ? changes_add(changes, path, change) : client_no_memory(c);
		free(path);
	}
	if (!err)
		changes_end(changes);
	changes_free(changes);
	return err ? err : c->session ? 0 : -ENOTCONN;
}

static int attrs_local(struct client *c, const struct sync_params *p, struct attrs *a)
{
	const struct compare_pairs *pairs = a->pairs;
	int top = open(p->local, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0) {
		int err = -errno;

		report_errorf(&c->report, err, p->local, "%s", status_text(status_from_errno(err)));
		return err;
	}
	for (size_t i = 0; i < pairs->count && !interrupt_signal(); i++) {
		const struct compare_pair *pair = &pairs->entries[i];
		const struct compare_entry *e = pair->from;
		struct change change = {
			.has_mode = pair->mode,
			.has_mtime = pair->mtime,
			.has_seen = attrs_are_of_file(pair),
			.link = e->type == MESSAGE_SYMLINK,
			.set_id = true,
			.mode = e->mode,
			.mtime_s = e->mtime_s,
			.mtime_ns = e->mtime_ns,
		};
		struct text path = {0};
		int err;

		if (change.has_seen)
			change.seen = compare_seen(pair->to);
		err = change_run(top, e->name, &change);
		if (!err)
			continue;
		if (err == -ESTALE && change.has_seen) {
			attrs_changed(a, i);
			continue;
		}
		text_printf(&path, "%s%s%s", p->local, *e->name ? "/" : "", e->name);
		report_errorf(&c->report, err, text_str(&path), "%s",
			status_text(status_from_errno(err)));
		text_fini(&path);
	}
	close(top);
	return interrupt_signal() ? -ECANCELED : 0;
}

int sync_attrs(struct client *c, const struct sync_params *p, const struct compare_pairs *pairs,
	struct compare_plan *plan)
{
	struct attrs a = {.client = c, .pairs = pairs, .plan = plan};
	int err;

	if (!pairs->count)
		return 0;
	err = p->to_server ? attrs_remote(c, p, &a) : attrs_local(c, p, &a);
	if (!err)
		err = a.err;
	if (!err && plan && selection_sort(&plan->copy))
		err = client_no_memory(c);
	return err;
}
