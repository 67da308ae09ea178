/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/jobs/admission_rule and the rates and times of base/number: what is read, what is refused,
 * and whose class a transfer gets. */
#include "rftpd/jobs/admission_rule.h"

#include "base/number.h"
#include "tests/harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static char why[256];

static void rates_and_times(void)
{
	static const struct {
		const char *text;
		int err;
		uint64_t value;
	} rates[] =
		{
			{"2.5G", 0, 2684354560},
			{"2.5GB", 0, 2500000000},
			{"125MB", 0, 125000000},
			{"1K", 0, 1024},
			{"7", 0, 7},
			{"1.", -EINVAL, 0},
			{".5", -EINVAL, 0},
			{"-1", -EINVAL, 0},
			{"1.5.5K", -EINVAL, 0},
			{"1X", -EINVAL, 0},
			{"99999999999T", -ERANGE, 0},
			{"", -EINVAL, 0},
		},
	  times[] = {
		  {"100ms", 0, 100000000},
		  {"1.5", 0, 1500000000},
		  {"2s", 0, 2000000000},
		  {"5m", 0, 300000000000},
		  {"366d", 0, NUMBER_TIME_MAX_NS},
		  {"0", 0, 0},
		  {"367d", -ERANGE, 0},
		  {"99999999999999999999h", -ERANGE, 0},
		  {"1.2.3s", -EINVAL, 0},
		  {"5 s", -EINVAL, 0},
		  {"ms", -EINVAL, 0},
		  {"-5s", -EINVAL, 0},
		  {"", -EINVAL, 0},
	  };

	for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++) {
		uint64_t value = 0;

		CHECK_EQ(number_parse_rate(rates[i].text, &value), rates[i].err);
		CHECK_EQ(value, rates[i].value);
	}
	for (unsigned i = 0; i < sizeof times / sizeof *times; i++) {
		uint64_t value = 0;

		CHECK_EQ(number_parse_time(times[i].text, &value), times[i].err);
		CHECK_EQ(value, times[i].value);
	}
}

static void rules_are_read(void)
{
	struct admission_rule r;

	CHECK(!admission_rule_parse(
		"alarm 3 deadline=100ms share=1.5M address=10.1.0.0/16 user=eve "
		"export=data path=/a/b operation=put operation=feed ask=yes",
		&r, why));
	CHECK(!strcmp(r.name, "alarm") && r.rank == 3);
	CHECK_EQ(r.deadline_ns, 100000000);
	CHECK_EQ(r.share, 1572864);
	CHECK_EQ(r.family, AF_INET);
	CHECK_EQ(r.network_bits, 16);
	CHECK(!strcmp(r.user, "eve") && !strcmp(r.export_name, "data") && !strcmp(r.path, "a/b"));
	CHECK_EQ(r.operations, ADMISSION_PUT | ADMISSION_FEED);
	CHECK(r.ask);
	admission_rule_fini(&r);
	CHECK(!admission_rule_parse("x 0", &r, why));
	CHECK(r.deadline_ns == ADMISSION_NEVER && !r.share && !r.ask && !r.operations);
	admission_rule_fini(&r);
}

static void bad_rules_are_refused(void)
{
	static const char *const bad[] = {"", "a", "a b", "a 15", "a -1", "a.b 1", "a 1 share=0",
		"a 1 share=x", "a 1 deadline=x", "a 1 deadline=", "a 1 deadline", "a 1 what=1",
		"a 1 address=10.0.0.0/33", "a 1 address=1.2.3", "a 1 address=::1/129",
		"a 1 address=/8", "a 1 operation=list", "a 1 ask=perhaps",
		"abcdefghijklmnopqrstuvwxyz0123456789 1",
		"a 1 "
		"address=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct admission_rule r;

		*why = '\0';
		if (!admission_rule_parse(bad[i], &r, why))
			printf("# \"%s\" was taken\n", bad[i]);
		CHECK_EQ(admission_rule_parse(bad[i], &r, why), -EINVAL);
		CHECK(!strncmp(why, "class", 5));
	}
}

