/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/mode.c: see mode.h.
 */
#include "rftp/shell/mode.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define MODE_DIGITS_MAX 4u

/* The bits that letters of users stand for. */
static mode_t mode_who(const char **at)
{
	mode_t who = 0;

	for (;; ++*at)
		switch (**at) {
		case 'u':
			who |= S_ISUID | S_IRWXU;
			break;
		case 'g':
			who |= S_ISGID | S_IRWXG;
			break;
		case 'o':
			who |= S_ISVTX | S_IRWXO;
			break;
		case 'a':
			who |= 07777;
			break;
		default:
			return who;
		}
}

/* Three bits in the place of each user's. */
static mode_t mode_for_all(mode_t bits)
{
	return bits << 6 | bits << 3 | bits;
}

/* What stands behind a sign, for all users. */
static mode_t mode_what(const char **at, mode_t old, bool directory)
{
	mode_t what = 0;

	if (**at && strchr("ugo", **at)) /* as another has it */
		return mode_for_all(*(*at)++ == 'u'    ? old >> 6 & 7
				    : (*at)[-1] == 'g' ? old >> 3 & 7
						       : old & 7);
	for (;; ++*at)
		switch (**at) {
		case 'r':
			what |= mode_for_all(4);
			break;
		case 'w':
			what |= mode_for_all(2);
			break;
		case 'x':
			what |= mode_for_all(1);
			break;
		case 'X':
			what |= directory || old & 0111 ? mode_for_all(1) : 0;
			break;
		case 's':
			what |= S_ISUID | S_ISGID;
			break;
		case 't':
			what |= S_ISVTX;
			break;
		default:
			return what;
		}
}

/* One clause, as in "go-w+x".  The rest, or NULL: it is not one. */
static const char *mode_clause(const char *at, mode_t *mode, bool directory, mode_t mask)
{
	mode_t who = mode_who(&at), reach = who ? who : 07777 & ~mask;

	if (!*at || !strchr("+-=", *at))
		return NULL;
	while (*at && strchr("+-=", *at)) {
		char sign = *at++;
		mode_t what = mode_what(&at, *mode, directory) & reach;

		if (sign == '+')
			*mode |= what;
		else if (sign == '-')
			*mode &= ~what;
		else /* a directory keeps what it hands on to what is made in it */
			*mode = (*mode & ~((who ? who : 07777) & (directory ? 01777 : 07777))) |
				what;
	}
	return at;
}

static bool mode_run(const char *text, mode_t *mode, bool directory, mode_t mask)
{
	do {
		text = mode_clause(text, mode, directory, mask);
	} while (text && *text == ',' && *++text);
	return text && !*text && text[-1] != ',';
}

int mode_parse(const char *text, mode_t *mode)
{
	size_t digits = strspn(text, "01234567");
	mode_t unused = 0;

	if (digits && !text[digits] && digits <= MODE_DIGITS_MAX) {
		*mode = 0;
		while (*text)
			*mode = *mode << 3 | (mode_t)(*text++ - '0');
		return 1;
	}
	return *text && mode_run(text, &unused, false, 0) ? 0 : -EINVAL;
}

mode_t mode_apply(const char *text, mode_t old, bool directory, mode_t mask)
{
	mode_t mode = old & 07777;

	mode_run(text, &mode, directory, mask);
	return mode;
}
