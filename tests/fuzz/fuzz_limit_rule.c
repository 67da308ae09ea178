/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_limit_rule: a line of the configuration that says how much somebody may have.
 *
 * Input: the text.  Property: what is taken limits something, within what it may be, and who it
 * fits has one key.
 */
#include "rftpd/limit_rule.h"
#include "tests/fuzz/fuzz.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(0xc0000207)}};
	const struct limit_facts facts = {"a", (const struct sockaddr *)&from, "x"};
	char why[LIMIT_WHY_MAX] = "", key[LIMIT_KEY_MAX], again[LIMIT_KEY_MAX];
	char *text = strndup((const char *)data, size);
	struct limit_rule r;
	bool any = false;

	must(text);
	if (limit_rule_parse(text, &r, why)) {
		must(*why);
	} else {
		must(!strcmp(r.text, text) && r.conditions < LIMIT_MASKS);
		for (unsigned i = 0; i < LIMIT_KINDS; i++) {
			const struct limit_rule *found =
				limit_rule_choose(&r, 1, r.conditions, i, &facts);

			any |= r.values[i];
			must(!found || (found == &r && r.values[i]));
			if (!found)
				continue;
			limit_rule_key(found, &facts, key);
			limit_rule_key(found, &facts, again);
			must(*key && !strcmp(key, again));
		}
		must(any);
		limit_rule_fini(&r);
	}
	free(text);
	return 0;
}
