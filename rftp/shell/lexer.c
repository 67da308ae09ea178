/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/lexer.c: owns the words.  One scanner serves both whole lines and lines that are being
 * written; the latter may end anywhere.
 */
#include "rftp/shell/lexer.h"

#include "rftp/ui/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
	const char *at, *end;
	const char *why;
	struct text text, pattern;
	char quote;   /* that was open at the end of the input */
	bool partial; /* an input that ends anywhere is no error */
};

static bool lexer_more(const struct lexer *lx)
{
	return lx->at < lx->end;
}

/* Unlike strchr alone, not true of a NUL, which a line that is being written may have. */
static bool lexer_is(char c, const char *set)
{
	return c && strchr(set, c);
}

static void lexer_char(struct lexer *lx, char c, bool quoted)
{
	text_putc(&lx->text, c);
	/* '~' is special to glob(3) in front only, but an escape does no harm elsewhere */
	if (c == '\\' || (quoted && lexer_is(c, "*?[]~")))
		text_putc(&lx->pattern, '\\');
	text_putc(&lx->pattern, c);
}

static int lexer_open_quote(struct lexer *lx, char quote, const char *why)
{
	lx->quote = quote;
	if (lx->partial)
		return 0;
	lx->why = why;
	return -EINVAL;
}

static int lexer_single(struct lexer *lx)
{
	for (lx->at++; lexer_more(lx); lx->at++) {
		if (*lx->at == '\'') {
			lx->at++;
			return 0;
		}
		lexer_char(lx, *lx->at, true);
	}
	return lexer_open_quote(lx, '\'', "a ' is not closed");
}

static int lexer_double(struct lexer *lx)
{
	for (lx->at++; lexer_more(lx); lx->at++) {
		if (*lx->at == '"') {
			lx->at++;
			return 0;
		}
		if (*lx->at == '\\' && lx->at + 1 < lx->end && lexer_is(lx->at[1], "\"\\"))
			lx->at++;
		lexer_char(lx, *lx->at, true);
	}
	return lexer_open_quote(lx, '"', "a \" is not closed");
}

/* Up to `max` digits in `base` from lx->at on; how many there were. */
static int lexer_number(struct lexer *lx, int base, int max, unsigned *value)
{
	int n = 0;

	for (*value = 0; n < max && lexer_more(lx); n++, lx->at++) {
		char c = *lx->at;
		int digit = c >= '0' && c <= '9'                     ? c - '0'
			    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
								     : 16;

		if (digit >= base)
			break;
		*value = *value * (unsigned)base + (unsigned)digit;
	}
	return n;
}

/* Behind the backslash of a $'...'. */
static int lexer_escape(struct lexer *lx)
{
	static const char names[] = "abefnrtv\\'\"?";
	static const char codes[] = "\a\b\033\f\n\r\t\v\\'\"?";
	const char *name = lexer_is(*lx->at, names) ? strchr(names, *lx->at) : NULL;
	unsigned value;

	if (name) {
		lx->at++;
		lexer_char(lx, codes[name - names], true);
		return 0;
	}
	if (*lx->at == 'x') {
		lx->at++;
		if (!lexer_number(lx, 16, 2, &value)) {
			lx->why = "\\x is not followed by a hexadecimal digit";
			return lx->partial ? 0 : -EINVAL;
		}
	} else if (!lexer_number(lx, 8, 3, &value)) {
		lx->why = "an unknown \\ escape in $'...'";
		if (!lx->partial)
			return -EINVAL;
		lexer_char(lx, *lx->at++, true);
		return 0;
	}
	if (!value || value > 255) {
		lx->why = "an \\ escape that is no byte of a name";
		return lx->partial ? 0 : -EINVAL;
	}
	lexer_char(lx, (char)value, true);
	return 0;
}

static int lexer_dollar(struct lexer *lx)
{
	int err;

	for (lx->at += 2; lexer_more(lx);) {
		if (*lx->at == '\'') {
			lx->at++;
			return 0;
		}
		if (*lx->at != '\\') {
			lexer_char(lx, *lx->at++, true);
			continue;
		}
		lx->at++;
		if (!lexer_more(lx))
			break;
		err = lexer_escape(lx);
		if (err)
			return err;
	}
	return lexer_open_quote(lx, '$', "a $' is not closed");
}

/* One word into text and pattern; lx->at is at its first byte. */
static int lexer_word(struct lexer *lx)
{
	int err = 0;

	while (!err && lexer_more(lx) && !lexer_is(*lx->at, " \t\r\n;")) {
		switch (*lx->at) {
		case '\'':
			err = lexer_single(lx);
			break;
		case '"':
			err = lexer_double(lx);
			break;
		case '$':
			if (lx->at + 1 < lx->end && lx->at[1] == '\'') {
				err = lexer_dollar(lx);
				break;
			}
			lexer_char(lx, *lx->at++, false);
			break;
		case '\\':
			lx->at++;
			if (!lexer_more(lx)) {
				if (lx->partial)
					break;
				lx->why = "the line ends in a backslash";
				return -EINVAL;
			}
			lexer_char(lx, *lx->at++, true);
			break;
		default:
			lexer_char(lx, *lx->at++, false);
		}
	}
	return err;
}

