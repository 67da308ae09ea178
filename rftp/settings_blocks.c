/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings_blocks: settings of rftp/settings_values that say how the bytes of files cross.
 */
#include "rftp/settings_forms.h"
#include "rftp/settings_values.h"

#include "base/number.h"
#include "engine/engine.h"
#include "fabric/select.h"
#include "proto/transfer.h"

#include <errno.h>
#include <string.h>

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
	if (settings_is_auto(value)) {
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

	if (ops || settings_is_auto(value)) {
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

	if (!settings_is_auto(value) && number_parse(value, 1, MESSAGE_CHANNELS_MAX, &n)) {
		text_printf(why, "auto, or 1 to %u", MESSAGE_CHANNELS_MAX);
		return -EINVAL;
	}
	s->channels = (uint16_t)n;
	return 0;
}

void settings_show_channels(const struct settings *s, struct text *out)
{
	settings_show_number(s->channels, out);
}

int settings_set_block(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (!settings_is_auto(value) && (number_parse_size(value, &n) || n < TRANSFER_BLOCK_MIN ||
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

	if (!settings_is_auto(value) && number_parse(value, 1, TRANSFER_DEPTH_MAX, &n)) {
		text_printf(why, "auto, or 1 to %u blocks", TRANSFER_DEPTH_MAX);
		return -EINVAL;
	}
	s->depth = (uint32_t)n;
	return 0;
}

void settings_show_depth(const struct settings *s, struct text *out)
{
	settings_show_number(s->depth, out);
}

int settings_set_direct(struct settings *s, const char *value, struct text *why)
{
	bool on;

	if (settings_is_auto(value)) {
		s->direct = END_DIRECT_AUTO;
		return 0;
	}
	if (settings_parse_bool(value, &on, why)) {
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

int settings_set_protect(struct settings *s, const char *value, struct text *why)
{
	const char *names[] = {message_protect_name(MESSAGE_PROTECT_CLEAR),
		message_protect_name(MESSAGE_PROTECT_SAFE),
		message_protect_name(MESSAGE_PROTECT_PRIVATE)};
	int i = settings_find_word(SETTINGS_WORDS(names), value, why);

	if (i < 0)
		return -EINVAL;
	s->protect = (uint8_t)i;
	return 0;
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
	if (settings_parse_bool(value, &on, why)) {
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
	settings_show_size(s->inline_max, out);
}

static const char *const early_names[] = {
	[PLAN_EARLY_AUTO] = "auto",
	[PLAN_EARLY_ALWAYS] = "always",
	[PLAN_EARLY_NEVER] = "never",
	[PLAN_EARLY_TIMEOUT] = "timeout",
};

int settings_set_early(struct settings *s, const char *value, struct text *why)
{
	int i = settings_find_word(SETTINGS_WORDS(early_names), value, why);

	if (i < 0)
		return -EINVAL;
	s->early = (enum plan_early_mode)i;
	return 0;
}

void settings_show_early(const struct settings *s, struct text *out)
{
	text_puts(out, early_names[s->early]);
}
