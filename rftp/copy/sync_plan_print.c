/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_plan_print.c: what is said of a plan that is not carried out; see sync_plan.h.
 */
#include "rftp/copy/sync_plan.h"

#include "rftp/ui/escape.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* A local name that would be taken for flags: "--" before it ends them. */
static void end_flags(struct text *line, const char *name)
{
	if (*name == '-' && name[1])
		text_puts(line, " --");
}

/* One that takes what is copied, and is made if need be. */
static void add_directory(struct text *line, const char *directory, const char *name)
{
	struct text path = {0};

	if (*name)
		text_printf(&path, "%s/", name);
	add_name(line, directory, *name ? text_str(&path) : "");
	text_fini(&path);
}

/* A word of a command here, which /bin/sh runs: it takes bytes in quotes as they are, but a line of
 * the plan cannot have a line feed in it; such a name is set as a variable before. */
static bool is_plain(const struct text *path)
{
	for (size_t i = 0; i < path->len; i++)
		if ((unsigned char)text_str(path)[i] < ' ' || text_str(path)[i] == 0x7f)
			return false;
	return true;
}

static void set_variable(struct text *line, char variable, struct text *path)
{
	if (is_plain(path))
		return;
	text_printf(line, "%c=$(printf '", variable);
	for (const char *p = text_str(path); *p; p++)
		if (*p == '\'' || *p == '\\' || (unsigned char)*p < ' ' || *p == 0x7f)
			text_printf(line, "\\%03o", (unsigned)(unsigned char)*p);
		else
			text_puts(line, *p == '%' ? "%%" : (char[]){*p, '\0'});
	text_puts(line, "_'); "); /* what $() takes off the end is not the name's */
}

static void add_word(struct text *line, char variable, struct text *path)
{
	if (!is_plain(path)) {
		text_printf(line, " \"${%c%%_}\"", variable);
		return;
	}
	text_puts(line, " '");
	for (const char *p = text_str(path); *p; p++)
		text_puts(line, *p == '\'' ? "'\\''" : (char[]){*p, '\0'});
	text_putc(line, '\'');
}

static void join(struct text *path, const char *directory, const char *name)
{
	const size_t len = strlen(directory);

	text_puts(path, directory);
	if (!len || directory[len - 1] != '/')
		text_putc(path, '/');
	text_puts(path, name);
}

/* A command with one name, or two: `to` may be NULL. */
static void add_local_pair(struct text *line, const char *action, const char *directory,
	const char *name, const char *to)
{
	struct text a = {0}, b = {0};

	join(&a, directory, name);
	if (to)
		join(&b, directory, to);
	text_putc(line, '!');
	set_variable(line, 'a', &a);
	if (to)
		set_variable(line, 'b', &b);
	text_printf(line, "%s --", action);
	add_word(line, 'a', &a);
	if (to)
		add_word(line, 'b', &b);
	text_fini(&a);
	text_fini(&b);
}

static void add_local(
	struct text *line, const char *action, const char *directory, const char *name)
{
	add_local_pair(line, action, directory, name, NULL);
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

	if (p->to_server) {
		text_puts(&line, e->type == MESSAGE_DIRECTORY ? "rm -r" : "rm");
		add_name(&line, p->remote, e->name);
	} else {
		add_local(&line, "rm -r", p->local, e->name);
	}
	print(c, &line, "remove", e->name);
}

static void print_copy(struct client *c, const struct sync_params *p, const char *name)
{
	char *parent = strdup(name), *slash;
	struct text line = {0};

	if (!parent)
		return;
	slash = strrchr(parent, '/');
	if (slash)
		*slash = '\0';
	else
		*parent = '\0';
	text_puts(&line, p->to_server ? "put -r" : "get -r");
	end_flags(&line, p->to_server ? p->local : p->remote);
	add_name(&line, p->to_server ? p->local : p->remote, name);
	add_directory(&line, p->to_server ? p->remote : p->local, parent);
	print(c, &line, "copy", name);
	free(parent);
}

/* `command` is the same there and here. */
static void print_change(struct client *c, const struct sync_params *p, const char *command,
	const char *action, const char *name)
{
	struct text line = {0};

	if (p->to_server) {
		text_puts(&line, command);
		add_name(&line, p->remote, name);
	} else {
		add_local(&line, command, p->local, name);
	}
	print(c, &line, action, name);
}

