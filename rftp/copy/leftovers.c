/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/leftovers.c: see leftovers.h.
 */
#include "rftp/copy/leftovers.h"

#include "base/clock.h"
#include "base/number.h"
#include "rftp/remote/remote_path.h"
#include "rftp/remote/visit.h"
#include "rftp/shell/interrupt.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/units.h"
#include "session/calls_leftovers.h"
#include "tree/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEFTOVERS_STEP_NS (NS_PER_MS * 100)

struct leftovers_state_of {
	struct client *client;
	const struct leftovers_command *command;
	uint64_t age_s;
	const char *directory; /* that is looked at; of a server: a path there */
	bool url;              /* it is shown as URL */
	uint64_t found, found_bytes, removed, removed_bytes;
	bool headed; /* the line above the others is printed */
	bool failed; /* something was reported */
};

static const char *const kinds[] = {NULL, "directory", "file", "part", "tree"};
static const char *const states[] = {NULL, "idle", "busy", "unsure", "removed"};
static const char *const shown_states[] = {NULL, "idle", "in use", "unsure", "removed"};

/* How people name something in the directory: as they named that. */
static void leftover_path(
	const struct leftovers_state_of *s, const char *name, size_t len, struct text *out)
{
	struct text path = {0};

	text_puts(&path, s->directory);
	if (path.len && text_str(&path)[path.len - 1] != '/' && len)
		text_putc(&path, '/');
	text_add(&path, name, len);
	if (s->url)
		client_url(s->client, text_str(&path), out);
	else
		text_add(out, text_str(&path), path.len);
	text_fini(&path);
}

/* What it belongs to, or itself, if that is not known. */
static void leftover_owner(
	const struct leftovers_state_of *s, const struct leftovers_item *item, struct text *out)
{
	const char *slash = strrchr(item->path, '/');
	struct text name = {0};

	if (*item->name || item->kind == LEFTOVERS_TREE) {
		if (slash)
			text_add(&name, item->path, (size_t)(slash - item->path) + 1);
		text_puts(&name, item->name);
	} else {
		text_puts(&name, item->path);
	}
	leftover_path(s, text_str(&name), name.len, out);
	text_fini(&name);
}

static void leftover_json(const struct leftovers_state_of *s, const struct leftovers_item *item)
{
	struct text json = {0}, path = {0}, owner = {0};

	leftover_path(s, item->path, strlen(item->path), &path);
	leftover_owner(s, item, &owner);
	report_json_begin(&json, "leftover");
	report_json_bytes(&json, "path", text_str(&path), path.len);
	if (*item->name)
		report_json_bytes(&json, "belongs_to", text_str(&owner), owner.len);
	else
		report_json_string(&json, "belongs_to", NULL);
	report_json_string(&json, "kind", kinds[item->kind]);
	report_json_string(&json, "state", states[item->state]);
	report_json_number(&json, "bytes", item->disk_bytes);
	report_json_number(&json, "verified_bytes", item->verified_bytes);
	report_json_number(&json, "file_bytes", item->size_bytes);
	report_json_number(&json, "changed_s", item->changed_s > 0 ? (uint64_t)item->changed_s : 0);
	report_json_string(&json, "status", status_name(status_from_errno(item->error)));
	report_json_end(&s->client->report, &json);
	text_fini(&path);
	text_fini(&owner);
}

