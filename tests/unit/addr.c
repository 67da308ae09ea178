/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/addr: base/addr.  Asks no name server.
 */
#include "base/addr.h"
#include "tests/harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

static struct sockaddr *sa_of(struct addr *a)
{
	return (struct sockaddr *)&a->ss;
}

static bool numeric(const char *text, uint16_t port, struct addr *out)
{
	size_t count;

	return addr_resolve(text, port, true, out, 1, &count) == 0 && count == 1;
}

static void splits_every_form(void)
{
	static const struct {
		const char *text, *host;
		int port; /* -1: absent */
	} rows[] = {
		{"host", "host", -1},
		{"host:80", "host", 80},
		{"127.0.0.1:0", "127.0.0.1", 0},
		{"127.0.0.1:65535", "127.0.0.1", 65535},
		{"[::1]", "::1", -1},
		{"[::1]:7387", "::1", 7387},
		{"[fe80::1%eth0]:1", "fe80::1%eth0", 1},
		{"[::ffff:127.0.0.1]:2", "::ffff:127.0.0.1", 2},
		{":9", "", 9},
		{"h:00080", "h", 80},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char host[64];
		uint16_t port = 1;

		printf("# %s\n", rows[i].text);
		CHECK_EQ(addr_split(rows[i].text, host, sizeof host, 4242, &port), 0);
		CHECK(!strcmp(host, rows[i].host));
		CHECK_EQ(port, rows[i].port < 0 ? 4242 : rows[i].port);
	}
}

static void refuses_what_is_no_address(void)
{
	static const char *const bad[] = {"", ":", "h:", "h:x", "h:1x", "h: 1", "h:-1", "h:+1",
		"h:65536", "h:99999999999999999999", "h:1:2", "::1", "fe80::1:80", "[::1", "[::1]x",
		"[::1]:", "[::1]:x", "[]", "[]:1", "[host]:1", "[127.0.0.1]:1", "[::1%]",
		"[::1]]:1", "[[::1]]"};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char host[64];
		uint16_t port;

		printf("# %s\n", bad[i]);
		CHECK_EQ(addr_split(bad[i], host, sizeof host, 1, &port), -EINVAL);
	}
}

static void a_host_that_does_not_fit_is_refused(void)
{
	char host[4];
	uint16_t port;

	CHECK_EQ(addr_split("abc:1", host, sizeof host, 1, &port), 0);
	CHECK_EQ(addr_split("abcd:1", host, sizeof host, 1, &port), -ENAMETOOLONG);
	CHECK_EQ(addr_split("[::1]:1", host, sizeof host, 1, &port), 0);
	CHECK_EQ(addr_split("[::12]:1", host, sizeof host, 1, &port), -ENAMETOOLONG);
}

static void resolves_numbers(void)
{
	struct addr a[4];
	size_t count;

	CHECK_EQ(addr_resolve("127.0.0.1", 7387, true, a, 4, &count), 0);
	CHECK_EQ(count, 1);
	CHECK_EQ(a[0].ss.ss_family, AF_INET);
	CHECK_EQ(a[0].len, sizeof(struct sockaddr_in));
	CHECK_EQ(addr_port(sa_of(&a[0])), 7387);
	CHECK_EQ(addr_resolve("::1", 1, true, a, 4, &count), 0);
	CHECK_EQ(count, 1);
	CHECK_EQ(a[0].ss.ss_family, AF_INET6);
	CHECK_EQ(a[0].len, sizeof(struct sockaddr_in6));
	CHECK_EQ(addr_resolve("no-number.invalid", 1, true, a, 4, &count), -EINVAL);
	CHECK_EQ(count, 0);
	CHECK_EQ(addr_resolve("127.0.0.1", 1, false, a, 4, &count), 0);
	CHECK_EQ(count, 1);
}

static void no_host_is_the_wildcard(void)
{
	struct addr a[4];
	size_t count;

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(addr_resolve(i ? "" : NULL, 5, true, a, 4, &count), 0);
		CHECK(count >= 1);
		for (size_t j = 0; j < count; j++) {
			char text[ADDR_TEXT_MAX];

			addr_format(sa_of(&a[j]), text);
			CHECK(!strcmp(text, "0.0.0.0:5") || !strcmp(text, "[::]:5"));
			CHECK(!addr_is_loopback(sa_of(&a[j])));
		}
	}
	CHECK_EQ(addr_resolve(NULL, 5, true, a, 1, &count), 0);
	CHECK_EQ(count, 1);
}

static void formats_what_it_splits(void)
{
	static const char *const texts[] = {
		"127.0.0.1:7387", "[::1]:7387", "255.255.255.255:65535", "[2001:db8::1]:0"};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char host[64], text[ADDR_TEXT_MAX];
		uint16_t port;
		struct addr a;

		CHECK_EQ(addr_split(texts[i], host, sizeof host, 1, &port), 0);
		CHECK(numeric(host, port, &a));
		addr_format(sa_of(&a), text);
		CHECK(!strcmp(text, texts[i]));
	}
}

