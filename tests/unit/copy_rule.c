/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/copy_rule.c: where a daemon may send to.
 */
#include "rftpd/copy_rule.h"

#include "base/addr.h"
#include "tests/harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool allows(const char *rule, const char *host, uint16_t port)
{
	struct copy_rule *r = NULL;
	char why[256] = "";
	struct addr to;
	size_t count;
	bool yes;

	if (addr_resolve(host, port, true, &to, 1, &count) ||
		copy_rule_parse(rule, &r, why, sizeof why))
		abort();
	yes = copy_rule_allows(r, (const struct sockaddr *)&to.ss);
	free(r);
	return yes;
}

static void what_it_allows(void)
{
	struct addr to;
	size_t count;

	CHECK(allows("192.0.2.0/24", "192.0.2.255", 7387));
	CHECK(!allows("192.0.2.0/24", "192.0.2.255", 7388));
	CHECK(!allows("192.0.2.0/24", "192.0.3.1", 7387));
	CHECK(allows("192.0.2.1", "192.0.2.1", 7387));
	CHECK(allows("192.0.2.1", "::ffff:192.0.2.1", 7387));
	CHECK(!allows("192.0.2.1", "192.0.2.2", 7387));
	CHECK(allows("10.0.0.0/8,2001:db8::/32", "2001:db8::1", 7387));
	CHECK(allows("10.0.0.0/8,2001:db8::/32 ports=80", "10.1.2.3", 80));
	CHECK(!allows("10.0.0.0/8 ports=80", "10.1.2.3", 7387));
	CHECK(allows("  10.0.0.0/8 \t ports=1-65535", "10.1.2.3", 1));
	CHECK(allows("10.0.0.0/8 ports=1-65535", "10.1.2.3", 65535));
	CHECK(allows("10.0.0.0/8 ports=00007387", "10.1.2.3", 7387));
	CHECK(!allows("10.0.0.0/8 ports=00007387", "10.1.2.3", 738));
	CHECK(!allows("10.0.0.0/8 ports=70-79", "10.1.2.3", 80));
	CHECK(!allows("10.0.0.0/8 ports=70-79", "10.1.2.3", 69));
	CHECK_EQ(addr_resolve("127.0.0.1", 7387, true, &to, 1, &count), 0);
	CHECK(!copy_rule_allows(NULL, (const struct sockaddr *)&to.ss));
}

static void what_it_is_not(void)
{
	static const char *const bad[] = {"", " ", ",", "10.0.0.0/8,", ",10.0.0.0/8",
		"10.0.0.0/8,,10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/33", "host", "no",
		"10.0.0.0/8 ports", "10.0.0.0/8 ports=", "10.0.0.0/8 ports=0",
		"10.0.0.0/8 ports=65536", "10.0.0.0/8 ports=9-8", "10.0.0.0/8 ports=9-",
		"10.0.0.0/8 ports=-9", "10.0.0.0/8 ports=1 ports=2", "10.0.0.0/8 port=1",
		"10.0.0.0/8 ports=1-2-3", "10.0.0.0/8 ports=11111111111111111111",
		"10.0.0.0/8 10.0.0.0/8"};
	char why[256], many[COPY_RULE_NETWORKS_MAX * 10 + 16] = "10.0.0.1";
	struct copy_rule *r;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		*why = '\0';
		CHECK_EQ(copy_rule_parse(bad[i], &r, why, sizeof why), -EINVAL);
		CHECK(!strncmp(why, "copies-to: ", 11));
	}
	for (unsigned i = 1; i < COPY_RULE_NETWORKS_MAX; i++)
		strcat(many, ",10.0.0.1");
	CHECK_EQ(copy_rule_parse(many, &r, why, sizeof why), 0);
	free(r);
	strcat(many, ",10.0.0.1");
	CHECK_EQ(copy_rule_parse(many, &r, why, sizeof why), -EINVAL);
}

HARNESS_MAIN({"networks and ports", what_it_allows}, {"wrong forms", what_it_is_not})
