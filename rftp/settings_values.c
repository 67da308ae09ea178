/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings_values: see settings_values.h.  Settings of one purpose are in files of their own:
 * settings_blocks.c, settings_login.c, settings_names.c, settings_resume.c.
 */
#include "rftp/settings_forms.h"
#include "rftp/settings_values.h"

#include "base/number.h"
#include "proto/transfer.h"
#include "rftp/ui/units.h"
#include "transfer/bucket.h"
#include "tree/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_NS_PER_S 1000000000ull

static const char *const verbosity_names[] = {"quiet", "normal", "verbose", "debug"};

int settings_set_verbosity(struct settings *s, const char *value, struct text *why)
{
	int i = settings_find_word(SETTINGS_WORDS(verbosity_names), value, why);

	if (i < 0)
		return -EINVAL;
	s->verbosity = i - 1;
	return 0;
}

void settings_show_verbosity(const struct settings *s, struct text *out)
{
	text_puts(out, verbosity_names[s->verbosity + 1]);
}

static const char *const drop_names[] = {"none", "oldest"};

int settings_set_drop(struct settings *s, const char *value, struct text *why)
{
	int i = settings_find_word(SETTINGS_WORDS(drop_names), value, why);

	if (i < 0)
		return -EINVAL;
	s->drop_oldest = i;
	return 0;
}

void settings_show_drop(const struct settings *s, struct text *out)
{
	text_puts(out, drop_names[s->drop_oldest]);
}

static int parse_seconds(const char *value, unsigned *ms, struct text *why)
{
	uint64_t n;

	if (number_parse(value, 1, 86400, &n)) {
		text_puts(why, "1 to 86400 seconds");
		return -EINVAL;
	}
	*ms = (unsigned)n * 1000;
	return 0;
}

int settings_set_connect_timeout(struct settings *s, const char *value, struct text *why)
{
	return parse_seconds(value, &s->connect_timeout_ms, why);
}

void settings_show_connect_timeout(const struct settings *s, struct text *out)
{
	text_printf(out, "%u", s->connect_timeout_ms / 1000);
}

int settings_set_retries(struct settings *s, const char *value, struct text *why)
{
	uint64_t n;

	if (number_parse(value, 0, 1000000, &n)) {
		text_puts(why, "0 to 1000000");
		return -EINVAL;
	}
	s->retries = (unsigned)n;
	return 0;
}

void settings_show_retries(const struct settings *s, struct text *out)
{
	text_printf(out, "%u", s->retries);
}

int settings_set_timeout(struct settings *s, const char *value, struct text *why)
{
	return parse_seconds(value, &s->timeout_ms, why);
}

void settings_show_timeout(const struct settings *s, struct text *out)
{
	text_printf(out, "%u", s->timeout_ms / 1000);
}

int settings_set_priority(struct settings *s, const char *value, struct text *why)
{
	const struct wire_bytes name = {(const uint8_t *)value, strlen(value)};

	if (!settings_is_auto(value) && !message_class_ok(name)) {
		text_puts(why,
			"auto, or the name of a class at the server: letters, digits, '-', '_'");
		return -EINVAL;
	}
	strcpy(s->priority, settings_is_auto(value) ? "" : value);
	return 0;
}

void settings_show_priority(const struct settings *s, struct text *out)
{
	text_puts(out, *s->priority ? s->priority : "auto");
}

int settings_set_deadline(struct settings *s, const char *value, struct text *why)
{
	char time[UNITS_TEXT_MAX];
	size_t len = strcspn(value, ",");
	uint64_t ns;

	if (!strcmp(value, "none")) {
		s->has_deadline = s->deadline_fails = false;
		return 0;
	}
	snprintf(time, sizeof time, "%.*s", (int)len, value);
	if (len >= sizeof time || number_parse_time(time, &ns) ||
		(value[len] && strcmp(value + len, ",fail"))) {
		text_puts(why, "none, or a time up to 366 days (100ms, 2s, 5m, 1h), with \",fail\" "
			       "behind it if a transfer is of no use later");
		return -EINVAL;
	}
	s->has_deadline = true;
	s->deadline_ns = ns;
	s->deadline_fails = value[len];
	return 0;
}

