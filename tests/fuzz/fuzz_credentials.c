/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_credentials: the client's file of passwords.
 *
 * Input: a byte (a user is looked for, or any; another port); the file.  Property: what is found
 * has a user, the one that was looked for; nothing is left of what was not.
 */
#include "rftp/remote/credentials.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct credentials nothing;
	struct fuzz_input in = {data, size};
	uint8_t how = fuzz_byte(&in);
	const char *user = how & 1 ? "alice" : "";
	struct credentials found;
	unsigned line;
	int r = credentials_find(
		(const char *)in.at, in.left, "host", how & 2 ? 7388 : 7387, user, &found, &line);

	must(r == 0 || r == -ENOENT || r == -EINVAL);
	must(line >= 1 && line <= in.left + 1);
	if (r) {
		must(!memcmp(&found, &nothing, sizeof nothing));
		return 0;
	}
	must(*found.user && (!*user || !strcmp(found.user, user)));
	must(memchr(found.password, '\0', sizeof found.password));
	must(!strchr(found.user, '\n') && !strchr(found.password, '\n'));
	return 0;
}
