/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_escape: bytes from elsewhere, for terminals, the shell and JSON.
 *
 * Input: the bytes.  Property: nothing that comes out is obeyed by a terminal; the shell's lexer
 * reads the word back; a JSON string is one, and keeps the bytes.
 */
#include "base/utf8.h"
#include "rftp/shell/lexer.h"
#include "rftp/ui/escape.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_shell(const char *s, size_t n)
{
	struct lexer_command command;
	struct text out = {0};
	const char *at, *why;

	text_puts(&out, "x ");
	escape_shell(&out, s, n);
	must(escape_printable(text_str(&out), out.len));
	at = text_str(&out);
	must(lexer_next(&at, &command, &why) == 1);
	must(command.count == 2 && !strcmp(command.words[1].text, s));
	lexer_command_fini(&command);
	escape_columns(text_str(&out), out.len);
	text_fini(&out);
}

static unsigned hex(const char *s)
{
	char digits[5] = {s[0], s[1], s[2], s[3], '\0'}, *end;
	unsigned value = (unsigned)strtoul(digits, &end, 16);

	must(end == digits + 4);
	return value;
}

/* One character of a JSON string at *p, as the bytes that it was. */
static void json_char(const char **p, const char *end, struct text *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;
	uint32_t decoded;
	unsigned code;

	if (**p != '\\') {
		size_t bytes = utf8_decode(*p, (size_t)(end - *p), &decoded);

		must(bytes && (uint8_t) * *p >= 0x20 && **p != '"');
		text_add(out, *p, bytes);
		*p += bytes;
		return;
	}
	must(end - *p >= 2);
	found = strchr(from, (*p)[1]);
	if (found && *found) {
		text_putc(out, to[found - from]);
		*p += 2;
		return;
	}
	must((*p)[1] == 'u' && end - *p >= 6);
	code = hex(*p + 2);
	*p += 6;
	if (code < 0x80) {
		text_putc(out, (char)code);
	} else if (code < 0xa0) { /* a control character of two bytes */
		text_putc(out, (char)(0xc0 | code >> 6));
		text_putc(out, (char)(0x80 | (code & 0x3f)));
	} else if (code == 0x2028 || code == 0x2029) { /* ends of lines to JavaScript */
		text_putc(out, (char)0xe2);
		text_putc(out, (char)0x80);
		text_putc(out, (char)(0x80 | (code & 0x3f)));
	} else {
		must(code >= 0xdc80 && code <= 0xdcff);
		text_putc(out, (char)(code & 0xff));
	}
}

static void fuzz_json(const char *s, size_t n)
{
	struct text out = {0}, back = {0};
	const char *p, *end;

	escape_json(&out, s, n);
	p = text_str(&out);
	end = p + out.len;
	must(out.len >= 2 && *p == '"' && end[-1] == '"');
	for (p++, end--; p < end;)
		json_char(&p, end, &back);
	must(back.len == n && !memcmp(text_str(&back), s, n));
	text_fini(&out);
	text_fini(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	char *s = fuzz_string(&in);
	struct text out = {0};
	uint32_t code;

	escape_display(&out, (const char *)data, size);
	must(escape_printable(text_str(&out), out.len));
	must(escape_columns(text_str(&out), out.len) <= out.len * 2);
	text_fini(&out);
	if (size)
		must(utf8_decode((const char *)data, size, &code) <= 4);
	fuzz_json((const char *)data, size);
	fuzz_shell(s, strlen(s));
	free(s);
	return 0;
}
