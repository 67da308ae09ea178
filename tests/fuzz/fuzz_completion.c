/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_completion: what Tab offers behind any line, without a server, in an empty directory.
 *
 * Input: the line.  Lines that would look at other directories or users are left out: what is there
 * is not the input.
 */
#include "rftp/shell/completion.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

static struct client client;
static int empty, home; /* directories: libFuzzer reads its corpus from where it was started */

static void start(void)
{
	static char top[] = "/tmp/rftp-fuzz-XXXXXX";
	struct settings defaults;

	must(mkdtemp(top));
	empty = open(top, O_RDONLY | O_DIRECTORY);
	home = open(".", O_RDONLY | O_DIRECTORY);
	must(empty >= 0 && home >= 0 && !rmdir(top));
	settings_init(&defaults);
	must(!client_init(&client, &defaults));
	client.settings.verbosity = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct completions found;
	int err;

	if (!client.cwd)
		start();
	if (memchr(data, '/', size) || memchr(data, '~', size))
		return 0;
	must(!fchdir(empty));
	err = completion_find(&client, (const char *)data, size, &found);
	must(!fchdir(home));
	if (err)
		return 0;
	for (size_t i = 0; i < found.count; i++)
		must(found.names[i] && found.names[i][0] &&
			(!i || strcmp(found.names[i - 1], found.names[i]) < 0));
	completions_fini(&found);
	return 0;
}
