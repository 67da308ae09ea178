/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/sum/sum_list: see sum_list.h.
 */
#include "rftp/sum/sum_list.h"

#include "proto/message_sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sum_list_hex(struct text *out, const uint8_t *sum, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		text_printf(out, "%02x", sum[i]);
}

/* What BSD's lines begin with; the first name of each is what is written. */
static const struct sum_tag {
	const char *name;
	uint8_t algorithm;
} sum_tags[] = {{"XXH128", MESSAGE_SUM_XXH128}, {"SHA256", MESSAGE_SUM_SHA256},
	{"CRC32", MESSAGE_SUM_CRC32}, {"MD5", MESSAGE_SUM_MD5}, {"SHA2-256", MESSAGE_SUM_SHA256}};

static const char *tag_of(uint8_t algorithm)
{
	size_t i = 0;

	while (sum_tags[i].algorithm != algorithm)
		i++;
	return sum_tags[i].name;
}

static void write_name(struct text *out, const char *name)
{
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
}

void sum_list_write(struct text *out, const struct sum_list_sum *s, const char *name)
{
	const unsigned bytes = sum_bytes(s->algorithm);

	if (strpbrk(name, "\\\n\r"))
		text_putc(out, '\\');
	if (s->tag) {
		text_printf(out, "%s (", tag_of(s->algorithm));
		write_name(out, name);
		text_puts(out, ") = ");
		sum_list_hex(out, s->sum, bytes);
	} else {
		sum_list_hex(out, s->sum, bytes);
		text_puts(out, "  ");
		write_name(out, name);
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

/* Hexadecimal digits: what is behind them; NULL: they are too many. */
static const char *parse_sum(const char *line, struct sum_list_line *out)
{
	while (digit(line[0]) >= 0 && digit(line[1]) >= 0) {
		if (out->bytes == SUM_BYTES_MAX)
			return NULL;
		out->sum[out->bytes++] = (uint8_t)(digit(line[0]) << 4 | digit(line[1]));
		line += 2;
	}
	return line;
}

/* "SHA256 (", where a blank may be left out, as openssl(1) does: what is behind it; NULL. */
static const char *parse_tag(const char *line, uint8_t *algorithm)
{
	for (size_t i = 0; i < sizeof sum_tags / sizeof *sum_tags; i++) {
		const size_t len = strlen(sum_tags[i].name);
		const char *at = line + len;

		if (strncmp(line, sum_tags[i].name, len) != 0)
			continue;
		at += *at == ' ';
		*algorithm = sum_tags[i].algorithm;
		return *at == '(' ? at + 1 : NULL;
	}
	return NULL;
}

/* The rest of such a line: "name) = sum".  A name may have brackets of its own. */
static int parse_tagged(const char *name, struct sum_list_line *out)
{
	const char *end = strrchr(name, ')'), *at = end ? end + 1 : NULL;

	if (!end || end == name)
		return -EBADMSG;
	at += *at == ' ';
	if (*at++ != '=')
		return -EBADMSG;
	at += *at == ' ';
	at = parse_sum(at, out);
	if (!at || *at || out->bytes != sum_bytes(out->algorithm))
		return -EBADMSG;
	out->name = strndup(name, (size_t)(end - name));
	return out->name ? 0 : -ENOMEM;
}

static int parse_plain(const char *line, struct sum_list_line *out)
{
	line = parse_sum(line, out);
	if (!line || !out->bytes || line[0] != ' ' || (line[1] != ' ' && line[1] != '*') ||
		!line[2])
		return -EBADMSG;
	out->name = strdup(line + 2);
	return out->name ? 0 : -ENOMEM;
}

int sum_list_parse(const char *line, struct sum_list_line *out)
{
	const bool escaped = *line == '\\';
	const char *name;
	int err;

	*out = (struct sum_list_line){0};
	line += escaped;
	name = parse_tag(line, &out->algorithm);
	if (!name)
		out->algorithm = 0;
	err = name ? parse_tagged(name, out) : parse_plain(line, out);
	if (err)
		return err;
	if (!escaped || unescape(out->name))
		return 0;
	free(out->name);
	out->name = NULL;
	return -EBADMSG;
}