static void the_longest_and_the_unknown_stay_terminated(void)
{
	struct sockaddr_in6 longest = {
		.sin6_family = AF_INET6, .sin6_port = 0xffff, .sin6_scope_id = UINT32_MAX};
	struct sockaddr_storage unknown = {.ss_family = AF_UNIX};
	char text[ADDR_TEXT_MAX];

	memset(&longest.sin6_addr, 0xff, sizeof longest.sin6_addr);
	addr_format((struct sockaddr *)&longest, text);
	CHECK(!strcmp(text, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535"));
	addr_format((struct sockaddr *)&unknown, text);
	CHECK(*text && memchr(text, '\0', sizeof text));
	CHECK_EQ(addr_port((struct sockaddr *)&unknown), 0);
	CHECK(!addr_is_loopback((struct sockaddr *)&unknown));
}

static void ports_are_set(void)
{
	struct addr a;

	CHECK(numeric("127.0.0.1", 1, &a));
	addr_set_port(sa_of(&a), 60000);
	CHECK_EQ(addr_port(sa_of(&a)), 60000);
	CHECK(numeric("::1", 1, &a));
	addr_set_port(sa_of(&a), 60001);
	CHECK_EQ(addr_port(sa_of(&a)), 60001);
}

static void knows_loopback(void)
{
	static const struct {
		const char *text;
		bool loopback;
	} rows[] = {{"127.0.0.1", true}, {"127.255.255.254", true}, {"::1", true},
		{"::ffff:127.0.0.1", true}, {"::ffff:127.1.2.3", true}, {"126.255.255.255", false},
		{"128.0.0.1", false}, {"0.0.0.0", false}, {"10.0.0.127", false}, {"::", false},
		{"::2", false}, {"::127.0.0.1", false}, {"::ffff:128.0.0.1", false},
		{"fe80::1", false}, {"7f00::1", false}};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct addr a;

		printf("# %s\n", rows[i].text);
		CHECK(numeric(rows[i].text, 1, &a));
		CHECK_EQ(addr_is_loopback(sa_of(&a)), rows[i].loopback);
	}
}

static void knows_what_is_local(void)
{
	struct addr a;
	int fd;

	/* whoever has the port */
	CHECK(numeric("127.0.0.1", 0, &a));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(fd, sa_of(&a), a.len) && !listen(fd, 1));
	CHECK(!getsockname(fd, sa_of(&a), &a.len));
	CHECK_EQ(addr_is_local(sa_of(&a)), 0);
	close(fd);
	CHECK(numeric("0.0.0.0", 1, &a));
	CHECK_EQ(addr_is_local(sa_of(&a)), 0);
	CHECK(numeric("192.0.2.1", 1, &a)); /* of no host */
	CHECK_EQ(addr_is_local(sa_of(&a)), -EADDRNOTAVAIL);
}

static void knows_one_host(void)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {{"10.0.0.1", "10.0.0.1", true}, {"10.0.0.1", "10.0.0.2", false},
		{"10.0.0.1", "::ffff:10.0.0.1", true},
		{"::ffff:10.0.0.2", "::ffff:10.0.0.1", false},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false}, {"::1", "127.0.0.1", false},
		{"::1", "::1", true}};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		uint8_t host[ADDR_HOST_BYTES], other[ADDR_HOST_BYTES];
		struct addr a, b;

		printf("# %s %s\n", rows[i].a, rows[i].b);
		CHECK(numeric(rows[i].a, 1, &a) && numeric(rows[i].b, 2, &b));
		CHECK(addr_host(sa_of(&a), host) && addr_host(sa_of(&b), other));
		CHECK_EQ(!memcmp(host, other, sizeof host), rows[i].same);
		CHECK_EQ(addr_host_hash(host, 7) == addr_host_hash(other, 7), rows[i].same);
	}
}

/* Neighbours do not stand on one another's feet, whichever bits are looked at. */
static void hosts_are_spread(void)
{
	unsigned low[1024] = {0}, high[1024] = {0}, most = 0;
	uint8_t host[ADDR_HOST_BYTES] = {[10] = 0xff, 0xff, 10, 1};

	for (unsigned i = 0; i < 4096; i++) {
		uint64_t h;

		host[14] = (uint8_t)(i >> 8);
		host[15] = (uint8_t)i;
		h = addr_host_hash(host, 0x1234);
		low[h % 1024]++;
		high[h >> 54]++;
	}
	for (unsigned i = 0; i < 1024; i++) {
		most = low[i] > most ? low[i] : most;
		most = high[i] > most ? high[i] : most;
	}
	CHECK(most < 24); /* 4 are usual */
}

HARNESS_MAIN({"splits_every_form", splits_every_form},
	{"refuses_what_is_no_address", refuses_what_is_no_address},
	{"a_host_that_does_not_fit_is_refused", a_host_that_does_not_fit_is_refused},
	{"resolves_numbers", resolves_numbers},
	{"no_host_is_the_wildcard", no_host_is_the_wildcard},
	{"formats_what_it_splits", formats_what_it_splits},
	{"the_longest_and_the_unknown_stay_terminated",
		the_longest_and_the_unknown_stay_terminated},
	{"ports_are_set", ports_are_set}, {"knows_loopback", knows_loopback},
	{"knows_what_is_local", knows_what_is_local}, {"knows_one_host", knows_one_host},
	{"hosts_are_spread", hosts_are_spread})
