/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/exports: see exports.h.
 */
#include "rftpd/serve/exports.h"

#include "base/log.h"
#include "rftpd/confine/sandbox.h"
#include "rftpd/export_rule.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static int open_place(const struct export_rule *rule, struct place *place)
{
	int err = place_open(place, rule->directory, rule->rights);

	if (err == -ENOSYS) {
		log_error("this kernel has no openat2 (Linux 5.6, or it is filtered), which keeps "
			  "clients inside the export");
		return -EINVAL;
	}
	if (err) {
		log_error("export %s: %s", rule->directory, strerror(-err));
		return -EINVAL;
	}
	err = rule->rights & PLACE_WRITE ? place_check_writable(place, "") : 0;
	if (err)
		log_warning("export %s is %s, but its top is not writable here: %s",
			rule->directory, rule->name ? "for writing" : ":rw", strerror(-err));
	return 0;
}

static int open_all(const struct daemon_settings *settings, struct exports *e)
{
	char why[DAEMON_WHY_MAX];
	int err = 0;

	for (unsigned i = 0; !err && i < settings->export_count; i++) {
		struct daemon_export *one = &e->all[i];
		const struct export_rule *rule;

		err = export_rule_parse(settings->exports[i]->text, &e->rules[i], why, sizeof why);
		if (err)
			break;
		rule = e->rules[i];
		one->place = (struct place){.top = -1};
		e->count++;
		e->named = rule->name;
		one->label = strdup(rule->name ? rule->name : rule->directory);
		err = one->label ? open_place(rule, &one->place) : -ENOMEM;
	}
	return err;
}

/* All names of the host, as the user of the process may use them. */
static int open_own(struct exports *e)
{
	char why[DAEMON_WHY_MAX];
	int err = export_rule_parse("/:rw", &e->rules[0], why, sizeof why);

	if (err)
		return err;
	e->count = 1;
	e->all[0].place = (struct place){.top = AT_FDCWD, .rights = PLACE_ALL};
	e->all[0].label = strdup("/");
	return e->all[0].label ? 0 : -ENOMEM;
}

int exports_open(const struct daemon_settings *settings, struct exports **out)
{
	bool own = settings->once_key;
	unsigned count = own ? 1 : settings->export_count;
	struct exports *e;
	int err;

	if (!count) {
		log_error("nothing to serve: name a directory with --export DIR");
		return -EINVAL;
	}
	e = calloc(1, sizeof *e);
	if (e) {
		e->references = 1;
		e->rules = calloc(count, sizeof(struct export_rule *));
		e->all = calloc(count, sizeof *e->all);
	}
	err = !e || !e->rules || !e->all ? -ENOMEM : own ? open_own(e) : open_all(settings, e);
	if (!err) {
		*out = e;
		return 0;
	}
	if (err == -ENOMEM)
		log_error("no memory for the exports");
	if (e) {
		exports_close(e);
		exports_free(e);
	}
	return err;
}

static bool is_changed(const struct exports *e, unsigned i)
{
	return e->rules[i]->rights & ~PLACE_READ_ONLY;
}

int exports_confine(const struct exports *e, struct sandbox *box)
{
	int err = 0;

	for (unsigned i = 0; !err && i < e->count && e->all[i].place.top >= 0; i++)
		err = sandbox_add(box, e->all[i].place.top, is_changed(e, i));
	return err;
}

bool exports_are_within(const struct exports *e, const struct sandbox *box)
{
	for (unsigned i = 0; i < e->count; i++)
		if (!sandbox_reaches(box, e->all[i].place.top, is_changed(e, i)))
			return false;
	return true;
}

/* A directory that stands in several lines is swept for the first that is written to. */
static bool is_swept_already(const struct exports *e, unsigned at)
{
	for (unsigned i = 0; i < at; i++)
		if (e->rules[i]->rights & PLACE_WRITE &&
			!strcmp(e->rules[i]->directory, e->rules[at]->directory))
			return true;
	return false;
}

void exports_sweep(struct exports *e, uint64_t keep_s)
{
	for (unsigned i = 0; i < e->count; i++)
		if (e->rules[i]->rights & PLACE_WRITE && e->all[i].place.top >= 0 &&
			!is_swept_already(e, i))
			sweeper_start(&e->all[i].sweeper, e->all[i].place.top, keep_s);
}

void exports_close(struct exports *e)
{
	for (unsigned i = 0; i < e->count; i++) {
		sweeper_stop(&e->all[i].sweeper);
		place_close(&e->all[i].place);
	}
}

void exports_free(struct exports *e)
{
	for (unsigned i = 0; i < e->count; i++) {
		free(e->all[i].label);
		export_rule_free(e->rules[i]);
	}
	free(e->all);
	free(e->rules);
	free(e);
}

bool exports_are(const struct exports *e, const struct daemon_settings *settings)
{
	if (e->count != settings->export_count)
		return false;
	for (unsigned i = 0; i < e->count; i++)
		if (strcmp(e->rules[i]->text, settings->exports[i]->text) != 0)
			return false;
	return true;
}

/* ---- views ---- */

static bool is_in_view(const struct view *v, const char *name)
{
	for (unsigned i = 0; name && i < v->count; i++)
		if (!strcmp(v->entries[i].name, name))
			return true;
	return false;
}

struct view *view_new(
	struct exports *e, const char *user, const struct sockaddr *from, bool open, int *err)
{
	struct view *v = calloc(1, sizeof *v + e->count * sizeof *v->entries);

	*err = -ENOMEM;
	if (!v)
		return NULL;
	for (unsigned i = 0; i < e->count; i++) {
		unsigned rights = export_rule_rights(e->rules[i], user, from, open);

		if (!rights || is_in_view(v, e->rules[i]->name))
			continue;
		v->entries[v->count] = (struct view_entry){
			.export = &e->all[i],
			.name = e->rules[i]->name,
			.place = {.top = e->all[i].place.top,
				.rights = rights,
				.space = &v->entries[v->count].share},
			.share = {.max_bytes = SPACE_NO_MAX, .max_files = SPACE_NO_MAX},
		};
		v->count++;
	}
	if (!v->count) {
		*err = -EACCES;
		free(v);
		return NULL;
	}
	v->exports = e;
	e->references++;
	*err = 0;
	return v;
}

void view_free(struct view *v)
{
	if (!v)
		return;
	v->exports->references--;
	free(v);
}

int view_find(
	const struct view *v, const char *path, const struct view_entry **out, const char **beneath)
{
	size_t len;

	*out = &v->entries[0];
	*beneath = path;
	if (!v->exports->named)
		return 0;
	for (;;) {
		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len != 1 || *path != '.')
			break;
		path++;
	}
	if (!len)
		return VIEW_TOP;
	if (len == 2 && !memcmp(path, "..", 2))
		return -EXDEV;
	for (unsigned i = 0; i < v->count; i++) {
		const struct view_entry *entry = &v->entries[i];

		if (strlen(entry->name) == len && !memcmp(entry->name, path, len)) {
			*out = entry;
			*beneath = path + len;
			return 0;
		}
	}
	return -ENOENT;
}

unsigned view_rights(const struct view *v)
{
	unsigned rights = 0;

	for (unsigned i = 0; i < v->count; i++)
		rights |= v->entries[i].place.rights;
	return rights;
}

unsigned view_listed(const struct view *v)
{
	return v->exports->named ? v->count : 0;
}
