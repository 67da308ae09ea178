/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_export_rule: a line of the configuration that names an export.
 *
 * Input: the text.  Property: what is taken has a directory; a user who is not listed, where a list
 * is, may do nothing; nobody may do what the line does not say.
 */
#include "rftpd/export_rule.h"
#include "tests/fuzz/fuzz.h"
#include "tree/place.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* Whether everybody is listed: the text may write the word with backslashes in it. */
static bool lists_everybody(const struct export_rule *e)
{
	for (unsigned i = 0; i < e->user_count; i++)
		if (!strcmp(e->users[i], EXPORT_RULE_USERS))
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(0xc0000207)}};
	const struct sockaddr *sa = (const struct sockaddr *)&from;
	char why[256], *text = strndup((const char *)data, size);
	struct export_rule *e;

	must(text);
	if (export_rule_parse(text, &e, why, sizeof why)) {
		must(*why);
	} else {
		must(*e->directory && !strcmp(e->text, text));
		must(e->user_count <= EXPORT_RULE_LIST_MAX &&
			e->network_count <= EXPORT_RULE_LIST_MAX);
		must(!(export_rule_rights(e, "a", sa, false) & ~e->rights));
		must(!(export_rule_rights(e, NULL, sa, true) & ~e->rights));
		must(!(export_rule_rights(e, NULL, sa, false) & ~PLACE_READ_ONLY) || e->user_count);
		must(!e->user_count || !export_rule_rights(e, "\n", sa, false) ||
			lists_everybody(e));
		export_rule_free(e);
	}
	free(text);
	return 0;
}