static int lexer_store(struct lexer *lx, struct lexer_command *out)
{
	struct lexer_word *words = realloc(out->words, (out->count + 1) * sizeof *words);

	if (!words)
		return -ENOMEM;
	out->words = words;
	words[out->count].text = text_take(&lx->text);
	words[out->count].pattern = text_take(&lx->pattern);
	out->count++;
	return words[out->count - 1].text && words[out->count - 1].pattern ? 0 : -ENOMEM;
}

/* Blanks; and comments, which reach to the line's end. */
static void lexer_skip(struct lexer *lx, const char *blanks)
{
	while (lexer_more(lx)) {
		if (*lx->at == '#')
			while (lexer_more(lx) && *lx->at != '\n')
				lx->at++;
		else if (lexer_is(*lx->at, blanks))
			lx->at++;
		else
			break;
	}
}

/* One command.  *start: where its last word begins.  1, 0 or -errno. */
static int lexer_command(struct lexer *lx, struct lexer_command *out, const char **start)
{
	int err = 0;

	lexer_skip(lx, " \t\r\n;");
	*start = lx->at;
	if (!lexer_more(lx))
		return 0;
	if (*lx->at == '-') {
		out->ignore_error = true;
		lx->at++;
		lexer_skip(lx, " \t\r");
		*start = lx->at;
	}
	if (lexer_more(lx) && *lx->at == '!') {
		const char *line = lx->at + 1;

		lx->at = memchr(line, '\n', (size_t)(lx->end - line));
		lx->at = lx->at ? lx->at : lx->end;
		out->shell = strndup(line, (size_t)(lx->at - line));
		return out->shell ? 1 : -ENOMEM;
	}
	while (!err) {
		bool blank;

		*start = lx->at;
		if (!lexer_more(lx) || *lx->at == ';' || *lx->at == '\n')
			break;
		if (out->count && *lx->at == '&' &&
			(lx->at + 1 == lx->end || lexer_is(lx->at[1], " \t\r\n;"))) {
			out->background = true;
			lx->at++;
			break;
		}
		err = lexer_word(lx);
		if (!err)
			err = lexer_store(lx, out);
		if (err)
			break;
		blank = lexer_more(lx) && lexer_is(*lx->at, " \t\r");
		lexer_skip(lx, " \t\r");
		if (!lexer_more(lx) && !blank)
			break; /* the word is still being written */
	}
	return err ? err : out->count > 0 || out->ignore_error;
}

int lexer_next(const char **at, struct lexer_command *out, const char **why)
{
	struct lexer lx = {.at = *at, .end = *at + strlen(*at)};
	const char *start;
	int err;

	*out = (struct lexer_command){0};
	err = lexer_command(&lx, out, &start);
	if (err == 1 && !out->count && !out->shell) {
		lx.why = "no command behind '-'";
		err = -EINVAL;
	}
	if (err < 0) {
		lexer_command_fini(out);
		lx.at = lx.end;
	}
	text_fini(&lx.text);
	text_fini(&lx.pattern);
	*at = lx.at;
	*why = lx.why ? lx.why : "";
	return err;
}

void lexer_command_fini(struct lexer_command *command)
{
	for (size_t i = 0; i < command->count; i++) {
		free(command->words[i].text);
		free(command->words[i].pattern);
	}
	free(command->words);
	free(command->shell);
	*command = (struct lexer_command){0};
}

int lexer_partial(const char *line, size_t len, struct lexer_partial *out)
{
	struct lexer lx = {.at = line, .end = line + len, .partial = true};
	const char *start = line;
	int err;

	*out = (struct lexer_partial){0};
	do {
		lexer_command_fini(&out->command);
		err = lexer_command(&lx, &out->command, &start);
	} while (err == 1 && lexer_more(&lx));
	/* behind a blank, or where nothing stands yet: an empty word */
	if (err >= 0 && !out->command.shell && (start == lx.end || !out->command.count))
		err = lexer_store(&lx, &out->command);
	out->start = (size_t)(start - line);
	out->quote = lx.quote;
	text_fini(&lx.text);
	text_fini(&lx.pattern);
	if (err < 0)
		lexer_partial_fini(out);
	return err < 0 ? err : 0;
}

void lexer_partial_fini(struct lexer_partial *partial)
{
	lexer_command_fini(&partial->command);
	*partial = (struct lexer_partial){0};
}