void settings_show_deadline(const struct settings *s, struct text *out)
{
	if (!s->has_deadline)
		text_puts(out, "none");
	else if (s->deadline_ns % SETTINGS_NS_PER_S)
		text_printf(out, "%.6gms", (double)s->deadline_ns / 1e6);
	else
		text_printf(out, "%jus", (uintmax_t)(s->deadline_ns / SETTINGS_NS_PER_S));
	if (s->has_deadline && s->deadline_fails)
		text_puts(out, ",fail");
}

int settings_set_limit_rate(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (strcmp(value, "none") && (number_parse_rate(value, &n) || n < BUCKET_RATE_MIN)) {
		text_printf(why, "none, or bytes a second from %uK on (500K, 2.5M)",
			(unsigned)(BUCKET_RATE_MIN >> 10));
		return -EINVAL;
	}
	s->limit_rate = n;
	return 0;
}

void settings_show_limit_rate(const struct settings *s, struct text *out)
{
	if (s->limit_rate)
		text_printf(out, "%ju", (uintmax_t)s->limit_rate);
	else
		text_puts(out, "none");
}

/* One of them: a size, or seconds with an "s" behind. */
static int parse_segment(const char *value, size_t len, struct settings *s)
{
	char text[UNITS_TEXT_MAX];
	uint64_t n;

	if (!len || len >= sizeof text)
		return -EINVAL;
	memcpy(text, value, len);
	text[len] = '\0';
	if (text[len - 1] == 's') {
		text[len - 1] = '\0';
		if (s->segment_ns || number_parse(text, 1, 86400 * 366, &n))
			return -EINVAL;
		s->segment_ns = n * SETTINGS_NS_PER_S;
		return 0;
	}
	if (s->segment_bytes || number_parse_size(text, &n) || n < MESSAGE_SEGMENT_BYTES_MIN ||
		n > TRANSFER_SIZE_MAX)
		return -EINVAL;
	s->segment_bytes = n;
	return 0;
}

int settings_set_segment(struct settings *s, const char *value, struct text *why)
{
	struct settings parsed = {0};
	const char *comma = strchr(value, ',');
	int err = 0;

	if (strcmp(value, "none")) {
		err = parse_segment(
			value, comma ? (size_t)(comma - value) : strlen(value), &parsed);
		if (!err && comma)
			err = parse_segment(comma + 1, strlen(comma + 1), &parsed);
	}
	if (err) {
		text_puts(why, "a size from 4K on (64M), seconds (10s), both (64M,10s), or none");
		return -EINVAL;
	}
	s->segment_bytes = parsed.segment_bytes;
	s->segment_ns = parsed.segment_ns;
	return 0;
}

void settings_show_segment(const struct settings *s, struct text *out)
{
	if (s->segment_bytes)
		settings_show_size(s->segment_bytes, out);
	if (s->segment_ns)
		text_printf(out, "%s%jus", s->segment_bytes ? "," : "",
			(uintmax_t)(s->segment_ns / SETTINGS_NS_PER_S));
	if (!s->segment_bytes && !s->segment_ns)
		text_puts(out, "none");
}

int settings_set_resume(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (strcmp(value, "never") &&
		(number_parse_size(value, &n) || !n || n > TRANSFER_SIZE_MAX)) {
		text_puts(why, "never, or the size of the smallest file (16M)");
		return -EINVAL;
	}
	s->resume_bytes = n;
	return 0;
}

void settings_show_resume(const struct settings *s, struct text *out)
{
	if (s->resume_bytes)
		settings_show_size(s->resume_bytes, out);
	else
		text_puts(out, "never");
}