void sync_plan_print_mkdir(struct client *c, const struct sync_params *p, const char *name)
{
	print_change(c, p, p->to_server ? "mkdir" : "mkdir -p", "mkdir", name);
}

void sync_plan_print_rename(
	struct client *c, const struct sync_params *p, const char *from, const char *to)
{
	struct text line = {0};

	if (p->to_server) {
		text_puts(&line, "mv -n");
		add_name(&line, p->remote, from);
		add_name(&line, p->remote, to);
	} else {
		add_local_pair(&line, "mv -n", p->local, from, to);
	}
	print(c, &line, "rename", to);
}

/* The directory that a name is in, where the destination lacks it. */
static void print_parent(struct client *c, const struct sync_params *p, const char *name,
	const struct compare_list *to)
{
	const char *slash = strrchr(name, '/');
	char *parent = slash ? strndup(name, (size_t)(slash - name)) : NULL;

	if (parent && !compare_list_find(to, parent))
		print_change(c, p, "mkdir -p", "mkdir", parent);
	free(parent);
}

/* A link is made anew: "put" and "get" would copy what one leads to that is named to them. */
static void print_link(struct client *c, const struct sync_params *p, const struct compare_entry *e,
	const struct compare_list *to)
{
	const struct compare_pair times = {.from = e, .mtime = true};
	const struct compare_entry *old = compare_list_find(to, e->name);
	struct text line = {0}, target = {0}, path = {0};

	print_parent(c, p, e->name, to);
	if (p->to_server) {
		if (old && old->type != MESSAGE_DIRECTORY)
			print_remove(c, p, old);
		text_puts(&line, "ln -s");
		end_flags(&line, e->target);
		text_putc(&line, ' ');
		escape_shell(&line, e->target, strlen(e->target));
		add_name(&line, p->remote, e->name);
	} else {
		text_puts(&target, e->target);
		join(&path, p->local, e->name);
		text_putc(&line, '!');
		set_variable(&line, 'a', &target);
		set_variable(&line, 'b', &path);
		text_puts(&line, "ln -sfn --");
		add_word(&line, 'a', &target);
		add_word(&line, 'b', &path);
		text_fini(&target);
		text_fini(&path);
	}
	print(c, &line, "copy", e->name);
	sync_plan_print_attrs(c, p, &times);
}

/* A user or group as a command takes it: by number where the name is none that needs no quotes. */
static void add_account(struct text *line, const char *name, uint32_t id, bool numeric)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.@-";

	if (numeric || !*name || *name == '-' || name[strspn(name, plain)])
		text_printf(line, "%u", (unsigned)id);
	else
		text_puts(line, name);
}

static void print_owner(
	struct client *c, const struct sync_params *p, const struct compare_entry *e)
{
	const struct settings *s = &c->settings;
	struct text command = {0};

	if (!e->owner)
		return;
	text_puts(&command, "chown -h ");
	if (s->owner)
		add_account(&command, e->owner->user, e->owner->uid, s->numeric_ids);
	if (s->group) {
		text_putc(&command, ':');
		add_account(&command, e->owner->group, e->owner->gid, s->numeric_ids);
	}
	print_change(c, p, text_str(&command), "chown", e->name);
	text_fini(&command);
}

/* What a file has beyond mode and time, or that it is a link, comes with it; there is no command of
 * the shell for the attributes of a directory. */
static void print_beside(
	struct client *c, const struct sync_params *p, const struct compare_pair *pair)
{
	struct text line = {0};

	if (pair->owner)
		print_owner(c, p, pair->from);
	if (!pair->other)
		return;
	if (pair->from->type == MESSAGE_FILE) {
		print_copy(c, p, pair->from->name);
		return;
	}
	text_puts(&line, "# attributes and access control lists:");
	add_name(&line, p->to_server ? p->remote : p->local, pair->from->name);
	print(c, &line, "attributes", pair->from->name);
}

void sync_plan_print_attrs(
	struct client *c, const struct sync_params *p, const struct compare_pair *pair)
{
	const struct compare_entry *e = pair->from;
	const bool link = e->type == MESSAGE_SYMLINK;
	char command[64];

