/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_plan_names.c: what the names of --files-from are, for a plan of them; see
 * sync_plan.h.
 */
#include "rftp/copy/sync_plan.h"

#include "rftp/remote/remote_path.h"
#include "tree/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sync_plan_names {
	struct client *c;
	const struct sync_params *params;
	const struct filter *filter;
	struct compare_list *from;
	struct selection out;
};

static void tell(struct sync_plan_names *n, const char *name, uint16_t status)
{
	char *path = remote_join(n->params->to_server ? n->params->local : n->params->remote, name);

	report_error(&n->c->report, EXIT_CODE_OK, status, path ? path : name, NULL);
	free(path);
}

static int keep(struct sync_plan_names *n, const char *name, bool directory)
{
	struct text text = {0};
	int err;

	text_puts(&text, name);
	if (directory)
		text_putc(&text, '/');
	err = text.failed ? -ENOMEM : selection_add(&n->out, text_str(&text), text.len);
	text_fini(&text);
	return err;
}

static bool is_behind_link(const struct sync_plan_names *n, const char *name)
{
	bool is = false;

	for (const char *p = name; !is && (p = strchr(p, '/')); p++) {
		char *way = strndup(name, (size_t)(p - name));
		const struct compare_entry *e = way ? compare_list_find(n->from, way) : NULL;

		is = e && e->type == MESSAGE_SYMLINK;
		free(way);
	}
	return is;
}

/* `name` without, `slash`: it was given with a '/' behind. */
static int look_at(struct sync_plan_names *n, const char *name, bool slash)
{
	const struct settings *s = &n->c->settings;
	struct compare_entry *e = compare_list_find(n->from, name);

	if (filter_excludes(n->filter, name, !e || e->type == MESSAGE_DIRECTORY))
		return 0;
	/* a link that trees leave out is copied where it is named: as what it leads to; nor is
	 * listed what lies behind one */
	if (!e && (s->links == WALK_LINKS_SKIP || is_behind_link(n, name)))
		return keep(n, name, slash);
	if (!e || e->failed) {
		tell(n, name, e ? e->failed : STATUS_NOT_FOUND);
		return 0;
	}
	if (slash && e->type != MESSAGE_DIRECTORY) {
		tell(n, name, STATUS_NOT_DIRECTORY);
		return 0;
	}
	e->alone = e->type == MESSAGE_DIRECTORY && !s->recursive;
	return keep(n, name, e->alone);
}

int sync_plan_print_names(struct client *c, const struct sync_params *params,
	const struct filter *filter, struct compare_plan *plan, bool missing)
{
	struct compare_list from = {0}, to = {0};
	struct sync_plan_names n = {.c = c, .params = params, .filter = filter, .from = &from};
	int err = params->to_server ? sync_plan_list_local(c, params->local, filter, &from)
				    : sync_plan_list_remote(c, params->remote, filter, &from);

	/* a link there has to go before another one can be made */
	if (!err && params->to_server && !missing)
		err = sync_plan_list_remote(c, params->remote, filter, &to);
	for (size_t i = 0; i < plan->copy.count && !err; i++) {
		char *name = plan->copy.names[i];
		const size_t len = strlen(name);
		const bool slash = len && name[len - 1] == '/';

		name[len - slash] = '\0';
		if (look_at(&n, name, slash))
			err = client_no_memory(c);
	}
	if (!err && selection_sort(&n.out))
		err = client_no_memory(c);
	selection_fini(&plan->copy);
	plan->copy = n.out;
	if (!err)
		sync_plan_print(c, params, &(struct sync_plan){&from, &to, plan, false});
	compare_list_fini(&from);
	compare_list_fini(&to);
	return err;
}
