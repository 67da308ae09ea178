/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_acl_names: an access control list's text, as a peer sends it.
 *
 * Input: the text.  Properties: what is taken has numbers alone, which are taken again as they are;
 * libacl, which gets to see it then, makes nothing of it that had a name, or refuses it; and with
 * names in the place of the numbers it is the same list.
 */
#include "tests/fuzz/fuzz.h"
#include "tree/acl_names.h"

#include <ctype.h>
#include <sys/acl.h>

static bool has_no_name(const char *text)
{
	for (bool who = false; *text; text++) {
		if (who && !isdigit((unsigned char)*text) && *text != ':')
			return false;
		if (*text == ':')
			who = !who;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	char *text = fuzz_string(&in), *copy, *names, *back;
	size_t room = 4 * size + 4096;
	acl_t acl;

	copy = malloc(room);
	names = malloc(64 * room); /* a number may be a long name */
	back = malloc(room);
	must(copy && names && back);
	if (!acl_names_get(text, copy, room)) {
		must(has_no_name(copy));
		must(!acl_names_get(copy, back, room) && !strcmp(copy, back));
		acl = acl_from_text(copy);
		if (acl)
			acl_free(acl);
		if (!acl_names_put(copy, names, 64 * room))
			must(!acl_names_get(names, back, room));
	}
	(void)acl_names_get(text, copy, 8); /* no room */
	(void)acl_names_put(text, names, 8);
	free(text);
	free(copy);
	free(names);
	free(back);
	return 0;
}
