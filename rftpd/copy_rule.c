/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/copy_rule: see copy_rule.h.
 */
#include "rftpd/copy_rule.h"

#include "base/addr.h"
#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse_ports(struct copy_rule *r, const char *text, char *why, size_t size)
{
	char first[32] = ""; /* what is longer is none */
	size_t len = strcspn(text, "-");
	uint64_t from = 0, to = 0;

	if (len < sizeof first)
		memcpy(first, text, len);
	if (number_parse(first, 1, UINT16_MAX, &from) ||
		number_parse(text[len] ? text + len + 1 : first, 1, UINT16_MAX, &to) || from > to) {
		snprintf(why, size,
			"copies-to: \"%.60s\" are no ports (such as 7387, or 7000-7999)", text);
		return -EINVAL;
	}
	r->first = (uint16_t)from;
	r->last = (uint16_t)to;
	return 0;
}

static int parse_networks(struct copy_rule *r, const char *text, size_t len, char *why, size_t size)
{
	while (len) {
		const char *comma = memchr(text, ',', len);
		size_t one = comma ? (size_t)(comma - text) : len;

		if (r->network_count == COPY_RULE_NETWORKS_MAX) {
			snprintf(why, size, "copies-to: more than %u networks",
				COPY_RULE_NETWORKS_MAX);
			return -EINVAL;
		}
		if (network_parse(text, one, &r->networks[r->network_count]) ||
			(comma && one + 1 == len)) {
			snprintf(why, size,
				"copies-to: \"%.*s\" is no address or network such as 192.0.2.0/24",
				one < 60 ? (int)one : 60, text);
			return -EINVAL;
		}
		r->network_count++;
		one += comma != NULL;
		text += one;
		len -= one;
	}
	return 0;
}

int copy_rule_parse(const char *text, struct copy_rule **out, char *why, size_t size)
{
	static const char blanks[] = " \t", ports[] = "ports=";
	struct copy_rule *r = calloc(1, sizeof *r);
	size_t len;
	int err;

	if (!r)
		return -ENOMEM;
	r->first = r->last = ADDR_DEFAULT_PORT;
	text += strspn(text, blanks);
	len = strcspn(text, blanks);
	err = parse_networks(r, text, len, why, size);
	text += len;
	text += strspn(text, blanks);
	if (!err && !r->network_count) {
		snprintf(why, size, "copies-to: no network is named");
		err = -EINVAL;
	} else if (!err && *text && !strncmp(text, ports, sizeof ports - 1)) {
		err = parse_ports(r, text + sizeof ports - 1, why, size);
	} else if (!err && *text) {
		snprintf(why, size, "copies-to: \"%.60s\" is not ports=FIRST[-LAST]", text);
		err = -EINVAL;
	}
	if (err) {
		free(r);
		return err;
	}
	*out = r;
	return 0;
}

bool copy_rule_allows(const struct copy_rule *r, const struct sockaddr *sa)
{
	uint16_t port = addr_port(sa);

	if (!r || port < r->first || port > r->last)
		return false;
	for (unsigned i = 0; i < r->network_count; i++)
		if (network_has(&r->networks[i], sa))
			return true;
	return false;
}
