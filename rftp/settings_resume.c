/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings_resume: settings of rftp/settings_values that say what is made of failures, and
 * what is done so that there are none.
 */
#include "rftp/settings_forms.h"
#include "rftp/settings_values.h"

#include "base/number.h"

#include <errno.h>
#include <string.h>

#define MS_PER_S 1000u
#define SECONDS_MAX (31u * 86400u) /* fits 32 bits of milliseconds */

static const char *const fsync_names[] = {[SETTINGS_FSYNC_AUTO] = "auto",
	[SETTINGS_FSYNC_FILE] = "file",
	[SETTINGS_FSYNC_END] = "end",
	[SETTINGS_FSYNC_NEVER] = "never"};

static const char *const verify_names[] = {[SETTINGS_VERIFY_WIRE] = "wire",
	[SETTINGS_VERIFY_FILE] = "file",
	[SETTINGS_VERIFY_READBACK] = "readback",
	[SETTINGS_VERIFY_ALL] = "all"};

int settings_set_fsync(struct settings *s, const char *value, struct text *why)
{
	int i = settings_find_word(SETTINGS_WORDS(fsync_names), value, why);

	if (i < 0)
		return -EINVAL;
	s->fsync = (enum settings_fsync)i;
	return 0;
}

void settings_show_fsync(const struct settings *s, struct text *out)
{
	text_puts(out, fsync_names[s->fsync]);
}

int settings_set_verify(struct settings *s, const char *value, struct text *why)
{
	int i = settings_find_word(SETTINGS_WORDS(verify_names), value, why);

	if (i < 0)
		return -EINVAL;
	s->verify = (enum settings_verify)i;
	return 0;
}

void settings_show_verify(const struct settings *s, struct text *out)
{
	text_puts(out, verify_names[s->verify]);
}

static int set_seconds(unsigned *ms, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (strcmp(value, "none") && number_parse(value, 1, SECONDS_MAX, &n)) {
		text_printf(why, "none, or 1 to %u seconds", SECONDS_MAX);
		return -EINVAL;
	}
	*ms = (unsigned)n * MS_PER_S;
	return 0;
}

static void show_seconds(unsigned ms, struct text *out)
{
	if (ms)
		text_printf(out, "%u", ms / MS_PER_S);
	else
		text_puts(out, "none");
}

int settings_set_retry_time(struct settings *s, const char *value, struct text *why)
{
	return set_seconds(&s->retry_time_ms, value, why);
}

void settings_show_retry_time(const struct settings *s, struct text *out)
{
	show_seconds(s->retry_time_ms, out);
}

int settings_set_stall_timeout(struct settings *s, const char *value, struct text *why)
{
	return set_seconds(&s->stall_timeout_ms, value, why);
}

void settings_show_stall_timeout(const struct settings *s, struct text *out)
{
	show_seconds(s->stall_timeout_ms, out);
}

/* A file, or none. */
static int set_file(char path[PATH_MAX], const char *value, struct text *why)
{
	if (!*value || strlen(value) >= PATH_MAX) {
		text_puts(why, "none, or a file");
		return -EINVAL;
	}
	strcpy(path, strcmp(value, "none") ? value : "");
	return 0;
}

int settings_set_failures(struct settings *s, const char *value, struct text *why)
{
	return set_file(s->failures, value, why);
}

void settings_show_failures(const struct settings *s, struct text *out)
{
	text_puts(out, s->failures[0] ? s->failures : "none");
}

int settings_set_retry_from(struct settings *s, const char *value, struct text *why)
{
	int err = set_file(s->retry_from, value, why);

	s->recursive |= !err && s->retry_from[0]; /* directories lead to what is named */
	return err;
}

void settings_show_retry_from(const struct settings *s, struct text *out)
{
	text_puts(out, s->retry_from[0] ? s->retry_from : "none");
}
