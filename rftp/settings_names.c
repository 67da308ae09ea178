/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings_names: settings of rftp/settings_values that say which files, and where in them.
 */
#include "rftp/settings_values.h"

#include "base/number.h"
#include "proto/transfer.h"

#include <errno.h>
#include <string.h>

int settings_set_offset(struct settings *s, const char *value, struct text *why)
{
	uint64_t bytes = 0;

	if (strcmp(value, "none") != 0 && strcmp(value, "end") != 0 &&
		(number_parse_size(value, &bytes) || bytes > TRANSFER_SIZE_MAX)) {
		text_puts(why, "none, end, or a number of bytes");
		return -EINVAL;
	}
	s->in_place = strcmp(value, "none") != 0;
	s->offset = strcmp(value, "end") != 0 ? bytes : MESSAGE_UNKNOWN;
	return 0;
}

void settings_show_offset(const struct settings *s, struct text *out)
{
	if (!s->in_place)
		text_puts(out, "none");
	else if (s->offset == MESSAGE_UNKNOWN)
		text_puts(out, "end");
	else
		text_printf(out, "%ju", (uintmax_t)s->offset);
}

int settings_set_files_from(struct settings *s, const char *value, struct text *why)
{
	if (!*value || strlen(value) >= sizeof s->files_from) {
		text_puts(why, "none, or the name of a file");
		return -EINVAL;
	}
	strcpy(s->files_from, strcmp(value, "none") != 0 ? value : "");
	return 0;
}

void settings_show_files_from(const struct settings *s, struct text *out)
{
	text_puts(out, s->files_from[0] ? s->files_from : "none");
}
