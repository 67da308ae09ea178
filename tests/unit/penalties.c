/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/serve/penalties: when an address is refused, for how long, and who is forgotten. */
#include "rftpd/serve/penalties.h"
#include "base/addr.h"
#include "base/clock.h"
#include "tests/harness.h"

#define S NS_PER_S
#define START (1000 * S)

static struct penalties p;

static const struct sockaddr *sa(const char *text)
{
	static struct addr addr[4];
	static unsigned turn;
	struct addr *a = &addr[turn++ % 4];
	size_t count;

	if (addr_resolve(text, 1, true, a, 1, &count))
		abort();
	return (struct sockaddr *)&a->ss;
}

static void few_are_forgiven(void)
{
	penalties_init(&p, 1);
	CHECK(!penalties_refuses(&p, sa("10.0.0.1"), START));
	CHECK_EQ(penalties_add(&p, sa("10.0.0.1"), PENALTY_SILENT, START), 0);
	CHECK(!penalties_refuses(&p, sa("10.0.0.1"), START));
	/* by the next one the first has been paid */
	CHECK_EQ(penalties_add(&p, sa("10.0.0.1"), PENALTY_SILENT, START + 10 * S), 0);
	CHECK(!penalties_refuses(&p, sa("10.0.0.1"), START + 10 * S));
}

static void many_are_not(void)
{
	penalties_init(&p, 2);
	CHECK_EQ(penalties_add(&p, sa("10.0.0.1"), PENALTY_PROTOCOL, START), 0);
	CHECK_EQ(penalties_add(&p, sa("10.0.0.1"), PENALTY_LOGIN, START), 15);
	CHECK(penalties_refuses(&p, sa("10.0.0.1"), START));
	CHECK(penalties_refuses(&p, sa("::ffff:10.0.0.1"), START));
	CHECK(!penalties_refuses(&p, sa("10.0.0.2"), START));
	/* said once */
	CHECK_EQ(penalties_add(&p, sa("10.0.0.1"), PENALTY_LEFT, START), 0);
	CHECK(penalties_refuses(&p, sa("10.0.0.1"), START + 16 * S - 1));
	CHECK(!penalties_refuses(&p, sa("10.0.0.1"), START + 16 * S));
	/* and it begins anew */
	CHECK_EQ(penalties_add(&p, sa("10.0.0.1"), PENALTY_LEFT, START + 16 * S), 0);
	CHECK(!penalties_refuses(&p, sa("10.0.0.1"), START + 16 * S));
}

static void there_is_a_most(void)
{
	penalties_init(&p, 3);
	for (int i = 0; i < 1000; i++)
		penalties_add(&p, sa("10.0.0.1"), PENALTY_SILENT, START);
	CHECK(penalties_refuses(&p, sa("10.0.0.1"), START + PENALTIES_MOST_S * S - 1));
	CHECK(!penalties_refuses(&p, sa("10.0.0.1"), START + PENALTIES_MOST_S * S));
}

/* What a host chooses itself does not make it another. */
static void a_network_of_ipv6_is_one(void)
{
	penalties_init(&p, 4);
	penalties_add(&p, sa("2001:db8::1"), PENALTY_SILENT, START);
	CHECK_EQ(penalties_add(&p, sa("2001:db8::2"), PENALTY_SILENT, START), 20);
	CHECK(penalties_refuses(&p, sa("2001:db8::3:4:5"), START));
	CHECK(!penalties_refuses(&p, sa("2001:db8:0:1::1"), START));
}

static void refuse_for_long(const char *address)
{
	for (int k = 0; k < 60; k++)
		penalties_add(&p, sa(address), PENALTY_SILENT, START);
}

/* However many addresses there are: who is refused for long stays so against those with little. */
static void a_flood_of_addresses(void)
{
	unsigned kept = 0, remembered = 0;
	char text[32];

	penalties_init(&p, harness_seed());
	for (unsigned i = 0; i < 256; i++) {
		snprintf(text, sizeof text, "10.0.0.%u", i);
		refuse_for_long(text);
	}
	for (unsigned i = 0; i < 65536; i++) {
		snprintf(text, sizeof text, "10.1.%u.%u", i >> 8, i & 255);
		penalties_add(&p, sa(text), PENALTY_SILENT, START);
		penalties_add(&p, sa(text), PENALTY_SILENT, START);
	}
	for (unsigned i = 0; i < 256; i++) {
		snprintf(text, sizeof text, "10.0.0.%u", i);
		kept += penalties_refuses(&p, sa(text), START);
	}
	for (unsigned i = 0; i < 65536; i++) {
		snprintf(text, sizeof text, "10.1.%u.%u", i >> 8, i & 255);
		remembered += penalties_refuses(&p, sa(text), START);
	}
	CHECK(kept > 250); /* more than eight of them in one set are possible, and rare */
	CHECK(remembered > PENALTIES_SETS && remembered <= PENALTIES_SETS * PENALTIES_WAYS);
}

/* Of IPv6 one host may have networks without number: none of them costs memory, nor does it wash
 * off what weighs more. */
static void a_flood_of_networks(void)
{
	unsigned kept = 0, places = 0;
	char text[48];

	penalties_init(&p, harness_seed());
	for (unsigned i = 0; i < 64; i++) {
		snprintf(text, sizeof text, "2001:db8:1:%x::1", i);
		refuse_for_long(text);
	}
	for (unsigned i = 0; i < 200000; i++) {
		snprintf(text, sizeof text, "2001:db8:%x:%x::%x", 2 + (i >> 16), i & 0xffff,
			i & 0xff);
		penalties_add(&p, sa(text), PENALTY_PROTOCOL, START);
	}
	for (unsigned i = 0; i < 64; i++) {
		snprintf(text, sizeof text, "2001:db8:1:%x::2", i);
		kept += penalties_refuses(&p, sa(text), START);
	}
	for (unsigned i = 0; i < PENALTIES_SETS; i++)
		for (unsigned k = 0; k < PENALTIES_WAYS; k++)
			places += p.sources[i][k].until_ns > START;
	printf("# %zu bytes, %u of %u places taken\n", sizeof p, places,
		PENALTIES_SETS * PENALTIES_WAYS);
	CHECK_EQ(kept, 64);
	CHECK(places > PENALTIES_SETS * PENALTIES_WAYS * 9 / 10);
}

HARNESS_MAIN({"few are forgiven", few_are_forgiven}, {"many are not", many_are_not},
	{"there is a most", there_is_a_most},
	{"a network of IPv6 is one", a_network_of_ipv6_is_one},
	{"a flood of addresses", a_flood_of_addresses},
	{"a flood of networks", a_flood_of_networks})
