/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/daemon_values: see daemon_values.h.
 */
#include "rftpd/daemon_values.h"

#include "base/addr.h"
#include "base/number.h"
#include "fabric/select.h"
#include "proto/message.h"
#include "proto/transfer.h"
#include "rftpd/copy_rule.h"
#include "tree/incoming.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLOCK_MULTIPLE 4096u /* of max-block: as proto/transfer.h says of blocks */

/* ---- what may stand there several times ---- */

void daemon_value_clear(struct daemon_settings *s, enum daemon_value_kind kind)
{
	while (kind == KIND_LISTEN && s->listen_count)
		free(s->listen[--s->listen_count]);
	while (kind == KIND_CLASS && s->class_count)
		admission_rule_fini(&s->classes[--s->class_count]);
	while (kind == KIND_LIMIT && s->limit_count)
		limit_rule_fini(&s->limits[--s->limit_count]);
	while (kind == KIND_EXPORT && s->export_count)
		export_rule_free(s->exports[--s->export_count]);
}

bool daemon_value_is_repeated(enum daemon_value_kind kind)
{
	return kind == KIND_LISTEN || kind == KIND_CLASS || kind == KIND_EXPORT ||
	       kind == KIND_LIMIT;
}

/* ---- forms ---- */

static int parse_switch(const char *value, bool *out)
{
	static const char *const words[][2] = {
		{"no", "yes"}, {"off", "on"}, {"false", "true"}, {"0", "1"}};

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		for (unsigned on = 0; on < 2; on++)
			if (!strcasecmp(value, words[i][on])) {
				*out = on;
				return 0;
			}
	return -EINVAL;
}

static int set_number(uint64_t *field, const struct daemon_value *row, const char *value,
	char why[DAEMON_WHY_MAX])
{
	uint64_t n = 0;
	int err = row->kind == KIND_SIZE ? number_parse_size(value, &n)
					 : number_parse(value, 0, UINT64_MAX, &n);

	if (err == -EINVAL) {
		snprintf(why, DAEMON_WHY_MAX, "%s: \"%.60s\" is not a %s", row->name, value,
			row->kind == KIND_SIZE ? "size (such as 4096, 512K, 64M)" : "number");
		return err;
	}
	if (err || n < row->min || n > row->max) {
		snprintf(why, DAEMON_WHY_MAX, "%s: %.60s is outside %llu..%llu", row->name, value,
			(unsigned long long)row->min, (unsigned long long)row->max);
		return -EINVAL;
	}
	if (row->kind == KIND_SIZE && row->max == TRANSFER_BLOCK_MAX && n % BLOCK_MULTIPLE) {
		snprintf(why, DAEMON_WHY_MAX, "%s: %.60s is not a multiple of %u", row->name, value,
			BLOCK_MULTIPLE);
		return -EINVAL;
	}
	*field = n;
	return 0;
}

