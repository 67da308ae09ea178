/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings_values.c: owns the forms of values.  What they are called is in rftp/settings.
 */
#include "rftp/settings_values.h"

#include "base/number.h"
#include "engine/engine.h"
#include "fabric/select.h"
#include "proto/transfer.h"
#include "rftp/ui/units.h"
#include "transfer/bucket.h"
#include "tree/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_NS_PER_S 1000000000ull

static bool is_auto(const char *value)
{
	return !strcmp(value, "auto");
}

/* Names with commas between, each of them known. */
static bool is_fabric_list(const char *list)
{
	bool known;

	do {
		size_t len = strcspn(list, ",");

		known = false;
		for (unsigned i = 0; select_name(i); i++)
			known |= strlen(select_name(i)) == len &&
				 !strncmp(select_name(i), list, len);
		list += len;
	} while (known && *list++);
	return known;
}

int settings_set_fabric(struct settings *s, const char *value, struct text *why)
{
	if (is_auto(value)) {
		s->fabric[0] = '\0';
		return 0;
	}
	if (is_fabric_list(value) && strlen(value) < sizeof s->fabric) {
		strcpy(s->fabric, value);
		return 0;
	}
	text_puts(why, "this build has: auto");
	for (unsigned i = 0; select_name(i); i++)
		text_printf(why, ", %s", select_name(i));
	return -EINVAL;
}

void settings_show_fabric(const struct settings *s, struct text *out)
{
	text_puts(out, s->fabric[0] ? s->fabric : "auto");
}

int settings_set_engine(struct settings *s, const char *value, struct text *why)
{
	const struct engine_ops *ops = engine_by_name(value);

	if (ops || is_auto(value)) {
		s->engine = ops ? ops->id : 0;
		return 0;
	}
	text_puts(why, "this build has: auto");
	for (unsigned i = 0; engine_at(i); i++)
		text_printf(why, ", %s", engine_at(i)->name);
	return -EINVAL;
}

void settings_show_engine(const struct settings *s, struct text *out)
{
	text_puts(out, settings_engine_name(s->engine));
}

int settings_set_channels(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (!is_auto(value) && number_parse(value, 1, MESSAGE_CHANNELS_MAX, &n)) {
		text_printf(why, "auto, or 1 to %u", MESSAGE_CHANNELS_MAX);
		return -EINVAL;
	}
	s->channels = (uint16_t)n;
	return 0;
}

static void show_number(uint32_t n, struct text *out)
{
	if (n)
		text_printf(out, "%u", n);
	else
		text_puts(out, "auto");
}

void settings_show_channels(const struct settings *s, struct text *out)
{
	show_number(s->channels, out);
}

int settings_set_block(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (!is_auto(value) && (number_parse_size(value, &n) || n < TRANSFER_BLOCK_MIN ||
				       n > TRANSFER_BLOCK_MAX || n % 4096)) {
		text_puts(why, "auto, or 64K to 16M in steps of 4K");
		return -EINVAL;
	}
	s->block = (uint32_t)n;
	return 0;
}

void settings_show_block(const struct settings *s, struct text *out)
{
	if (s->block && s->block % (1u << 20) == 0)
		text_printf(out, "%uM", s->block >> 20);
	else if (s->block)
		text_printf(out, "%uK", s->block >> 10);
	else
		text_puts(out, "auto");
}

int settings_set_depth(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (!is_auto(value) && number_parse(value, 1, TRANSFER_DEPTH_MAX, &n)) {
		text_printf(why, "auto, or 1 to %u blocks", TRANSFER_DEPTH_MAX);
		return -EINVAL;
	}
	s->depth = (uint32_t)n;
	return 0;
}

void settings_show_depth(const struct settings *s, struct text *out)
{
	show_number(s->depth, out);
}

static int parse_bool(const char *value, bool *out, struct text *why)
{
	if (!strcmp(value, "on") || !strcmp(value, "yes"))
		*out = true;
	else if (!strcmp(value, "off") || !strcmp(value, "no"))
		*out = false;
	else {
		text_puts(why, "on or off");
		return -EINVAL;
	}
	return 0;
}

int settings_set_direct(struct settings *s, const char *value, struct text *why)
{
	bool on;

	if (is_auto(value)) {
		s->direct = END_DIRECT_AUTO;
		return 0;
	}
	if (parse_bool(value, &on, why)) {
		text_clear(why);
		text_puts(why, "auto, on or off");
		return -EINVAL;
	}
	s->direct = on ? END_DIRECT_ON : END_DIRECT_OFF;
	return 0;
}