#define BOOLEAN(name)                                                                              \
	int settings_set_##name(struct settings *s, const char *value, struct text *why)           \
	{                                                                                          \
		return settings_parse_bool(value, &s->name, why);                                  \
	}                                                                                          \
	void settings_show_##name(const struct settings *s, struct text *out)                      \
	{                                                                                          \
		text_puts(out, s->name ? "on" : "off");                                            \
	}
BOOLEAN(crc)
BOOLEAN(recursive)
BOOLEAN(replace)
BOOLEAN(update)
BOOLEAN(ignore_existing)
BOOLEAN(json)
BOOLEAN(owner)
BOOLEAN(group)
BOOLEAN(numeric_ids)
BOOLEAN(xattrs)
BOOLEAN(acls)
BOOLEAN(parents)
BOOLEAN(hard_links)
BOOLEAN(preallocate)
BOOLEAN(stop_on_error)
BOOLEAN(delete)
BOOLEAN(dry_run)
BOOLEAN(detect_renames)
BOOLEAN(from0)

static const char *const link_names[] = {
	[WALK_LINKS_KEEP] = "keep", [WALK_LINKS_FOLLOW] = "follow", [WALK_LINKS_SKIP] = "skip"};

int settings_set_links(struct settings *s, const char *value, struct text *why)
{
	int i = settings_find_word(SETTINGS_WORDS(link_names), value, why);

	if (i < 0)
		return -EINVAL;
	s->links = (enum walk_links)i;
	return 0;
}

void settings_show_links(const struct settings *s, struct text *out)
{
	text_puts(out, link_names[s->links]);
}

static const char *const compare_names[] = {[COMPARE_MTIME] = "mtime",
	[COMPARE_SIZE] = "size",
	[COMPARE_EXISTS] = "exists",
	[COMPARE_DIGEST] = "digest"};

int settings_set_compare(struct settings *s, const char *value, struct text *why)
{
	int i = settings_find_word(SETTINGS_WORDS(compare_names), value, why);

	if (i < 0)
		return -EINVAL;
	s->compare = (enum compare_level)i;
	return 0;
}

void settings_show_compare(const struct settings *s, struct text *out)
{
	text_puts(out, compare_names[s->compare]);
}

int settings_set_max_delete(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = UINT64_MAX;

	if (strcmp(value, "none") && number_parse(value, 0, 1000000000, &n)) {
		text_puts(why, "none, or 0 to 1000000000");
		return -EINVAL;
	}
	s->max_delete = n;
	return 0;
}

void settings_show_max_delete(const struct settings *s, struct text *out)
{
	if (s->max_delete == UINT64_MAX)
		text_puts(out, "none");
	else
		text_printf(out, "%ju", (uintmax_t)s->max_delete);
}

/* One rule more, or several with newlines between, as they are shown. */
int settings_set_filter(struct settings *s, const char *value, struct text *why)
{
	size_t len = strlen(s->rules), more = strlen(value);
	struct filter filter = {0};
	char reason[FILTER_WHY_MAX];
	int err = 0;

	if (!strcmp(value, "none")) {
		s->rules[0] = '\0';
		return 0;
	}
	if (len + more + 2 > sizeof s->rules) {
		text_printf(why,
			"less than %zu bytes for all rules; more are read from a file: \". FILE\"",
			sizeof s->rules);
		return -EINVAL;
	}
	for (const char *line = value; !err; line++) {
		char *rule = strndup(line, strcspn(line, "\n"));

		snprintf(reason, sizeof reason, "out of memory");
		err = rule ? filter_add(&filter, rule, reason) : -ENOMEM;
		free(rule);
		line += strcspn(line, "\n");
		if (!*line)
			break;
	}
	filter_fini(&filter);
	if (err) {
		text_printf(why, "\"- PATTERN\", \"+ PATTERN\", \". FILE\" or none (%s)", reason);
		return -EINVAL;
	}
	snprintf(s->rules + len, sizeof s->rules - len, "%s%s", len ? "\n" : "", value);
	return 0;
}

void settings_show_filter(const struct settings *s, struct text *out)
{
	text_puts(out, *s->rules ? s->rules : "none");
}