static int set_text(char **field, const char *value, size_t len)
{
	char *copy = strndup(value, len);

	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

static int set_listen(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	char host[256], alone[sizeof "127.0.0.1:65535"];
	uint16_t port;

	if (*value && !value[strspn(value, "0123456789")]) { /* as a host it would be 0.0.28.219 */
		uint64_t n = 0;

		if (number_parse(value, 0, UINT16_MAX, &n)) {
			snprintf(why, DAEMON_WHY_MAX, "listen: %.60s is no port (0 to 65535)",
				value);
			return -EINVAL;
		}
		snprintf(alone, sizeof alone, "127.0.0.1:%u", (unsigned)n);
		value = alone;
	}
	if (addr_split(value, host, sizeof host, ADDR_DEFAULT_PORT, &port)) {
		snprintf(why, DAEMON_WHY_MAX,
			"listen: \"%.100s\" is not ADDR:PORT (an IPv6 address stands in brackets: "
			"[::1]:7387)",
			value);
		return -EINVAL;
	}
	if (s->listen_count == DAEMON_LISTEN_MAX) {
		snprintf(why, DAEMON_WHY_MAX, "listen: more than %u addresses", DAEMON_LISTEN_MAX);
		return -ENOSPC;
	}
	s->listen[s->listen_count] = strdup(value);
	if (!s->listen[s->listen_count])
		return -ENOMEM;
	s->listen_count++;
	return 0;
}

static int set_rate(uint64_t *field, const struct daemon_value *row, const char *value,
	char why[DAEMON_WHY_MAX])
{
	uint64_t n = 0;

	if (number_parse_rate(value, &n) || n < row->min || n > row->max) {
		snprintf(why, DAEMON_WHY_MAX,
			"%s: \"%.60s\" is no rate: bytes a second (such as 500K, 125M, 2.5G), at "
			"least %llu",
			row->name, value, (unsigned long long)row->min);
		return -EINVAL;
	}
	*field = n;
	return 0;
}

static int set_turn(uint64_t *field, const struct daemon_value *row, const char *value,
	char why[DAEMON_WHY_MAX])
{
	uint64_t n = 0;

	if (!strcmp(value, "none")) {
		*field = ADMISSION_ENDLESS;
		return 0;
	}
	if (number_parse_rate(value, &n) || n < row->min || n > row->max) {
		snprintf(why, DAEMON_WHY_MAX,
			"%s: \"%.60s\" is neither none nor a size from %llu on", row->name, value,
			(unsigned long long)row->min);
		return -EINVAL;
	}
	*field = n;
	return 0;
}

/* Several rules may lead to one class, which has one rank. */
static int set_class(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	struct admission_rule *rule;
	int err;

	if (!s->classes)
		s->classes = calloc(ADMISSION_RULES_MAX, sizeof *s->classes);
	if (!s->classes)
		return -ENOMEM;
	if (s->class_count == ADMISSION_RULES_MAX) {
		snprintf(why, DAEMON_WHY_MAX, "class: more than %u", ADMISSION_RULES_MAX);
		return -ENOSPC;
	}
	rule = &s->classes[s->class_count];
	err = admission_rule_parse(value, rule, why);
	if (err)
		return err;
	for (unsigned i = 0; i < s->class_count; i++)
		if (!strcmp(s->classes[i].name, rule->name) && s->classes[i].rank != rule->rank) {
			snprintf(why, DAEMON_WHY_MAX, "class %s: has two ranks, %u and %u",
				rule->name, s->classes[i].rank, rule->rank);
			admission_rule_fini(rule);
			return -EINVAL;
		}
	s->class_count++;
	return 0;
}

static int set_limit(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	int err;

	if (!s->limits)
		s->limits = calloc(LIMIT_RULES_MAX, sizeof *s->limits);
	if (!s->limits)
		return -ENOMEM;
	if (s->limit_count == LIMIT_RULES_MAX) {
		snprintf(why, DAEMON_WHY_MAX, "limit: more than %u", LIMIT_RULES_MAX);
		return -ENOSPC;
	}
	err = limit_rule_parse(value, &s->limits[s->limit_count], why);
	if (!err)
		s->limit_count++;
	return err;
}

static int set_export(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	struct export_rule *rule;
	int err;

	if (s->export_count == DAEMON_EXPORTS_MAX) {
		snprintf(why, DAEMON_WHY_MAX, "export: more than %u", DAEMON_EXPORTS_MAX);
		return -ENOSPC;
	}
	err = export_rule_parse(value, &rule, why, DAEMON_WHY_MAX);
	if (err)
		return err;
	/* nobody means to lose an export */
	if (s->export_count && (!rule->name || !s->exports[0]->name)) {
		snprintf(why, DAEMON_WHY_MAX,
			"export is given twice: of several each has a name (NAME DIR)");
		export_rule_free(rule);
		return -EEXIST;
	}
	s->exports[s->export_count++] = rule;
	return 0;
}

static bool fabric_known(const char *name, size_t len)
{
	const char *known;

	for (unsigned i = 0; (known = select_name(i)); i++)
		if (strlen(known) == len && !strncmp(known, name, len))
			return true;
	return false;
}

static int set_fabric(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	const char *at = value;

	for (bool automatic = !strcmp(value, "auto"); !automatic; at++) {
		size_t len = strcspn(at, ",");

		if (!fabric_known(at, len)) {
			int n = snprintf(why, DAEMON_WHY_MAX, "fabric: \"%.*s\" is none of auto",
				len < 60 ? (int)len : 60, at);
			const char *name;

			for (unsigned i = 0; (name = select_name(i)) && n < (int)DAEMON_WHY_MAX;
				i++)
				n += snprintf(why + n, DAEMON_WHY_MAX - (size_t)n, ", %s", name);
			return -EINVAL;
		}
		at += len;
		if (!*at)
			break;
	}
	return set_text(&s->fabric, value, strlen(value));
}

/* Which of the words that a setting may be, or -EINVAL. */
static int find_word(const char *setting, const char *const *words, unsigned count,
	const char *value, char why[DAEMON_WHY_MAX])
{
	int n = snprintf(why, DAEMON_WHY_MAX, "%s: \"%.60s\" is none of ", setting, value);

	for (unsigned i = 0; i < count; i++) {
		if (!strcmp(value, words[i]))
			return (int)i;
		n += snprintf(why + n, DAEMON_WHY_MAX - (size_t)n, "%s%s", i ? ", " : "", words[i]);
	}
	return -EINVAL;
}

#define WORDS(names) names, sizeof(names) / sizeof *(names)

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

static int set_level(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	int i = find_word("log-level", WORDS(level_names), value, why);

	if (i < 0)
		return i;
	s->log_level = (enum log_level)i;
	return 0;
}

static int set_protect(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	const char *names[] = {message_protect_name(MESSAGE_PROTECT_CLEAR),
		message_protect_name(MESSAGE_PROTECT_SAFE),
		message_protect_name(MESSAGE_PROTECT_PRIVATE)};
	int i = find_word("protect", WORDS(names), value, why);

	if (i < 0)
		return i;
	s->protect = (uint8_t)i;
	return 0;
}

/* As sshd's MaxStartups: "N" is all or nothing. */
static int set_startups(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	uint32_t *out[] = {&s->startups.begin, &s->startups.percent, &s->startups.full};
	uint64_t n[3] = {0, 100, 0};
	const char *at = value;
	unsigned count = 0;

	while (count < 3 && *at) {
		size_t len = strcspn(at, ":");
		char one[32] = ""; /* what is longer is none */

		if (len < sizeof one)
			memcpy(one, at, len);
		if (number_parse(one, 1, count == 1 ? 100 : 1000000, &n[count]))
			break;
		count++;
		at += len;
		at += *at == ':' && at[1];
	}
	if (count == 1)
		n[2] = n[0];
	if (*at || (count != 1 && count != 3) || n[0] > n[2]) {
		snprintf(why, DAEMON_WHY_MAX,
			"max-startups: \"%.60s\" is neither N nor N:PERCENT:FULL (such as "
			"512:30:1024)",
			value);
		return -EINVAL;
	}
	for (unsigned i = 0; i < 3; i++)
		*out[i] = (uint32_t)n[i];
	return 0;
}

static int set_penalties(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	static const char *const names[] = {
		[DAEMON_PENALTIES_NO] = "no",
		[DAEMON_PENALTIES_REMOTE] = "remote",
		[DAEMON_PENALTIES_ALL] = "all",
	};
	int i = find_word("penalties", WORDS(names), value, why);

	if (i < 0)
		return i;
	s->penalties = (enum daemon_penalties)i;
	return 0;
}

static int set_anonymous(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	bool on;

	if (!strcmp(value, "auto")) {
		s->anonymous = DAEMON_ANONYMOUS_AUTO;
		return 0;
	}
	if (!parse_switch(value, &on)) {
		s->anonymous = on ? DAEMON_ANONYMOUS_YES : DAEMON_ANONYMOUS_NO;
		return 0;
	}
	snprintf(why, DAEMON_WHY_MAX, "anonymous: \"%.60s\" is none of auto, yes, no", value);
	return -EINVAL;
}

static int set_fsync(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	static const char *const names[] = {[INCOMING_FSYNC_NEVER] = "never",
		[INCOMING_FSYNC_END] = "end",
		[INCOMING_FSYNC_FILE] = "file"};
	int i = find_word("fsync", WORDS(names), value, why);

	if (i < 0)
		return i;
	s->fsync = (uint8_t)i;
	return 0;
}

static int set_copies(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	struct copy_rule *rule;
	int err = copy_rule_parse(value, &rule, why, DAEMON_WHY_MAX);

	if (err)
		return err;
	free(s->copies_to);
	s->copies_to = rule;
	return 0;
}

int daemon_value_set(struct daemon_settings *s, const struct daemon_value *row, const char *value,
	char why[DAEMON_WHY_MAX])
{
	void *field = (char *)s + row->offset;

	switch (row->kind) {
	case KIND_SWITCH:
		if (!parse_switch(value, field))
			return 0;
		snprintf(why, DAEMON_WHY_MAX, "%s: \"%.60s\" is neither yes nor no", row->name,
			value);
		return -EINVAL;
	case KIND_NUMBER:
	case KIND_SIZE:
		return set_number(field, row, value, why);
	case KIND_PATH:
		if (*value)
			return set_text(field, value, strlen(value));
		snprintf(why, DAEMON_WHY_MAX, "%s: no file is named", row->name);
		return -EINVAL;
	case KIND_LISTEN:
		return set_listen(s, value, why);
	case KIND_EXPORT:
		return set_export(s, value, why);
	case KIND_FABRIC:
		return set_fabric(s, value, why);
	case KIND_PROTECT:
		return set_protect(s, value, why);
	case KIND_STARTUPS:
		return set_startups(s, value, why);
	case KIND_PENALTIES:
		return set_penalties(s, value, why);
	case KIND_RATE:
		return set_rate(field, row, value, why);
	case KIND_TURN:
		return set_turn(field, row, value, why);
	case KIND_CLASS:
		return set_class(s, value, why);
	case KIND_LIMIT:
		return set_limit(s, value, why);
	case KIND_ANONYMOUS:
		return set_anonymous(s, value, why);
	case KIND_FSYNC:
		return set_fsync(s, value, why);
	case KIND_COPIES:
		return set_copies(s, value, why);
	default:
		return set_level(s, value, why);
	}
}

/* ---- shown ---- */

bool daemon_value_is_limit(enum daemon_value_kind kind)
{
	return kind == KIND_NUMBER || kind == KIND_SIZE || kind == KIND_LEVEL ||
	       kind == KIND_RATE || kind == KIND_TURN;
}

void daemon_value_reset(struct daemon_settings *s, const struct daemon_value *row)
{
	char why[DAEMON_WHY_MAX];

	if (row->kind != KIND_LEVEL)
		*(uint64_t *)(void *)((char *)s + row->offset) = 0;
	/* of a rate and where it depends the default is said in words, which are no value */
	if (row->kind != KIND_RATE)
		(void)daemon_value_set(s, row, row->standard, why);
}

void daemon_value_show(
	const struct daemon_settings *s, const struct daemon_value *row, char *out, size_t size)
{
	static const char letters[] = "KMGT";
	uint64_t n;
	int letter = -1;

	if (row->kind == KIND_LEVEL) {
		snprintf(out, size, "%s", level_names[s->log_level]);
		return;
	}
	n = *(const uint64_t *)(const void *)((const char *)s + row->offset);
	if (row->kind == KIND_TURN && n == ADMISSION_ENDLESS) {
		snprintf(out, size, "none");
		return;
	}
	if (!n && row->min) { /* not given: it depends */
		snprintf(out, size, "default");
		return;
	}
	for (; row->kind != KIND_NUMBER && n && n % 1024 == 0 && letter < 3; letter++)
		n /= 1024;
	snprintf(out, size, "%llu%.*s", (unsigned long long)n, letter >= 0,
		&letters[letter >= 0 ? letter : 0]);
}
