/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/limit_rule: what is read, what is refused, which rule counts, and who shares it. */
#include "rftpd/limit_rule.h"

#include "tests/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static char why[LIMIT_WHY_MAX];

static void right_ones_are_read(void)
{
	struct limit_rule r;

	CHECK(!limit_rule_parse("user=alice address=10.0.0.0/8 export=data sessions=3 memory=64M "
				"open-files=10 rate=1.5M quota=10G files=1000",
		&r, why));
	CHECK_EQ(r.conditions, LIMIT_USER | LIMIT_ADDRESS | LIMIT_EXPORT);
	CHECK(!strcmp(r.user, "alice") && !strcmp(r.export_name, "data"));
	CHECK_EQ(r.values[LIMIT_SESSIONS], 3);
	CHECK_EQ(r.values[LIMIT_MEMORY], 64 << 20);
	CHECK_EQ(r.values[LIMIT_OPEN_FILES], 10);
	CHECK_EQ(r.values[LIMIT_RATE], 3 << 19);
	CHECK_EQ(r.values[LIMIT_QUOTA], UINT64_C(10) << 30);
	CHECK_EQ(r.values[LIMIT_FILES], 1000);
	limit_rule_fini(&r);
	CHECK(!limit_rule_parse("  rate=none\tsessions=1 ", &r, why));
	CHECK_EQ(r.conditions, 0);
	CHECK(r.values[LIMIT_RATE] == LIMIT_NONE);
	limit_rule_fini(&r);
	CHECK(!limit_rule_parse("user=@anonymous address=* export=* open-files=1", &r, why));
	limit_rule_fini(&r);
}

static void wrong_ones_are_refused(void)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{"", "limits nothing"},
		{"user=alice", "limits nothing"},
		{"rate", "none of"},
		{"colour=red", "none of"},
		{"user= rate=1M", "no user"},
		{"user=a/b rate=1M", "no user"},
		{"user=a user=b rate=1M", "twice"},
		{"rate=1M rate=2M", "twice"},
		{"rate=1", "outside"},
		{"rate=fast", "rate"},
		{"memory=1K", "outside"},
		{"sessions=0", "outside"},
		{"sessions=-1", "number"},
		{"open-files=0", "outside"},
		{"address=10.0.0.1/8 rate=1M", "no address"},
		{"address=host rate=1M", "no address"},
		{"export= rate=1M", "no name"},
		{"quota=1G", "of an export"},
		{"user=alice files=10", "of an export"},
		{"export=* quota=0", "outside"},
	};
	struct limit_rule r;

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		*why = '\0';
		CHECK_EQ(limit_rule_parse(wrong[i].text, &r, why), -EINVAL);
		CHECK(strstr(why, wrong[i].says));
	}
}

static struct sockaddr_storage host(const char *text)
{
	struct sockaddr_storage ss = {0};
	struct sockaddr_in *four = (void *)&ss;
	struct sockaddr_in6 *six = (void *)&ss;

	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		ss.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1)
		ss.ss_family = AF_INET6;
	return ss;
}

static uint64_t rate_of(const struct limit_rule *rules, unsigned count, unsigned mask,
	const char *user, const char *address, const char *export_name, char key[LIMIT_KEY_MAX])
{
	struct sockaddr_storage ss = host(address);
	struct limit_facts facts = {user, (const struct sockaddr *)&ss, export_name};
	const struct limit_rule *r = limit_rule_choose(rules, count, mask, LIMIT_RATE, &facts);

	*key = '\0';
	if (!r)
		return 0;
	limit_rule_key(r, &facts, key);
	return r->values[LIMIT_RATE];
}