	print_beside(c, p, pair);
	if (pair->mode) {
		snprintf(command, sizeof command, "chmod %04o",
			e->mode & (e->type == MESSAGE_FILE ? p->mode_mask : 07777u));
		print_change(c, p, command, "chmod", e->name);
	}
	if (pair->mtime) {
		snprintf(command, sizeof command, "touch -%s%s -d @%jd.%09u", link ? "h" : "c",
			p->to_server ? "" : "m", (intmax_t)e->mtime_s, (unsigned)e->mtime_ns);
		print_change(c, p, command, "touch", e->name);
	}
}

void sync_plan_print_copy(struct client *c, const char *command, const char *from, const char *to)
{
	struct text line = {0};

	text_printf(&line, "%s%s", command, c->settings.recursive ? " -r" : "");
	end_flags(&line, from);
	text_putc(&line, ' ');
	escape_shell(&line, from, strlen(from));
	text_putc(&line, ' ');
	escape_shell(&line, to, strlen(to));
	print(c, &line, "copy", from);
}

/* Whether a name is among those to be copied. */
static bool is_copied(const struct compare_plan *plan, const char *name)
{
	size_t low = 0, high = plan->copy.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = selection_order(plan->copy.names[middle], name);

		if (!order)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* The directories that get mode or time, or in which something is copied; each with a '/' behind.
 * 0 or -ENOMEM. */
static int find_touched(const struct compare_plan *plan, struct selection *out)
{
	int err = 0;

	for (size_t i = 0; i < plan->copy.count && !err; i++) {
		const char *name = plan->copy.names[i], *slash = strrchr(name, '/');

		if (slash)
			err = selection_add(out, name, (size_t)(slash - name) + 1);
	}
	return err ? err : selection_sort(out);
}

/* Directories that were there get theirs when all in them has changed, the innermost first. */
static void print_touched(struct client *c, const struct sync_params *p,
	const struct compare_list *from, const struct compare_plan *plan)
{
	struct selection touched = {0};
	size_t at = from->count;

	if (find_touched(plan, &touched))
		client_no_memory(c);
	for (size_t i = touched.count; i--;) {
		const char *name = touched.names[i];
		size_t len = strlen(name) - 1;

		/* both are in one order */
		while (at && (strncmp(from->entries[at - 1].name, name, len) != 0 ||
				     from->entries[at - 1].name[len]))
			at--;
		if (at)
			sync_plan_print_attrs(c, p,
				&(struct compare_pair){.from = &from->entries[at - 1],
					.mode = is_copied(plan, name),
					.mtime = true});
	}
	selection_fini(&touched);
}

/* Whether a name with a '/' behind may be a directory that is not there: of a list of names, or one
 * that comes without what is in it. */
static bool may_be_made(const struct compare_list *from, const char *name)
{
	char *plain = strndup(name, strlen(name) - 1);
	const struct compare_entry *e = plain ? compare_list_find(from, plain) : NULL;

	free(plain);
	return !from->count || (e && e->alone);
}

void sync_plan_print(struct client *c, const struct sync_params *p, const struct sync_plan *whole)
{
	const struct compare_list *from = whole->from;
	const struct compare_plan *plan = whole->plan;

	for (size_t i = 0; i < plan->in_the_way.count; i++)
		print_remove(c, p, plan->in_the_way.entries[i]);
	for (size_t i = 0; i < plan->attrs.count; i++)
		sync_plan_print_attrs(c, p, &plan->attrs.entries[i]);
	for (size_t i = 0; i < plan->copy.count; i++) {
		const char *name = plan->copy.names[i];
		const struct compare_entry *e = compare_list_find(from, name);

		if (e && e->type == MESSAGE_SYMLINK && !e->target)
			continue; /* it could not be read, which is told as an error */
		if (e && e->type == MESSAGE_SYMLINK)
			print_link(c, p, e, whole->to);
		else if (!*name || name[strlen(name) - 1] != '/')
			print_copy(c, p, name);
		else if (may_be_made(from, name))
			print_change(c, p, "mkdir -p", "mkdir", name);
	}
	for (size_t i = 0; i < plan->extra.count && whole->remove; i++)
		print_remove(c, p, plan->extra.entries[i]);
	for (size_t i = 0; i < plan->beside.count; i++)
		print_beside(c, p, &plan->beside.entries[i]);
	print_touched(c, p, from, plan);
}
