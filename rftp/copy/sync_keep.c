/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_keep.c: one listing without rules of each directory that would go; with few of
 * them that is little, and what is excluded elsewhere need not be listed.
 */
#include "rftp/copy/sync_keep.h"

#include "rftp/copy/sync_plan.h"

#include <errno.h>
#include <string.h>

static const char *top_of(const struct sync_params *p)
{
	return p->to_server ? p->remote : p->local;
}

/* The directories on the way to a name that stays.  Whether the list has one of them. */
static bool mark_way(struct compare_list *to, const char *name)
{
	bool any = false;

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct compare_entry *e = compare_list_find(to, name, (size_t)(slash - name));

		if (!e || e->type != MESSAGE_DIRECTORY)
			continue;
		any |= !e->part;
		e->part = true;
	}
	return any;
}

/* What is in a directory of the destination, whatever the rules say of it.  0 or -errno, reported.
 */
static int list_whole(
	struct client *c, const struct sync_params *p, const char *name, struct compare_list *out)
{
	const struct filter none = {0};
	struct text path = {0};
	int err;

	text_printf(&path, "%s/%s", top_of(p), name);
	err = p->to_server ? sync_plan_list_remote(c, text_str(&path), &none, out)
			   : sync_plan_list_local(c, text_str(&path), &none, out);
	if (err == -ENOENT)
		err = 0; /* it is gone, as it was to be */
	else if (err && !p->to_server)
		report_errorf(&c->report, err, text_str(&path), "%s",
			status_text(status_from_errno(err)));
	text_fini(&path);
	return err;
}

/* Of these the directories in which something is excluded are marked in the list.  0 or -errno. */
static int mark_names(
	struct client *c, const struct sync_keep *k, const struct compare_names *names, bool *any)
{
	int err = 0;

	for (size_t i = 0; i < names->count && !err; i++) {
		const struct compare_entry *top = names->entries[i];
		struct compare_list inside = {0};

		if (top->type != MESSAGE_DIRECTORY)
			continue;
		err = list_whole(c, k->params, top->name, &inside);
		for (size_t j = 0; j < inside.count && !err; j++) {
			const struct compare_entry *e = &inside.entries[j];
			struct text name = {0};

			text_printf(&name, "%s/%s", top->name, e->name);
			if (name.failed)
				err = client_no_memory(c);
			else if (filter_excludes(
					 k->filter, text_str(&name), e->type == MESSAGE_DIRECTORY))
				*any |= mark_way(k->to, text_str(&name));
			text_fini(&name);
		}
		compare_list_fini(&inside);
	}
	return err;
}

int sync_keep_excluded(struct client *c, const struct sync_keep *k, struct compare_plan *plan)
{
	bool any = false;
	int err;

	if (!k->filter->count)
		return 0;
	err = mark_names(c, k, &plan->in_the_way, &any);
	if (!err && c->settings.delete)
		err = mark_names(c, k, &plan->extra, &any);
	if (err || !any)
		return err;
	compare_plan_fini(plan);
	return compare_make(k->from, k->to, k->compare, plan) ? client_no_memory(c) : 0;
}

void sync_keep_tell(struct client *c, const struct sync_params *p, const struct compare_plan *plan)
{
	for (size_t i = 0; i < plan->blocked.count; i++) {
		struct text path = {0};

		text_printf(&path, "%s/%s", top_of(p), plan->blocked.entries[i]->name);
		report_error(&c->report, EXIT_CODE_OK, STATUS_NOT_EMPTY, text_str(&path),
			"is a directory in the way, and stays: names in it are excluded or were "
			"not "
			"named");
		text_fini(&path);
	}
}