static void the_first_of_its_kind_counts(void)
{
	static const char *const texts[] = {
		"user=alice sessions=1",
		"user=alice rate=2M",
		"user=* rate=1M",
		"user=@anonymous rate=100K",
		"address=10.0.0.0/8 rate=8M",
		"address=* rate=4M",
		"export=data rate=3M",
		"user=* export=* rate=20K",
		"rate=9M",
	};
	enum { N = sizeof texts / sizeof *texts };
	struct limit_rule rules[N];
	char a[LIMIT_KEY_MAX], b[LIMIT_KEY_MAX];

	for (unsigned i = 0; i < N; i++)
		CHECK(!limit_rule_parse(texts[i], &rules[i], why));
	CHECK_EQ(rate_of(rules, N, LIMIT_USER, "alice", "10.1.1.1", "data", a), 2 << 20);
	/* one who is named shares with nobody else */
	CHECK_EQ(rate_of(rules, N, LIMIT_USER, "bob", "10.1.1.1", "data", a), 1 << 20);
	CHECK_EQ(rate_of(rules, N, LIMIT_USER, "carol", "10.1.1.1", "data", b), 1 << 20);
	CHECK(strcmp(a, b) != 0);
	CHECK_EQ(rate_of(rules, N, LIMIT_USER, "bob", "192.0.2.1", "other", b), 1 << 20);
	CHECK(!strcmp(a, b));
	CHECK_EQ(rate_of(rules, N, LIMIT_USER, NULL, "10.1.1.1", "data", a), 100 << 10);
	/* a network together, hosts each for themselves */
	CHECK_EQ(rate_of(rules, N, LIMIT_ADDRESS, "x", "10.1.1.1", "data", a), 8 << 20);
	CHECK_EQ(rate_of(rules, N, LIMIT_ADDRESS, "y", "10.2.2.2", "data", b), 8 << 20);
	CHECK(!strcmp(a, b));
	CHECK_EQ(rate_of(rules, N, LIMIT_ADDRESS, "x", "192.0.2.1", "data", a), 4 << 20);
	CHECK_EQ(rate_of(rules, N, LIMIT_ADDRESS, "x", "192.0.2.2", "data", b), 4 << 20);
	CHECK(strcmp(a, b) != 0);
	CHECK_EQ(rate_of(rules, N, LIMIT_ADDRESS, "x", "::ffff:192.0.2.2", "data", a), 4 << 20);
	CHECK(!strcmp(a, b));
	CHECK_EQ(rate_of(rules, N, LIMIT_ADDRESS, "x", "2001:db8::1", "data", a), 4 << 20);
	CHECK_EQ(rate_of(rules, N, LIMIT_ADDRESS, "x", "2001:db8::2:0:0:9", "data", b), 4 << 20);
	CHECK(!strcmp(a, b));
	CHECK_EQ(rate_of(rules, N, LIMIT_EXPORT, "x", "10.1.1.1", "data", a), 3 << 20);
	CHECK_EQ(rate_of(rules, N, LIMIT_EXPORT, "x", "10.1.1.1", "other", a), 0);
	CHECK_EQ(rate_of(rules, N, LIMIT_EXPORT, "x", "10.1.1.1", NULL, a), 0);
	CHECK_EQ(rate_of(rules, N, LIMIT_USER | LIMIT_EXPORT, "x", "10.1.1.1", "p", a), 20 << 10);
	CHECK_EQ(rate_of(rules, N, LIMIT_USER | LIMIT_EXPORT, "x", "10.1.1.1", NULL, b), 20 << 10);
	CHECK(strcmp(a, b) != 0);
	CHECK_EQ(rate_of(rules, N, 0, "x", "10.1.1.1", "p", a), 9 << 20);
	CHECK_EQ(rate_of(rules, N, 0, NULL, "::1", NULL, b), 9 << 20);
	CHECK(!strcmp(a, b));
	for (unsigned i = 0; i < N; i++)
		limit_rule_fini(&rules[i]);
}

HARNESS_MAIN({"right_ones_are_read", right_ones_are_read},
	{"wrong_ones_are_refused", wrong_ones_are_refused},
	{"the_first_of_its_kind_counts", the_first_of_its_kind_counts})
