/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/lexer: lines into commands and words; half-written lines for completion; and that what
 * escape writes for the shell is what the lexer reads.
 */
#include "tests/harness.h"

#include "rftp/ui/escape.h"
#include "rftp/shell/lexer.h"

/* All commands of a line as text: words in <>, '-' for ignored errors, '|' between commands; or
 * "!why". */
static const char *lexed(const char *line, bool patterns)
{
	static struct text out;
	struct lexer_command command;
	const char *why;
	int r;

	text_fini(&out);
	while ((r = lexer_next(&line, &command, &why)) == 1) {
		text_puts(&out, out.len ? "|" : "");
		text_puts(&out, command.ignore_error ? "-" : "");
		if (command.shell)
			text_printf(&out, "!%s", command.shell);
		for (size_t i = 0; i < command.count; i++)
			text_printf(&out, "<%s>",
				patterns ? command.words[i].pattern : command.words[i].text);
		lexer_command_fini(&command);
	}
	if (r < 0)
		return *why ? "error" : "error without a reason";
	return text_str(&out);
}

static bool gives(const char *line, const char *wanted)
{
	const char *got = lexed(line, false);

	if (strcmp(got, wanted))
		printf("# %s: %s, expected %s\n", line, got, wanted);
	return !strcmp(got, wanted);
}

static void words(void)
{
	CHECK(gives("", ""));
	CHECK(gives("  \t\r\n ;;; # nothing", ""));
	CHECK(gives("ls", "<ls>"));
	CHECK(gives(" get  a\tb\r\n", "<get><a><b>"));
	CHECK(gives("a;b ; c\nd", "<a>|<b>|<c>|<d>"));
	CHECK(gives("ls # a; b\nlpwd", "<ls>|<lpwd>"));
	CHECK(gives("ls a#b", "<ls><a#b>"));
	CHECK(gives("put ''", "<put><>"));
}

static void quotes(void)
{
	CHECK(gives("a 'b  c;#' \"d'e\"", "<a><b  c;#><d'e>"));
	CHECK(gives("a b'c'\"d\"e", "<a><bcde>"));
	CHECK(gives("a b\\ c\\;\\\\", "<a><b c;\\>"));
	CHECK(gives("a '\\n' \"\\\"\\\\\\n\"", "<a><\\n><\"\\\\n>"));
	CHECK(gives("a $'\\n\\t\\'\\\\\\x41\\101\\xc3\\xa9'", "<a><\n\t'\\AA\xc3\xa9>"));
	CHECK(gives("a $b '$'", "<a><$b><$>"));
}

static void marks(void)
{
	struct lexer_command line;
	const char *at = "put a&b c & ls", *why;

	CHECK_EQ(lexer_next(&at, &line, &why), 1);
	CHECK(line.background && line.count == 3 && !strcmp(line.words[1].text, "a&b"));
	lexer_command_fini(&line);
	CHECK_EQ(lexer_next(&at, &line, &why), 1);
	CHECK(!line.background && line.count == 1);
	lexer_command_fini(&line);
	CHECK(gives("a&", "<a&>"));
	CHECK(gives("a '&' \\& b", "<a><&><&><b>"));
	CHECK(gives("a & b &;c&\n&", "<a>|<b>|<c&>|<&>"));
	CHECK(gives("-rm a; - rm b", "-<rm><a>|-<rm><b>"));
	CHECK(gives("get -r a", "<get><-r><a>"));
	CHECK(gives("!echo 'a; b # c", "!echo 'a; b # c"));
	CHECK(gives("ls; -!false\npwd", "<ls>|-!false|<pwd>"));
	CHECK(gives("ls !x", "<ls><!x>"));
}

static void errors(void)
{
	CHECK(gives("a 'b", "error"));
	CHECK(gives("a \"b", "error"));
	CHECK(gives("a $'b", "error"));
	CHECK(gives("a b\\", "error"));
	CHECK(gives("a $'\\q'", "error"));
	CHECK(gives("a $'\\x'", "error"));
	CHECK(gives("a $'\\0'", "error"));
	CHECK(gives("a $'\\777'", "error"));
	CHECK(gives("-", "error"));
}

