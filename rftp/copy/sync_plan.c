/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_plan.c: see sync_plan.h.
 */
#include "rftp/copy/sync_plan.h"

#include "rftp/copy/rules.h"
#include "rftp/ui/escape.h"
#include "session/calls_tree.h"
#include "tree/beneath.h"
#include "tree/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct wire_bytes bytes_of(const char *text)
{
	return (struct wire_bytes){(const uint8_t *)text, strlen(text)};
}

static int add_walked(struct compare_list *list, int top, const struct walk_entry *w)
{
	static const uint8_t types[] = {[WALK_DIRECTORY] = MESSAGE_DIRECTORY,
		[WALK_FILE] = MESSAGE_FILE,
		[WALK_LINK] = MESSAGE_SYMLINK,
		[WALK_OTHER] = MESSAGE_OTHER};
	char target[MESSAGE_TREE_TARGET_MAX + 1];
	struct message_tree_entry e = {
		.name = bytes_of(w->name),
		.status = w->error ? status_from_errno(w->error) : STATUS_OK,
		.attr = {.type = types[w->kind],
			.mode = w->st.st_mode & 07777,
			.size = (uint64_t)w->st.st_size,
			.mtime_s = w->st.st_mtim.tv_sec,
			.mtime_ns = (uint32_t)w->st.st_mtim.tv_nsec},
	};

	/* a link that is followed is what it leads to */
	if (w->kind == WALK_LINK && !w->error && !S_ISLNK(w->st.st_mode))
		e.attr.type = S_ISREG(w->st.st_mode) ? MESSAGE_FILE : MESSAGE_OTHER;
	if (e.attr.type == MESSAGE_SYMLINK && !w->error) {
		if (beneath_read_link(top, w->path, target, sizeof target) > 0)
			e.target = bytes_of(target);
		else
			e.status = STATUS_IO;
	}
	return compare_list_add(list, &e);
}

int sync_plan_list_local(const char *directory, enum walk_links links, const struct filter *filter,
	struct compare_list *list)
{
	int top = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), n;
	struct walk_entry entry;
	struct walk *walk;

	if (top < 0)
		return -errno;
	n = walk_new(top, "", "", links, &walk);
	if (n) {
		close(top);
		return n;
	}
	walk_set_filter(walk, filter);
	walk_look(walk);
	while ((n = walk_next(walk, &entry)) > 0) {
		if (entry.kind == WALK_LEAVE)
			continue;
		n = *entry.name ? add_walked(list, top, &entry) : entry.error;
		if (n)
			break;
	}
	walk_free(walk);
	close(top);
	return n;
}

static int add_told(void *list, const struct message_tree_entry *entry)
{
	return compare_list_add(list, entry);
}

int sync_plan_list_remote(struct client *c, const char *directory, const struct filter *filter,
	struct compare_list *list)
{
	struct message_data_request rules = {.kind = 0};
	struct message_tree request = {
		.flags = c->settings.links == WALK_LINKS_FOLLOW ? MESSAGE_TREE_FOLLOW_LINKS
			 : c->settings.links == WALK_LINKS_SKIP ? MESSAGE_TREE_SKIP_LINKS
								: 0,
		.path = bytes_of(directory),
	};
	uint8_t *memory;
	int err = rules_request(c, filter, &rules, &memory);

	if (err)
		return err;
	request.rule_count = rules.rule_count;
	request.rules = rules.rules;
	err = calls_tree(c->session, &request, add_told, list);
	free(memory);
	if (err == -EPROTO && !calls_lost(c->session))
		report_error(&c->report, EXIT_CODE_OK, STATUS_PROTOCOL, directory,
			"the server lists names out of order");
	else if (err == -ENOMEM)
		client_no_memory(c);
	else if (err && err != -ENOENT)
		client_report(c, directory, err);
	return err;
}

/* ---- dry-run ---- */

static void add_name(struct text *line, const char *directory, const char *name)
{
	struct text path = {0};
	size_t len = strlen(directory);

	text_puts(&path, directory);
	if (!len || directory[len - 1] != '/')
		text_putc(&path, '/');
	text_puts(&path, name);
	text_putc(line, ' ');
	escape_shell(line, text_str(&path), path.len);
	text_fini(&path);
}

static void print(struct client *c, struct text *line, const char *action, const char *name)
{
	if (report_json(&c->report)) {
		struct text event = {0};

		report_json_begin(&event, "plan");
		report_json_string(&event, "action", action);
		report_json_bytes(&event, "name", name, strlen(name));
		report_json_end(&c->report, &event);
	} else {
		text_putc(line, '\n');
		report_write(&c->report, text_str(line), line->len);
	}
	text_fini(line);
}

static void print_remove(
	struct client *c, const struct sync_params *p, const struct compare_entry *e)
{
	struct text line = {0};

	text_puts(
		&line, p->to_server ? e->type == MESSAGE_DIRECTORY ? "rm -r" : "rm" : "!rm -r --");
	add_name(&line, p->to_server ? p->remote : p->local, e->name);
	print(c, &line, "remove", e->name);
}

static void print_copy(struct client *c, const struct sync_params *p, const char *name)
{
	size_t len = strlen(name);
	char *parent = strdup(name), *slash;
	struct text line = {0};

	if (!parent)
		return;
	slash = strrchr(parent, '/');
	if (slash)
		*slash = '\0';
	else
		*parent = '\0';
	if (len && name[len - 1] == '/') { /* mode and time alone */
		text_puts(&line, "# mode and time of");
		add_name(&line, p->to_server ? p->remote : p->local, parent);
		print(c, &line, "touch", parent);
	} else {
		text_puts(&line, p->to_server ? "put -r" : "get -r");
		add_name(&line, p->to_server ? p->local : p->remote, name);
		add_name(&line, p->to_server ? p->remote : p->local, parent);
		print(c, &line, "copy", name);
	}
	free(parent);
}

void sync_plan_print_copy(struct client *c, const char *command, const char *from, const char *to)
{
	struct text line = {0};

	text_printf(&line, "%s%s ", command, c->settings.recursive ? " -r" : "");
	escape_shell(&line, from, strlen(from));
	text_putc(&line, ' ');
	escape_shell(&line, to, strlen(to));
	print(c, &line, "copy", from);
}

void sync_plan_print(
	struct client *c, const struct sync_params *p, const struct compare_plan *plan, bool remove)
{
	for (size_t i = 0; i < plan->in_the_way.count; i++)
		print_remove(c, p, plan->in_the_way.entries[i]);
	for (size_t i = 0; i < plan->copy.count; i++)
		print_copy(c, p, plan->copy.names[i]);
	for (size_t i = 0; i < plan->extra.count && remove; i++)
		print_remove(c, p, plan->extra.entries[i]);
}
