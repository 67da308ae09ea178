/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/escape.c: owns nothing.
 */
#include "rftp/ui/escape.h"

#include "base/utf8.h"

#include <string.h>
#include <wchar.h>

bool escape_printable(const char *s, size_t n)
{
	uint32_t code;
	size_t bytes;

	for (size_t i = 0; i < n; i += bytes) {
		bytes = utf8_decode(s + i, n - i, &code);
		if (!bytes || utf8_is_control(code))
			return false;
	}
	return true;
}

static void escape_byte(struct text *out, unsigned char c)
{
	switch (c) {
	case '\n':
		text_puts(out, "\\n");
		break;
	case '\r':
		text_puts(out, "\\r");
		break;
	case '\t':
		text_puts(out, "\\t");
		break;
	default:
		text_printf(out, "\\x%02x", c);
	}
}

/* `special`: printable characters that get a backslash. */
static void escape_with(struct text *out, const char *s, size_t n, const char *special)
{
	uint32_t code;
	size_t bytes;

	for (size_t i = 0; i < n; i += bytes) {
		bytes = utf8_decode(s + i, n - i, &code);
		if (!bytes || utf8_is_control(code)) {
			bytes = bytes ? bytes : 1;
			for (size_t k = 0; k < bytes; k++)
				escape_byte(out, (unsigned char)s[i + k]);
			continue;
		}
		if (code < 0x80 && strchr(special, (int)code))
			text_putc(out, '\\');
		text_add(out, s + i, bytes);
	}
}

void escape_display(struct text *out, const char *s, size_t n)
{
	escape_with(out, s, n, "");
}

void escape_dollar(struct text *out, const char *s, size_t n)
{
	escape_with(out, s, n, "\\'");
}

void escape_shell(struct text *out, const char *s, size_t n)
{
	static const char special[] = " \"'\\;&#*?[]$!~";
	bool plain = n > 0 && s[0] != '-';

	if (!escape_printable(s, n) || memchr(s, '\'', n)) {
		text_puts(out, "$'");
		escape_dollar(out, s, n);
		text_putc(out, '\'');
		return;
	}
	for (size_t i = 0; i < n && plain; i++)
		plain = !strchr(special, s[i]);
	if (!plain)
		text_putc(out, '\'');
	text_add(out, s, n);
	if (!plain)
		text_putc(out, '\'');
}

void escape_json(struct text *out, const char *s, size_t n)
{
	uint32_t code;
	size_t bytes;

	text_putc(out, '"');
	for (size_t i = 0; i < n; i += bytes) {
		bytes = utf8_decode(s + i, n - i, &code);
		if (!bytes) {
			text_printf(out, "\\udc%02x", (unsigned char)s[i]);
			bytes = 1;
		} else if (code == '"' || code == '\\') {
			text_putc(out, '\\');
			text_putc(out, (char)code);
		} else if (code == '\n') {
			text_puts(out, "\\n");
		} else if (code == '\t') {
			text_puts(out, "\\t");
		} else if (code == '\r') {
			text_puts(out, "\\r");
		} else if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 ||
			   code == 0x2029) {
			text_printf(out, "\\u%04x", code);
		} else {
			text_add(out, s + i, bytes);
		}
	}
	text_putc(out, '"');
}

size_t escape_columns(const char *s, size_t n)
{
	size_t columns = 0, bytes;
	uint32_t code;

	for (size_t i = 0; i < n; i += bytes) {
		int width = 1;

		bytes = utf8_decode(s + i, n - i, &code);
		if (bytes > 1)
			width = wcwidth((wchar_t)code); /* -1 outside of a UTF-8 locale */
		columns += width < 0 ? 1 : (size_t)width;
		bytes = bytes ? bytes : 1;
	}
	return columns;
}
