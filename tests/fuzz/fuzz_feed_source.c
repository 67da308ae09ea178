/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_feed_source: NAME=SOURCE, as a feed's devices are given.
 *
 * Input: the word.  Nothing is opened or started.
 */
#include "proto/message.h"
#include "rftp/feed/feed_source.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	char *word = fuzz_string(&in);
	struct feed_source source;
	const char *why;

	if (feed_source_parse(&source, word, &why)) {
		must(why && *why);
	} else {
		size_t len = strlen(source.name);

		must(!strncmp(word, source.name, len) && word[len] == '=');
		must(source.from == word + len + 1 && *source.from);
		must(message_name_ok((struct wire_bytes){(const uint8_t *)source.name, len}));
		must(feed_source_is_command(&source) == (*source.from == '|'));
		feed_source_fini(&source);
	}
	free(word);
	return 0;
}
