/* SPDX-License-Identifier: Apache-2.0 */
/* base/network: what is a network, and which addresses it has. */
#include "tests/harness.h"

#include "base/addr.h"
#include "base/network.h"

#include <errno.h>
#include <string.h>

static int parse(const char *text, struct network *n)
{
	return network_parse(text, strlen(text), n);
}

static bool has(const char *network, const char *address)
{
	struct network n;
	struct addr addr;
	size_t count;

	return !parse(network, &n) && !addr_resolve(address, 7387, true, &addr, 1, &count) &&
	       network_has(&n, (struct sockaddr *)&addr.ss);
}

static void forms(void)
{
	static const char *const right[] = {"192.0.2.0/24", "192.0.2.7", "0.0.0.0/0",
		"192.0.2.7/32", "192.0.2.128/25", "2001:db8::/32", "::/0", "::1", "::1/128",
		"fe80::/10", "::ffff:192.0.2.0/120"};
	static const char *const wrong[] = {"", "/", "/8", "192.0.2", "192.0.2.0/33",
		"192.0.2.0/-1", "192.0.2.0/", "192.0.2.0/24x", "192.0.2.1/24", "192.0.2.128/24",
		"2001:db8::/129", "2001:db8::1/32", "host", "192.0.2.0/24 ", "[::1]", "::1%lo",
		"aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa"};
	struct network n;

	for (size_t i = 0; i < sizeof right / sizeof *right; i++)
		CHECK_EQ(parse(right[i], &n), 0);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		if (!parse(wrong[i], &n))
			printf("# taken: %s\n", wrong[i]);
		CHECK_EQ(parse(wrong[i], &n), -EINVAL);
	}
	CHECK_EQ(network_parse("192.0.2.0/24,more", strlen("192.0.2.0/24"), &n), 0);
}

static void members(void)
{
	CHECK(has("192.0.2.0/24", "192.0.2.0") && has("192.0.2.0/24", "192.0.2.255"));
	CHECK(!has("192.0.2.0/24", "192.0.3.0") && !has("192.0.2.0/24", "192.0.1.255"));
	CHECK(has("192.0.2.128/25", "192.0.2.128") && !has("192.0.2.128/25", "192.0.2.127"));
	CHECK(has("192.0.2.7", "192.0.2.7") && !has("192.0.2.7", "192.0.2.6"));
	CHECK(has("0.0.0.0/0", "203.0.113.9") && !has("0.0.0.0/0", "2001:db8::1"));
	CHECK(has("192.0.2.0/24", "::ffff:192.0.2.9")); /* as a socket for both shows it */
	CHECK(has("2001:db8::/33", "2001:db8:7fff::1") && !has("2001:db8::/33", "2001:db8:8000::"));
	CHECK(has("::/0", "192.0.2.1") && has("::/0", "2001:db8::1"));
	CHECK(has("::1", "::1") && !has("::1", "::2"));
}

HARNESS_MAIN({"forms", forms}, {"members", members})
