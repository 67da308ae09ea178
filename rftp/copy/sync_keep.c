/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_keep.c: one listing without rules of each directory that would go; with few of
 * them that is little, and what is excluded elsewhere need not be listed.
 */
#include "rftp/copy/sync_keep.h"

#include "rftp/copy/sync_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *top_of(const struct sync_params *p)
{
	return p->to_server ? p->remote : p->local;
}

/* The directories on the way to a name that stays, which is changed meanwhile.  Whether the list
 * has one of them. */
static bool mark_way(struct compare_list *to, char *name)
{
	bool any = false;

	for (char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct compare_entry *e;

		*slash = '\0';
		e = compare_list_find(to, name);
		*slash = '/';
		if (!e || e->type != MESSAGE_DIRECTORY)
			continue;
		any |= !e->part;
		e->part = true;
	}
	return any;
}

/* A directory that cannot be listed now stays, and so does all that was listed in it before: what
 * is excluded in there is not known. */
static bool mark_closed(struct compare_list *list, const char *name)
{
	const size_t length = strlen(name);
	bool any = false;

	for (size_t i = 0; i < list->count; i++) {
		struct compare_entry *e = &list->entries[i];

		if (strncmp(e->name, name, length) || (e->name[length] && e->name[length] != '/'))
			continue;
		e->part = any = true;
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
	if (path.failed) { /* another name would not be there, and that is no error */
		text_fini(&path);
		return client_no_memory(c);
	}
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

/* What cannot be looked into stays as well: nobody knows what is in it. */
static void tell_failed(
	struct client *c, const struct sync_params *p, const char *name, uint16_t status)
{
	struct text path = {0}, why = {0};

	text_printf(&path, "%s/%s", top_of(p), name);
	text_printf(&why, "%s, and is not removed", status_text(status));
	report_error(&c->report, EXIT_CODE_OK, status, text_str(&path), text_str(&why));
	text_fini(&why);
	text_fini(&path);
}

/* Whether one that is in a directory of the list has to stay: its way is marked.  0 or -ENOMEM. */
static int mark_entry(struct client *c, const struct sync_keep *k, const char *top,
	const struct compare_entry *e, bool *any)
{
	struct text name = {0};
	bool excluded;

	text_printf(&name, "%s/%s", top, e->name);
	if (name.failed) {
		text_fini(&name);
		return client_no_memory(c);
	}
	excluded = filter_excludes(k->filter, text_str(&name), e->type == MESSAGE_DIRECTORY);
	if (e->failed && !excluded)
		tell_failed(c, k->params, text_str(&name), e->failed);
	if (e->failed || excluded)
		*any |= mark_way(k->to, name.data);
	if (e->failed)
		*any |= mark_closed(k->to, text_str(&name));
	text_fini(&name);
	return 0;
}

/* Of these the directories in which something is excluded are marked in the list.  0 or -errno. */
static int mark_names(
	struct client *c, const struct sync_keep *k, const struct compare_names *names, bool *any)
{
	int err = 0;

	for (size_t i = 0; i < names->count && !err; i++) {
		const char *top = names->entries[i]->name;
		struct compare_list inside = {0};

		if (names->entries[i]->type != MESSAGE_DIRECTORY)
			continue;
		err = list_whole(c, k->params, top, &inside);
		for (size_t j = 0; j < inside.count && !err; j++)
			err = mark_entry(c, k, top, &inside.entries[j], any);
		compare_list_fini(&inside);
		if (err == -EACCES && c->session) { /* which was told */
			*any |= mark_closed(k->to, top);
			err = 0;
		}
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
	/* where something could not be read nothing that is extra is removed */
	if (!err && c->settings.delete &&!k->from->failed && !k->to->failed)
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

void sync_keep_special(
	struct mover *m, const struct sync_params *p, const struct compare_plan *plan)
{
	struct text path = {0};

	if (!plan->special_apart)
		return;
	m->done.special += plan->special_apart;
	text_printf(&path, "%s%s%s", p->local, p->local[strlen(p->local) - 1] == '/' ? "" : "/",
		plan->first_apart);
	if (!m->special)
		m->special = strdup(text_str(&path));
	text_fini(&path);
}
