/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_lexer: lines of the shell, whole and while they are written.
 *
 * Input: the line; for lexer_partial with its NULs, for lexer_next up to the first.  Property: the
 * words of a command, quoted by escape_shell, are read back as they are.
 */
#include "rftp/shell/lexer.h"
#include "rftp/ui/escape.h"
#include "tests/fuzz/fuzz.h"

static void read_back(const struct lexer_command *command)
{
	struct lexer_command again;
	struct text line = {0};
	const char *at, *why;

	text_puts(&line, "x");
	for (size_t i = 0; i < command->count; i++) {
		text_putc(&line, ' ');
		escape_shell(&line, command->words[i].text, strlen(command->words[i].text));
	}
	at = text_str(&line);
	must(lexer_next(&at, &again, &why) == 1);
	must(again.count == command->count + 1 && !again.ignore_error && !again.shell);
	for (size_t i = 0; i < command->count; i++)
		must(!strcmp(again.words[i + 1].text, command->words[i].text));
	lexer_command_fini(&again);
	must(lexer_next(&at, &again, &why) == 0);
	text_fini(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct lexer_partial partial;
	struct lexer_command command;
	char *line;
	const char *at, *why;
	int r;

	must(!lexer_partial((const char *)data, size, &partial));
	must(partial.start <= size);
	must(partial.command.shell || partial.command.count);
	lexer_partial_fini(&partial);

	line = fuzz_string(&in);
	at = line;
	while ((r = lexer_next(&at, &command, &why)) == 1) {
		must(at <= line + strlen(line));
		must(command.count || command.shell);
		read_back(&command);
		lexer_command_fini(&command);
	}
	must(!r || *why);
	free(line);
	return 0;
}
