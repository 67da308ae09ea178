/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/number: see number.h.
 */
#include "base/number.h"

#include <errno.h>
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

int number_parse_size(const char *s, uint64_t *out)
{
	static const char letters[] = "kmgt";
	const char *letter;
	uint64_t value, base;
	int err = digits(&s, &value);

	if (err)
		return err;
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
			if (__builtin_mul_overflow(value, base, &value))
				return -ERANGE;
	}
	*out = value;
	return 0;
}
