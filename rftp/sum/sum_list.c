/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/sum/sum_list: see sum_list.h.
 */
#include "rftp/sum/sum_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sum_list_hex(struct text *out, const uint8_t *sum, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		text_printf(out, "%02x", sum[i]);
}

void sum_list_write(struct text *out, const uint8_t *sum, unsigned bytes, const char *name)
{
	const bool escaped = strpbrk(name, "\\\n\r");

	if (escaped)
		text_putc(out, '\\');
	sum_list_hex(out, sum, bytes);
	text_puts(out, "  ");
	for (; *name; name++) {
		if (*name == '\\')
			text_puts(out, "\\\\");
		else if (*name == '\n')
			text_puts(out, "\\n");
		else if (*name == '\r')
			text_puts(out, "\\r");
		else
			text_putc(out, *name);
	}
	text_putc(out, '\n');
}

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* In place.  false: a backslash that means nothing. */
static bool unescape(char *name)
{
	char *to = name;

	for (; *name; name++) {
		if (*name == '\\') {
			name++;
			if (*name != '\\' && *name != 'n' && *name != 'r')
				return false;
			*to++ = (char)(*name == 'n' ? '\n' : *name == 'r' ? '\r' : '\\');
		} else {
			*to++ = *name;
		}
	}
	*to = '\0';
	return true;
}

int sum_list_parse(const char *line, struct sum_list_line *out)
{
	const bool escaped = *line == '\\';

	*out = (struct sum_list_line){0};
	line += escaped;
	while (digit(line[0]) >= 0 && digit(line[1]) >= 0) {
		if (out->bytes == SUM_BYTES_MAX)
			return -EBADMSG;
		out->sum[out->bytes++] = (uint8_t)(digit(line[0]) << 4 | digit(line[1]));
		line += 2;
	}
	if (!out->bytes || line[0] != ' ' || (line[1] != ' ' && line[1] != '*') || !line[2])
		return -EBADMSG;
	out->name = strdup(line + 2);
	if (!out->name)
		return -ENOMEM;
	if (!escaped || unescape(out->name))
		return 0;
	free(out->name);
	out->name = NULL;
	return -EBADMSG;
}
