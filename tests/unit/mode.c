/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of rftp/shell/mode and rftp/shell/stamp: as chmod(1) and touch(1) take them. */
#include "tests/harness.h"

#include "rftp/shell/mode.h"
#include "rftp/shell/stamp.h"

#include <errno.h>
#include <stdlib.h>

static void numbers(void)
{
	mode_t mode;

	CHECK_EQ(mode_parse("0", &mode), 1);
	CHECK_EQ(mode, 0);
	CHECK_EQ(mode_parse("644", &mode), 1);
	CHECK_EQ(mode, 0644);
	CHECK_EQ(mode_parse("7777", &mode), 1);
	CHECK_EQ(mode, 07777);
	CHECK_EQ(mode_parse("10000", &mode), -EINVAL);
	CHECK_EQ(mode_parse("648", &mode), -EINVAL);
}

static void symbols(void)
{
	static const struct {
		const char *text;
		mode_t old, mask, wanted;
		bool directory;
	} rows[] = {
		{"u+x", 0644, 0, 0744, false},
		{"go-w", 0666, 0, 0644, false},
		{"a=r", 0777, 0, 0444, false},
		{"+x", 0644, 022, 0755, false},
		{"+w", 0444, 022, 0644, false},
		{"-w", 0666, 022, 0466, false},
		{"=r", 0777, 077, 0400, false},
		{"a+X", 0644, 0, 0644, false},
		{"a+X", 0744, 0, 0755, false},
		{"a+X", 0644, 0, 0755, true},
		{"u=rwx,g=u-w,o=", 0, 0, 0750, false},
		{"g=o", 0604, 0, 0644, false},
		{"u=rw-r+x", 0777, 0, 0377, false},
		{"u+s", 0755, 0, 04755, false},
		{"g+s", 0755, 0, 02755, false},
		{"o+s", 0755, 0, 0755, false},
		{"+t", 0755, 022, 01755, false},
		{"u+t", 0755, 0, 0755, false},
		{"a-st", 07755, 0, 0755, false},
		{"u=", 04755, 0, 055, false},
		{"a=rx", 02770, 0, 02555, true},
		{"a=rx", 02770, 0, 0555, false},
		{"u+", 0644, 0, 0644, false},
	};
	static const char *const bad[] = {
		"", "u", "ux", "u+q", "u+x,", ",u+x", "u+x,,g+x", "8", "+x ", "u+gx"};
	mode_t mode;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK_EQ(mode_parse(rows[i].text, &mode), 0);
		mode = mode_apply(rows[i].text, rows[i].old, rows[i].directory, rows[i].mask);
		if (mode != rows[i].wanted)
			printf("# %s of %o: %o\n", rows[i].text, rows[i].old, mode);
		CHECK_EQ(mode, rows[i].wanted);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (mode_parse(bad[i], &mode) >= 0)
			printf("# '%s' is taken\n", bad[i]);
		CHECK_EQ(mode_parse(bad[i], &mode), -EINVAL);
	}
}

static void dates(void)
{
	static const struct {
		const char *text;
		time_t s;
		long ns;
	} rows[] = {
		{"@0", 0, 0},
		{"@1700000000.123456789", 1700000000, 123456789},
		{"@1700000000.1234567899", 1700000000, 123456789},
		{"@-1", -1, 0},
		{"@-1.5", -2, 500000000},
		{"@-0.25", -1, 750000000},
		{"1970-01-01T00:00Z", 0, 0},
		{"2026-11-24T03:18:00.5Z", 1795490280, 500000000},
		{"2026-11-24 03:18+01:00", 1795486680, 0},
		{"2026-11-24 03:18-0130", 1795495680, 0},
		{"2026-11-24", 1795471200, 0}, /* the zone is set below */
		{"2024-02-29T00:00:00Z", 1709164800, 0},
	};
	static const char *const bad[] = {"", "@", "@x", "@1x", "@1.", "@1234567890123456789",
		"now", "2026", "2026-13-01", "2026-00-01", "2026-11-31", "2026-11-24T",
		"2026-11-24T24:00", "2026-11-24T03", "2026-11-24T03:18:", "2026-11-24T03:18:00.",
		"2026-11-24T03:18Zx", "2026-11-24T03:18+24:00", "2026-11-24 ", "-001-01-01"};
	struct timespec t;

	setenv("TZ", "XXX-2", 1); /* two hours east */
	tzset();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK_EQ(stamp_parse_date(rows[i].text, &t), 0);
		if (t.tv_sec != rows[i].s)
			printf("# %s: %jd\n", rows[i].text, (intmax_t)t.tv_sec);
		CHECK_EQ(t.tv_sec, rows[i].s);
		CHECK_EQ(t.tv_nsec, rows[i].ns);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (!stamp_parse_date(bad[i], &t))
			printf("# '%s' is taken\n", bad[i]);
		CHECK_EQ(stamp_parse_date(bad[i], &t), -EINVAL);
	}
}

static void stamps(void)
{
	const time_t now = 1795490280; /* in 2026 */
	struct timespec t;

	setenv("TZ", "UTC0", 1);
	tzset();
	CHECK_EQ(stamp_parse_short("11240318", now, &t), 0);
	CHECK_EQ(t.tv_sec, now);
	CHECK_EQ(stamp_parse_short("2611240318", now, &t), 0);
	CHECK_EQ(t.tv_sec, now);
	CHECK_EQ(stamp_parse_short("202611240318.07", now, &t), 0);
	CHECK_EQ(t.tv_sec, now + 7);
	CHECK_EQ(stamp_parse_short("7001010000", now, &t), 0);
	CHECK_EQ(t.tv_sec, 0);
	CHECK_EQ(stamp_parse_short("1124031", now, &t), -EINVAL);
	CHECK_EQ(stamp_parse_short("11240318.", now, &t), -EINVAL);
	CHECK_EQ(stamp_parse_short("11240318.0", now, &t), -EINVAL);
	CHECK_EQ(stamp_parse_short("13240318", now, &t), -EINVAL);
	CHECK_EQ(stamp_parse_short("11312560", now, &t), -EINVAL);
	CHECK_EQ(stamp_parse_short("", now, &t), -EINVAL);
}

HARNESS_MAIN({"numbers", numbers}, {"symbols", symbols}, {"dates", dates}, {"stamps", stamps})