#define RULES 8u

static struct admission_rule rules[RULES];
static unsigned count;

static bool take(const char *text)
{
	return !admission_rule_parse(text, &rules[count++], why);
}

static const char *choose(const char *address, const char *path, const char *user,
	enum admission_operation operation, const char *asked)
{
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	const struct admission_facts facts = {
		.address = inet_pton(AF_INET, address, &four.sin_addr) == 1
				   ? (struct sockaddr *)&four
				   : (struct sockaddr *)&six,
		.path = path,
		.user = user,
		.operation = operation,
	};
	const struct admission_rule *r;

	inet_pton(AF_INET6, address, &six.sin6_addr);
	r = admission_rule_choose(rules, count, &facts, asked);
	return r ? r->name : ADMISSION_DEFAULT;
}

#define CHOSEN(wanted, ...) CHECK(!strcmp(choose(__VA_ARGS__), wanted))

static void the_first_that_fits_wins(void)
{
	char names[100];

	count = 0;
	CHECK(take("alarm 0 path=/alarms operation=put"));
	CHECK(take("alarm 0 address=10.1.2.0/23 ask=yes"));
	CHECK(take("six 1 address=2001:db8::/33"));
	CHECK(take("video 2 address=10.1.0.0/16"));
	CHECK(take("eve 3 user=eve"));
	CHECK(take("bulk 9 operation=get"));
	CHOSEN("alarm", "9.9.9.9", "/alarms/x", NULL, ADMISSION_PUT, "");
	CHOSEN("alarm", "9.9.9.9", "alarms", NULL, ADMISSION_PUT, "");
	CHOSEN("default", "9.9.9.9", "/alarmsx", NULL, ADMISSION_PUT, "");
	CHOSEN("bulk", "9.9.9.9", "/alarms/x", NULL, ADMISSION_GET, "");
	CHOSEN("video", "10.1.2.1", "/x", NULL, ADMISSION_PUT, "");
	CHOSEN("video", "::ffff:10.1.2.1", "/x", NULL, ADMISSION_PUT, "");
	CHOSEN("six", "2001:db8::5", "/x", NULL, ADMISSION_PUT, "");
	CHOSEN("default", "2001:db8:8000::5", "/x", NULL, ADMISSION_PUT, "");
	CHOSEN("eve", "9.9.9.9", "/x", "eve", ADMISSION_GET, "");
	/* asked for: to where it may, never higher by itself, and lower always */
	CHOSEN("alarm", "10.1.3.1", "/x", NULL, ADMISSION_PUT, "alarm");
	CHOSEN("video", "10.1.4.1", "/x", NULL, ADMISSION_PUT, "alarm");
	CHOSEN("video", "10.1.4.1", "/x", NULL, ADMISSION_PUT, "six");
	CHOSEN("bulk", "10.1.4.1", "/x", NULL, ADMISSION_PUT, "bulk");
	CHOSEN("default", "10.1.4.1", "/x", NULL, ADMISSION_PUT, "default");
	CHOSEN("default", "9.9.9.9", "/x", NULL, ADMISSION_PUT, "bulk");
	CHECK(admission_rule_exists(rules, count, "six"));
	CHECK(admission_rule_exists(rules, count, "default"));
	CHECK(!admission_rule_exists(rules, count, "sixty"));
	admission_rule_names(rules, count, names, sizeof names);
	CHECK(!strcmp(names, "alarm, six, video, eve, bulk, default"));
	admission_rule_names(rules, count, names, 12); /* cut, not overrun */
	CHECK(strlen(names) < 12);
	while (count)
		admission_rule_fini(&rules[--count]);
	CHOSEN("default", "9.9.9.9", "/x", NULL, ADMISSION_PUT, "");
}

HARNESS_MAIN({"rates_and_times", rates_and_times}, {"rules_are_read", rules_are_read},
	{"bad_rules_are_refused", bad_rules_are_refused},
	{"the_first_that_fits_wins", the_first_that_fits_wins})