static void patterns(void)
{
	CHECK(!strcmp(
		lexed("get *.c '*' \\? \"[\" ~ '~'", true), "<get><*.c><\\*><\\?><\\[><~><\\~>"));
	CHECK(!strcmp(lexed("get 'a\\b' $'*'", true), "<get><a\\\\b><\\*>"));
}

static bool partial(const char *line, size_t count, const char *last, size_t start, char quote)
{
	struct lexer_partial p;
	bool same;

	if (lexer_partial(line, strlen(line), &p))
		return false;
	same = p.command.count == count && p.start == start && p.quote == quote &&
	       !strcmp(p.command.words[count - 1].text, last);
	if (!same)
		printf("# %s: %zu words, last <%s> at %zu, quote %d\n", line, p.command.count,
			p.command.count ? p.command.words[p.command.count - 1].text : "?", p.start,
			p.quote);
	lexer_partial_fini(&p);
	return same;
}

static void half_written(void)
{
	CHECK(partial("", 1, "", 0, 0));
	CHECK(partial("l", 1, "l", 0, 0));
	CHECK(partial("ls ", 2, "", 3, 0));
	CHECK(partial("ls a b", 3, "b", 5, 0));
	CHECK(partial("ls a; get", 1, "get", 6, 0));
	CHECK(partial("ls a;", 1, "", 5, 0));
	CHECK(partial("get 'a b", 2, "a b", 4, '\''));
	CHECK(partial("get \"a\\\"", 2, "a\"", 4, '"'));
	CHECK(partial("get $'a\\n", 2, "a\n", 4, '$'));
	CHECK(partial("get a\\ b", 2, "a b", 4, 0));
	CHECK(partial("get a\\", 2, "a", 4, 0));
	CHECK(partial("-rm x", 2, "x", 4, 0));
}

/* Each of the places in which a NUL may stand: the lexer must get past it. */
static void half_written_with_a_nul(void)
{
	static const char lines[][12] = {"\0", "a\0b", "a \0", "a \0 b", "'\0", "\"\\\0", "$'\\\0",
		"$'\0'", "\\\0", "#\0", "-\0", "!\0x", "a;\0;b"};

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		for (size_t len = 0; len < sizeof lines[i]; len++) {
			struct lexer_partial p;

			CHECK_EQ(lexer_partial(lines[i], len, &p), 0);
			CHECK(p.command.count <= len + 1);
			lexer_partial_fini(&p);
		}
}

/* Any name that escape_shell writes comes back as one word, which matches only itself. */
static void escaped_names_come_back(void)
{
	uint64_t state = harness_seed();

	for (unsigned round = 0; round < 20000; round++) {
		char name[40];
		size_t len = 1 + harness_random(&state) % (sizeof name - 1);
		struct text line = {0};
		struct lexer_command command;
		const char *at, *why;

		for (size_t i = 0; i < len; i++) {
			static const char likely[] = " '\"\\$#;*?[]~-!\n\t\xc3\xa9"
						     "abc";
			uint64_t r = harness_random(&state);

			name[i] = r & 1 ? likely[(r >> 8) % (sizeof likely - 1)]
					: (char)(1 + (r >> 8) % 255);
		}
		text_puts(&line, "get ");
		escape_shell(&line, name, len);
		at = text_str(&line);
		CHECK_EQ(lexer_next(&at, &command, &why), 1);
		CHECK_EQ(command.count, 2);
		CHECK_EQ(strlen(command.words[1].text), len);
		CHECK(!memcmp(command.words[1].text, name, len));
		CHECK(escape_printable(text_str(&line), line.len));
		lexer_command_fini(&command);
		CHECK_EQ(lexer_next(&at, &command, &why), 0);
		text_fini(&line);
	}
}

HARNESS_MAIN({"words", words}, {"quotes", quotes}, {"marks", marks}, {"errors", errors},
	{"patterns", patterns}, {"half_written", half_written},
	{"half_written_with_a_nul", half_written_with_a_nul},
	{"escaped_names_come_back", escaped_names_come_back})
