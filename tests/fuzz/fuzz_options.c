/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_options: the command line parser, and what reads the words behind it: URLs and shell lines.
 *
 * Input: the words of argv, each ended by a NUL (the last may lack it).  What would name a device
 * is left out: a file of rules is read, and what that one says, or when, is not the input.
 */
#include "rftp/shell/lexer.h"
#include "rftp/options.h"
#include "rftp/remote/url.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define WORDS_MAX 64

static void fuzz_url(const char *text)
{
	struct url url;
	const char *why;

	if (url_parse(text, &url, &why)) {
		must(*why);
		return;
	}
	must(url.path[0] == '/' && url.pattern[0] == '/' && url.host[0] && (url.port || url.ssh));
	url_fini(&url);
}

static void fuzz_line(const char *text)
{
	struct lexer_partial partial;
	struct lexer_command command;
	const char *why;
	int r;

	must(!lexer_partial(text, strlen(text), &partial));
	must(partial.start <= strlen(text));
	lexer_partial_fini(&partial);
	while ((r = lexer_next(&text, &command, &why)) == 1) {
		must(command.count || command.shell);
		lexer_command_fini(&command);
	}
	must(!r || *why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words = malloc(size + 1), *argv[WORDS_MAX + 2] = {(char *)"rftp"};
	struct options options;
	struct text why = {0};
	int argc = 1, err;

	must(words);
	if (memmem(data, size, "/dev", 4) || memmem(data, size, "/proc", 5)) {
		free(words);
		return 0;
	}
	memcpy(words, data, size);
	words[size] = '\0';
	for (size_t at = 0; at < size && argc <= WORDS_MAX; at += strlen(words + at) + 1)
		argv[argc++] = words + at;

	err = options_parse(argc, argv, &options, &why);
	must(!err == !why.len); /* a refusal says why */
	if (!err && options.action <= OPTIONS_COPY) {
		must(options.count >= 0 && options.count < argc);
		for (int i = 0; i < options.count; i++)
			fuzz_url(options.names[i]);
		if (options.commands)
			fuzz_line(options.commands);
	}
	text_fini(&why);
	free(words);
	return 0;
}