static void leftover_age(const struct leftovers_item *item, char out[UNITS_TEXT_MAX])
{
	static const struct {
		uint64_t s;
		char letter;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	time_t now = time(NULL);
	uint64_t age = item->changed_s < now ? (uint64_t)(now - item->changed_s) : 0;
	size_t i = 0;

	while (i < 3 && age < 2 * units[i].s)
		i++;
	snprintf(out, UNITS_TEXT_MAX, "%ju%c", (uintmax_t)(age / units[i].s), units[i].letter);
}

static void leftover_print(struct leftovers_state_of *s, const struct leftovers_item *item)
{
	struct text line = {0}, owner = {0};
	char size[UNITS_TEXT_MAX], age[UNITS_TEXT_MAX];

	if (!s->headed)
		text_puts(&line, "    SIZE     AGE  STATE    OF\n");
	s->headed = true;
	units_format_short(item->disk_bytes, size);
	leftover_age(item, age);
	text_printf(&line, "%8s  %6s  %-7s  ", size, age, shown_states[item->state]);
	leftover_owner(s, item, &owner);
	escape_shell(&line, text_str(&owner), owner.len);
	if (item->kind == LEFTOVERS_FILE) {
		units_format_size(item->size_bytes, size);
		text_printf(&line, " (%.0f %% of %s is there)",
			item->size_bytes
				? 100.0 * (double)item->verified_bytes / (double)item->size_bytes
				: 0,
			size);
	} else if (item->kind == LEFTOVERS_TREE) {
		text_puts(&line, " (several files)");
	}
	text_putc(&line, '\n');
	report_write(&s->client->report, text_str(&line), line.len);
	text_fini(&line);
	text_fini(&owner);
}

/* What cannot be looked into may hide something; what was to go and did not is told, too. */
static void leftover_error(struct leftovers_state_of *s, const struct leftovers_item *item)
{
	struct text path = {0};

	leftover_path(s, item->path, strlen(item->path), &path);
	report_errorf(&s->client->report, item->error, text_str(&path), "%s",
		status_text(status_from_errno(item->error)));
	text_fini(&path);
	s->failed = true;
}

static void leftover_tell(struct leftovers_state_of *s, const struct leftovers_item *item)
{
	if (item->kind != LEFTOVERS_DIRECTORY) {
		if (item->state == LEFTOVERS_REMOVED) {
			s->removed++;
			s->removed_bytes += item->disk_bytes;
		} else if (item->state != LEFTOVERS_BUSY) {
			s->found++;
			s->found_bytes += item->disk_bytes;
		}
		if (report_json(&s->client->report))
			leftover_json(s, item);
		else
			leftover_print(s, item);
	}
	if (item->error && (s->command->remove || item->kind == LEFTOVERS_DIRECTORY))
		leftover_error(s, item);
}

/* ---- at a server ---- */

static int leftover_told(void *ctx, const struct message_leftover *m)
{
	struct leftovers_state_of *s = ctx;
	struct leftovers_item item;
	char *path;

	if (interrupt_signal())
		return -ECANCELED;
	if (!m)
		return 0;
	path = strndup((const char *)m->path.data, m->path.len);
	if (!path)
		return -ENOMEM;
	item = (struct leftovers_item){.kind = (enum leftovers_kind)m->kind,
		.state = (enum leftovers_state)m->state,
		.error = m->status ? status_to_errno(m->status) : 0,
		.changed_s = m->changed_s,
		.disk_bytes = m->disk_bytes,
		.verified_bytes = m->verified_bytes,
		.size_bytes = m->size,
		.path = path};
	if (m->name.len)
		memcpy(item.name, m->name.data, m->name.len);
	leftover_tell(s, &item);
	free(path);
	return 0;
}

static int leftovers_at(struct leftovers_state_of *s, const char *path)
{
	struct client *c = s->client;
	const struct message_leftovers request = {
		.flags = s->command->remove ? MESSAGE_LEFTOVERS_REMOVE : 0,
		.age_s = s->age_s,
		.path = {(const uint8_t *)path, strlen(path)},
	};
	int err;

	s->directory = path;
	err = calls_leftovers(c->session, &request, leftover_told, s);
	return err == -ENOMEM ? client_no_memory(c) : err ? client_report(c, path, err) : 0;
}

/* The top of several exports lists them: each is looked at. */
static int leftovers_remote(struct leftovers_state_of *s, const char *path)
{
	struct client *c = s->client;
	struct calls_list exports;
	int err;

	if (!calls_info(c->session)->exports || path[strspn(path, "/")])
		return leftovers_at(s, path);
	err = calls_list(c->session, "/", &exports);
	if (err)
		return client_report(c, path, err);
	for (size_t i = 0; i < exports.count && c->session && !interrupt_signal(); i++) {
		char *export = remote_join("/", exports.entries[i].name);
		int one = export ? leftovers_at(s, export) : client_no_memory(c);

		err = err ? err : one;
		free(export);
	}
	calls_list_free(&exports);
	return err;
}

static int leftovers_url(struct leftovers_state_of *s, const char *name)
{
	struct url url;
	int err = visit_open(s->client, name, &url);

	if (err)
		return err;
	s->url = true;
	err = leftovers_remote(s, url.path);
	s->url = false;
	url_fini(&url);
	return err;
}

/* ---- here ---- */

static int leftovers_local(struct leftovers_state_of *s, const char *name)
{
	const struct leftovers_params params = {
		.top = AT_FDCWD, .path = name, .remove = s->command->remove, .age_s = s->age_s};
	struct leftovers *leftovers;
	struct leftovers_item item;
	int n = leftovers_new(&params, &leftovers);

	s->directory = name;
	if (n) {
		report_errorf(&s->client->report, n, name, "%s", status_text(status_from_errno(n)));
		return n;
	}
	do {
		n = interrupt_signal()
			    ? -ECANCELED
			    : leftovers_next(leftovers, clock_now_ns() + LEFTOVERS_STEP_NS, &item);
		if (n == 1)
			leftover_tell(s, &item);
	} while (n == 1 || n == -EAGAIN);
	leftovers_free(leftovers);
	if (n == -ENOMEM)
		return client_no_memory(s->client);
	if (n && n != -ECANCELED)
		report_errorf(&s->client->report, n, name, "%s", status_text(status_from_errno(n)));
	return n;
}

static void leftovers_sum(const struct leftovers_state_of *s)
{
	struct report *r = &s->client->report;
	char found[UNITS_TEXT_MAX], removed[UNITS_TEXT_MAX];

	units_format_size(s->found_bytes, found);
	units_format_size(s->removed_bytes, removed);
	if (s->removed)
		report_note(r, "%ju removed, which took %s", (uintmax_t)s->removed, removed);
	else if (s->found && !s->command->remove)
		report_note(r, "%ju left over, %s: leftovers --remove removes what nobody uses",
			(uintmax_t)s->found, found);
	else
		report_note(r, s->command->remove ? "nothing to remove" : "nothing is left over");
}

int leftovers_command(struct client *c, const struct leftovers_command *command,
	const char *const *names, size_t count)
{
	static const char *const here[] = {"."};
	struct leftovers_state_of s = {.client = c, .command = command};
	uint64_t age_ns = 0;
	int err = 0;

	if (command->older && number_parse_time(command->older, &age_ns)) {
		report_usage(&c->report, "--older: %s: is no time, such as 90m, 12h or 7d",
			command->older);
		return -EINVAL;
	}
	if (command->older && !command->remove) {
		report_usage(&c->report, "--older says which ones --remove removes");
		return -EINVAL;
	}
	s.age_s = age_ns / NS_PER_S;
	if (!count && !command->shell) {
		names = here;
		count = 1;
	}
	for (size_t i = 0; i < count && !interrupt_signal(); i++) {
		int one = 0;

		if (command->shell)
			one = client_session(c) ? leftovers_remote(&s, names[i]) : -ENOTCONN;
		else
			one = url_is(names[i]) ? leftovers_url(&s, names[i])
					       : leftovers_local(&s, names[i]);
		err = err ? err : one;
		if (command->shell && !c->session)
			break;
	}
	if (!err && !interrupt_signal() && !report_json(&c->report))
		leftovers_sum(&s);
	if (interrupt_signal())
		return -ECANCELED;
	return err ? err : s.failed ? -EREMOTEIO : 0;
}
