/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/number: see number.h.
 */
#include "base/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Digits at *at, which moves behind them. */
static int digits(const char **at, uint64_t *out)
{
	const char *s = *at;
	uint64_t value = 0;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
			return -ERANGE;
	*at = s;
	*out = value;
	return 0;
}

int number_parse(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value;
	int err = digits(&s, &value);

	if (err)
		return err;
	if (*s)
		return -EINVAL;
	if (value < min || value > max)
		return -ERANGE;
	*out = value;
	return 0;
}

/* What is behind the digits of a size: by how much they count.  0 or -errno. */
static int unit(const char *s, uint64_t *out)
{
	static const char letters[] = "kmgt";
	uint64_t factor = 1, base;
	const char *letter;

	if (*s && strcasecmp(s, "b")) {
		letter = strchr(letters, *s | 0x20);
		if (!letter || !*letter)
			return -EINVAL;
		s++;
		if (!*s || !strcasecmp(s, "ib"))
			base = 1024;
		else if (!strcasecmp(s, "b"))
			base = 1000;
		else
			return -EINVAL;
		for (int n = (int)(letter - letters); n >= 0; n--)
			factor *= base;
	}
	*out = factor;
	return 0;
}

int number_parse_size(const char *s, uint64_t *out)
{
	uint64_t value, factor;
	int err = digits(&s, &value);

	if (!err)
		err = unit(s, &factor);
	if (!err && __builtin_mul_overflow(value, factor, &value))
		err = -ERANGE;
	if (!err)
		*out = value;
	return err;
}

int number_parse_rate(const char *s, uint64_t *out)
{
	uint64_t whole, factor, part = 0, parts = 1;
	int err = digits(&s, &whole);

	if (!err && *s == '.') {
		const char *from = ++s;

		err = digits(&s, &part);
		for (; !err && from < s; from++)
			if (__builtin_mul_overflow(parts, 10, &parts))
				err = -ERANGE;
	}
	if (!err)
		err = unit(s, &factor);
	if (!err &&
		(__builtin_mul_overflow(whole, factor, &whole) ||
			__builtin_add_overflow(whole,
				(uint64_t)((double)part / (double)parts * (double)factor), out)))
		err = -ERANGE;
	return err;
}

/* Nanoseconds of a time's unit; 0: there is no such one. */
static uint64_t time_unit(const char *name)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = {
		{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

	for (unsigned i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(name, units[i].name))
			return units[i].ms * 1000000;
	return 0;
}

int number_parse_time(const char *s, uint64_t *ns)
{
	size_t len = strspn(s, "0123456789.");
	uint64_t unit = time_unit(s + len);
	char *end;
	double value;

	if (*s < '0' || *s > '9' || !unit)
		return -EINVAL;
	value = strtod(s, &end);
	if (end != s + len)
		return -EINVAL;
	value *= (double)unit;
	if (value > (double)NUMBER_TIME_MAX_NS)
		return -ERANGE;
	*ns = (uint64_t)value;
	return 0;
}