void settings_show_direct(const struct settings *s, struct text *out)
{
	text_puts(out, s->direct == END_DIRECT_ON    ? "on"
		       : s->direct == END_DIRECT_OFF ? "off"
						     : "auto");
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

	if (!is_auto(value) && !message_class_ok(name)) {
		text_puts(why,
			"auto, or the name of a class at the server: letters, digits, '-', '_'");
		return -EINVAL;
	}
	strcpy(s->priority, is_auto(value) ? "" : value);
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

/* A size as it may be given. */
static void show_size(uint64_t n, struct text *out)
{
	static const char letters[] = "KMGT";
	int letter = -1;

	for (; n && n % 1024 == 0 && letter < 3; letter++)
		n /= 1024;
	text_printf(out, "%ju%.*s", (uintmax_t)n, letter >= 0, &letters[letter >= 0 ? letter : 0]);
}

void settings_show_segment(const struct settings *s, struct text *out)
{
	if (s->segment_bytes)
		show_size(s->segment_bytes, out);
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
		show_size(s->resume_bytes, out);
	else
		text_puts(out, "never");
}

int settings_set_inline_max(struct settings *s, const char *value, struct text *why)
{
	uint64_t n;

	if (number_parse_size(value, &n) || n > MESSAGE_INLINE_MAX) {
		text_puts(why, "0, or a size of at most 60K");
		return -EINVAL;
	}
	s->inline_max = (uint32_t)n;
	return 0;
}

void settings_show_inline_max(const struct settings *s, struct text *out)
{
	show_size(s->inline_max, out);
}

int settings_set_drop(struct settings *s, const char *value, struct text *why)
{
	if (strcmp(value, "none") && strcmp(value, "oldest")) {
		text_puts(why, "none or oldest");
		return -EINVAL;
	}
	s->drop_oldest = !strcmp(value, "oldest");
	return 0;
}

void settings_show_drop(const struct settings *s, struct text *out)
{
	text_puts(out, s->drop_oldest ? "oldest" : "none");
}

int settings_set_verbosity(struct settings *s, const char *value, struct text *why)
{
	static const char *const names[] = {"quiet", "normal", "verbose", "debug"};

	for (int i = 0; i < 4; i++) {
		if (strcmp(names[i], value))
			continue;
		s->verbosity = i - 1;
		return 0;
	}
	text_puts(why, "quiet, normal, verbose or debug");
	return -EINVAL;
}

void settings_show_verbosity(const struct settings *s, struct text *out)
{
	text_puts(out, s->verbosity < 0    ? "quiet"
		       : !s->verbosity     ? "normal"
		       : s->verbosity == 1 ? "verbose"
					   : "debug");
}

static const char *const host_keys_names[] = {
	[TRUST_AUTO] = "auto",
	[TRUST_ASK] = "ask",
	[TRUST_ACCEPT_NEW] = "accept-new",
	[TRUST_STRICT] = "strict",
};

int settings_set_host_keys(struct settings *s, const char *value, struct text *why)
{
	for (unsigned i = TRUST_AUTO; i <= TRUST_STRICT; i++) {
		if (strcmp(host_keys_names[i], value))
			continue;
		s->host_keys = (enum trust_policy)i;
		return 0;
	}
	text_puts(why, "auto, ask, accept-new or strict");
	return -EINVAL;
}

void settings_show_host_keys(const struct settings *s, struct text *out)
{
	text_puts(out, host_keys_names[s->host_keys]);
}

static const char *const early_names[] = {
	[PLAN_EARLY_AUTO] = "auto",
	[PLAN_EARLY_ALWAYS] = "always",
	[PLAN_EARLY_NEVER] = "never",
	[PLAN_EARLY_TIMEOUT] = "timeout",
};

int settings_set_early(struct settings *s, const char *value, struct text *why)
{
	for (unsigned i = PLAN_EARLY_AUTO; i <= PLAN_EARLY_TIMEOUT; i++) {
		if (strcmp(early_names[i], value))
			continue;
		s->early = (enum plan_early_mode)i;
		return 0;
	}
	text_puts(why, "auto, always, never or timeout");
	return -EINVAL;
}

void settings_show_early(const struct settings *s, struct text *out)
{
	text_puts(out, early_names[s->early]);
}

int settings_set_host_key(struct settings *s, const char *value, struct text *why)
{
	bool none = !strcmp(value, "none");

	if (!none && (strncmp(value, "SHA256:", 7) || strlen(value) != 7 + 43)) {
		text_puts(why, "a fingerprint (SHA256:... as rftpd logs it), or none");
		return -EINVAL;
	}
	strcpy(s->host_key, none ? "" : value);
	return 0;
}

static void show_or_none(const char *value, const char *none, struct text *out)
{
	text_puts(out, *value ? value : none);
}

void settings_show_host_key(const struct settings *s, struct text *out)
{
	show_or_none(s->host_key, "none", out);
}

static int set_path(char path[PATH_MAX], const char *value, struct text *why)
{
	if (!*value || strlen(value) >= PATH_MAX) {
		text_puts(why, "a file");
		return -EINVAL;
	}
	strcpy(path, value);
	return 0;
}

int settings_set_ca(struct settings *s, const char *value, struct text *why)
{
	if (strcmp(value, "none"))
		return set_path(s->ca, value, why);
	s->ca[0] = '\0';
	return 0;
}

void settings_show_ca(const struct settings *s, struct text *out)
{
	show_or_none(s->ca, "none", out);
}

int settings_set_known_hosts(struct settings *s, const char *value, struct text *why)
{
	if (!is_auto(value))
		return set_path(s->known_hosts, value, why);
	s->known_hosts[0] = '\0';
	return 0;
}

void settings_show_known_hosts(const struct settings *s, struct text *out)
{
	show_or_none(s->known_hosts, "auto", out);
}

int settings_set_user(struct settings *s, const char *value, struct text *why)
{
	if (!strcmp(value, "none"))
		value = "";
	else if (!*value || strlen(value) >= sizeof s->user) {
		text_puts(why, "the name of a user, or none");
		return -EINVAL;
	}
	strcpy(s->user, value);
	return 0;
}

void settings_show_user(const struct settings *s, struct text *out)
{
	show_or_none(s->user, "none", out);
}

int settings_set_ssh(struct settings *s, const char *value, struct text *why)
{
	return set_path(s->ssh, value, why);
}

void settings_show_ssh(const struct settings *s, struct text *out)
{
	text_puts(out, s->ssh);
}

int settings_set_rftpd_path(struct settings *s, const char *value, struct text *why)
{
	return set_path(s->rftpd_path, value, why);
}

void settings_show_rftpd_path(const struct settings *s, struct text *out)
{
	text_puts(out, s->rftpd_path);
}

static int set_path_or_none(char path[PATH_MAX], const char *value, struct text *why)
{
	if (strcmp(value, "none") != 0)
		return set_path(path, value, why);
	*path = '\0';
	return 0;
}

#define PATH_OR_NONE(name)                                                                         \
	int settings_set_##name(struct settings *s, const char *value, struct text *why)           \
	{                                                                                          \
		return set_path_or_none(s->name, value, why);                                      \
	}                                                                                          \
	void settings_show_##name(const struct settings *s, struct text *out)                      \
	{                                                                                          \
		show_or_none(s->name, "none", out);                                                \
	}
PATH_OR_NONE(identity)
PATH_OR_NONE(cert)
PATH_OR_NONE(key)
PATH_OR_NONE(password_file)
PATH_OR_NONE(password_command)

static const char *const link_names[] = {
	[WALK_LINKS_KEEP] = "keep", [WALK_LINKS_FOLLOW] = "follow", [WALK_LINKS_SKIP] = "skip"};

int settings_set_links(struct settings *s, const char *value, struct text *why)
{
	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(link_names[i], value))
			continue;
		s->links = i;
		return 0;
	}
	text_puts(why, "keep, follow or skip");
	return -EINVAL;
}

