/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/stamp.c: see stamp.h.
 */
#include "rftp/shell/stamp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define STAMP_NS_DIGITS 9
#define STAMP_SECONDS_DIGITS 18 /* fits 64 bits */

/* Exactly so many digits.  -1: there are not. */
static int stamp_number(const char **at, int digits)
{
	int value = 0;

	for (int i = 0; i < digits; i++, ++*at) {
		if (**at < '0' || **at > '9')
			return -1;
		value = value * 10 + (**at - '0');
	}
	return value;
}

/* ".123", or nothing.  More digits than nanoseconds have are cut off. */
static bool stamp_fraction(const char **at, long *ns)
{
	int digits = 0;

	*ns = 0;
	if (**at != '.' && **at != ',')
		return true;
	for (++*at; **at >= '0' && **at <= '9'; ++*at, digits++)
		if (digits < STAMP_NS_DIGITS)
			*ns = *ns * 10 + (**at - '0');
	for (int i = digits; i < STAMP_NS_DIGITS; i++)
		*ns *= 10;
	return digits > 0;
}

/* Behind '@'.  -1.5 is half a second before -1. */
static int stamp_parse_seconds(const char *at, struct timespec *out)
{
	bool negative = *at == '-';
	int64_t seconds = 0;
	int digits = 0;
	long ns;

	at += negative || *at == '+';
	for (; *at >= '0' && *at <= '9'; at++, digits++) {
		if (digits == STAMP_SECONDS_DIGITS)
			return -EINVAL;
		seconds = seconds * 10 + (*at - '0');
	}
	if (!digits || !stamp_fraction(&at, &ns) || *at)
		return -EINVAL;
	out->tv_sec = negative ? -seconds - (ns > 0) : seconds;
	out->tv_nsec = negative && ns ? 1000000000 - ns : ns;
	return 0;
}

static bool stamp_fields_ok(const struct tm *tm)
{
	return tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1 && tm->tm_mday <= 31 &&
	       tm->tm_hour >= 0 && tm->tm_hour < 24 && tm->tm_min >= 0 && tm->tm_min < 60 &&
	       tm->tm_sec >= 0 && tm->tm_sec <= 60;
}

/* `east`: seconds that the zone is before UTC; NULL: it is the local one. */
static int stamp_make(struct tm *tm, const long *east, time_t *out)
{
	const int day = tm->tm_mday;

	if (!stamp_fields_ok(tm))
		return -EINVAL;
	tm->tm_isdst = -1;
	*out = east ? timegm(tm) - *east : mktime(tm);
	return tm->tm_mday == day || tm->tm_sec ? 0 : -EINVAL; /* 31 of a month of 30 */
}

/* "Z", "+01:00", or nothing: the local zone.  1: one was said, 0, -EINVAL. */
static int stamp_zone(const char **at, long *east)
{
	int hours, minutes = 0;
	bool west;

	*east = 0;
	if (**at == 'Z') {
		++*at;
		return 1;
	}
	if (**at != '+' && **at != '-')
		return 0;
	west = *(*at)++ == '-';
	hours = stamp_number(at, 2);
	if (**at == ':')
		++*at;
	if (**at)
		minutes = stamp_number(at, 2);
	if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
		return -EINVAL;
	*east = (hours * 60L + minutes) * (west ? -60 : 60);
	return 1;
}

int stamp_parse_date(const char *at, struct timespec *out)
{
	struct tm tm = {0};
	long east;
	int zone;

	if (*at == '@')
		return stamp_parse_seconds(at + 1, out);
	*out = (struct timespec){0};
	tm.tm_year = stamp_number(&at, 4) - 1900;
	if (tm.tm_year < -1900 || *at++ != '-')
		return -EINVAL;
	tm.tm_mon = stamp_number(&at, 2) - 1;
	if (tm.tm_mon < 0 || *at++ != '-')
		return -EINVAL;
	tm.tm_mday = stamp_number(&at, 2);
	if (*at == 'T' || (*at == ' ' && at[1])) {
		at++;
		tm.tm_hour = stamp_number(&at, 2);
		if (tm.tm_hour < 0 || *at++ != ':')
			return -EINVAL;
		tm.tm_min = stamp_number(&at, 2);
		if (*at == ':') {
			at++;
			tm.tm_sec = stamp_number(&at, 2);
			if (!stamp_fraction(&at, &out->tv_nsec))
				return -EINVAL;
		}
	}
	zone = stamp_zone(&at, &east);
	if (zone < 0 || *at)
		return -EINVAL;
	return stamp_make(&tm, zone ? &east : NULL, &out->tv_sec);
}

int stamp_parse_short(const char *at, time_t now, struct timespec *out)
{
	size_t digits = strspn(at, "0123456789");
	struct tm tm = {0};
	int century, year;

	*out = (struct timespec){0};
	if (digits != 8 && digits != 10 && digits != 12)
		return -EINVAL;
	localtime_r(&now, &tm);
	year = tm.tm_year + 1900;
	century = digits == 12 ? stamp_number(&at, 2) * 100 : -1;
	if (digits > 8) {
		year = stamp_number(&at, 2);
		year += century >= 0 ? century : year >= 69 ? 1900 : 2000;
	}
	tm = (struct tm){.tm_year = year - 1900};
	tm.tm_mon = stamp_number(&at, 2) - 1;
	tm.tm_mday = stamp_number(&at, 2);
	tm.tm_hour = stamp_number(&at, 2);
	tm.tm_min = stamp_number(&at, 2);
	if (*at == '.') {
		at++;
		tm.tm_sec = stamp_number(&at, 2);
	}
	return *at ? -EINVAL : stamp_make(&tm, NULL, &out->tv_sec);
}
