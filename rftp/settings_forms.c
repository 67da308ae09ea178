/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings_forms: see settings_forms.h.
 */
#include "rftp/settings_forms.h"

#include <errno.h>
#include <string.h>

bool settings_is_auto(const char *value)
{
	return !strcmp(value, "auto");
}

int settings_find_word(const char *const *words, size_t count, const char *value, struct text *why)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(words[i], value))
			return (int)i;
	for (size_t i = 0; i < count; i++)
		text_printf(why, "%s%s", !i ? "" : i + 1 < count ? ", " : " or ", words[i]);
	return -EINVAL;
}

int settings_parse_bool(const char *value, bool *out, struct text *why)
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

int settings_set_path(char path[PATH_MAX], const char *value, struct text *why)
{
	if (!*value || strlen(value) >= PATH_MAX) {
		text_puts(why, "a file");
		return -EINVAL;
	}
	strcpy(path, value);
	return 0;
}

int settings_set_path_or_none(char path[PATH_MAX], const char *value, struct text *why)
{
	if (strcmp(value, "none") != 0)
		return settings_set_path(path, value, why);
	*path = '\0';
	return 0;
}

void settings_show_number(uint32_t n, struct text *out)
{
	if (n)
		text_printf(out, "%u", n);
	else
		text_puts(out, "auto");
}

void settings_show_size(uint64_t n, struct text *out)
{
	static const char letters[] = "KMGT";
	int letter = -1;

	for (; n && n % 1024 == 0 && letter < 3; letter++)
		n /= 1024;
	text_printf(out, "%ju%.*s", (uintmax_t)n, letter >= 0, &letters[letter >= 0 ? letter : 0]);
}

void settings_show_or_none(const char *value, const char *none, struct text *out)
{
	text_puts(out, *value ? value : none);
}