void settings_show_links(const struct settings *s, struct text *out)
{
	text_puts(out, link_names[s->links]);
}

int settings_set_protect(struct settings *s, const char *value, struct text *why)
{
	for (uint8_t i = 0; message_protect_name(i); i++) {
		if (strcmp(message_protect_name(i), value))
			continue;
		s->protect = i;
		return 0;
	}
	text_puts(why, "clear, safe or private");
	return -EINVAL;
}

void settings_show_protect(const struct settings *s, struct text *out)
{
	text_puts(out, message_protect_name(s->protect));
}

#define SETTINGS_COMPRESS_ON 1u /* the fastest: what more levels save costs far more */

int settings_set_compress(struct settings *s, const char *value, struct text *why)
{
	bool on;
	uint64_t n;

	if (!number_parse(value, 1, MESSAGE_DATA_SQUEEZE_MAX, &n)) {
		s->compress = (unsigned)n;
		return 0;
	}
	if (parse_bool(value, &on, why)) {
		text_clear(why);
		text_puts(why, "on, off, or a level from 1 (fast) to 9 (small)");
		return -EINVAL;
	}
	s->compress = on ? SETTINGS_COMPRESS_ON : 0;
	return 0;
}

void settings_show_compress(const struct settings *s, struct text *out)
{
	if (s->compress)
		text_printf(out, "%u", s->compress);
	else
		text_puts(out, "off");
}

#define BOOLEAN(name)                                                                              \
	int settings_set_##name(struct settings *s, const char *value, struct text *why)           \
	{                                                                                          \
		return parse_bool(value, &s->name, why);                                           \
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

static const char *const compare_names[] = {[COMPARE_MTIME] = "mtime",
	[COMPARE_SIZE] = "size",
	[COMPARE_EXISTS] = "exists",
	[COMPARE_DIGEST] = "digest"};

int settings_set_compare(struct settings *s, const char *value, struct text *why)
{
	for (unsigned i = 0; i < sizeof compare_names / sizeof *compare_names; i++) {
		if (strcmp(compare_names[i], value))
			continue;
		s->compare = i;
		return 0;
	}
	text_puts(why, "mtime, size, exists or digest");
	return -EINVAL;
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
