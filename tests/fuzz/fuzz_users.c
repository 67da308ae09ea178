/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_users: the file of users and their hashes.
 *
 * Input: a byte, the length of a user's name; the name; the file.  Property: a hash that is found
 * stands in a line of the user's, and a name that cannot be one has none; a line of the user's that
 * has no hash to give is broken, and said to be.
 */
#include "rftpd/auth/users_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	char user[256], hash[USERS_HASH_MAX], line[256 + USERS_HASH_MAX];
	unsigned number, broken;
	size_t len;
	const uint8_t *name = fuzz_bytes(&in, fuzz_byte(&in), &len);

	memcpy(user, name, len);
	user[len] = '\0';
	number = users_find_in((const char *)in.at, in.left, user, hash);
	broken = users_find_broken((const char *)in.at, in.left);
	must(strlen(hash) < USERS_HASH_MAX);
	must(!number || *hash || (broken && broken <= number));
	if (!*hash)
		return 0;
	must(number && number != broken);
	must(users_name_ok(user));
	len = (size_t)snprintf(line, sizeof line, "%s:%s", user, hash);
	must(memmem(in.at, in.left, line, len));
	must(!strchr(hash, '\n'));
	return 0;
}
