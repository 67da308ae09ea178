/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_copy_rule: where a daemon may send copies.
 *
 * Input: the text.  Property: what is taken names a network and ports, and allows no other port.
 */
#include "rftpd/copy_rule.h"
#include "tests/fuzz/fuzz.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(0xc0000207)}};
	const struct sockaddr *sa = (const struct sockaddr *)&to;
	char why[256] = "", *text = strndup((const char *)data, size);
	struct copy_rule *r;

	must(text);
	if (copy_rule_parse(text, &r, why, sizeof why)) {
		must(*why);
	} else {
		must(r->network_count && r->network_count <= COPY_RULE_NETWORKS_MAX);
		must(r->first && r->first <= r->last);
		to.sin_port = htons((uint16_t)(r->first - 1));
		must(!copy_rule_allows(r, sa));
		to.sin_port = htons((uint16_t)(r->last + 1));
		must(r->last == UINT16_MAX || !copy_rule_allows(r, sa));
		free(r);
	}
	free(text);
	return 0;
}
