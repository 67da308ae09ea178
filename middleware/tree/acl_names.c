/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/acl_names: see acl_names.h.
 *
 * Owns how entries are written: a character of a name that would end it, as acl(5) has it, is a
 * backslash and three octal digits.
 */
#include "tree/acl_names.h"

#include "base/lookup.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ACL_NAMES_QUOTED_MAX (4 * LOOKUP_NAME_MAX + 1)
#define ACL_NAMES_SPECIAL ":,#\\ \t\n\r"

struct acl_names_piece {
	const char *at;
	size_t len;
};

struct acl_names_entry {
	struct acl_names_piece tag, who, rights;
};

/* What `next` begins with, up to one of the characters of `ends`. */
static struct acl_names_piece acl_names_until(const char **next, const char *ends)
{
	struct acl_names_piece p = {*next, strcspn(*next, ends)};

	*next += p.len;
	return p;
}

static bool acl_names_is(struct acl_names_piece p, const char *text)
{
	return p.len == strlen(text) && !memcmp(p.at, text, p.len);
}

/* -1: it is neither of the two that may have a name. */
static int acl_names_kind(struct acl_names_piece tag)
{
	if (acl_names_is(tag, "u") || acl_names_is(tag, "user"))
		return LOOKUP_USER;
	return acl_names_is(tag, "g") || acl_names_is(tag, "group") ? LOOKUP_GROUP : -1;
}

/* Nothing passes that libacl might read in another way. */
static bool acl_names_is_sound(const struct acl_names_entry *e)
{
	bool other = acl_names_is(e->tag, "m") || acl_names_is(e->tag, "mask") ||
		     acl_names_is(e->tag, "o") || acl_names_is(e->tag, "other");

	if (e->rights.len > 3 || strspn(e->rights.at, "rwx-") < e->rights.len)
		return false;
	return other ? !e->who.len : acl_names_kind(e->tag) >= 0;
}

static bool acl_names_next(const char **next, struct acl_names_entry *e)
{
	e->tag = acl_names_until(next, ":,");
	if (*(*next)++ != ':')
		return false;
	e->who = acl_names_until(next, ":,");
	if (*(*next)++ != ':')
		return false;
	e->rights = acl_names_until(next, ":,");
	if (**next == ',')
		++*next;
	else if (**next)
		return false;
	return acl_names_is_sound(e);
}

/* Digits and nothing else; a number that is too large is more than an id may be. */
static bool acl_names_is_number(struct acl_names_piece p, uint64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < p.len; i++) {
		if (!isdigit((unsigned char)p.at[i]))
			return false;
		if (*number <= UINT32_MAX)
			*number = *number * 10 + (uint64_t)(p.at[i] - '0');
	}
	return p.len;
}

/* A byte of three octal digits; 0: they are none, or it is NUL. */
static unsigned acl_names_octal(const char *at)
{
	unsigned byte = 0;

	for (int i = 0; i < 3; i++) {
		if (at[i] < '0' || at[i] > '7')
			return 0;
		byte = byte * 8 + (unsigned)(at[i] - '0');
	}
	return byte < 256 ? byte : 0;
}

static bool acl_names_unquote(struct acl_names_piece p, char out[LOOKUP_NAME_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < p.len; n++) {
		unsigned byte = (unsigned char)p.at[i++];

		if (byte == '\\') {
			byte = i + 3 > p.len ? 0 : acl_names_octal(p.at + i);
			if (!byte)
				return false;
			i += 3;
		}
		if (n == LOOKUP_NAME_MAX)
			return false;
		out[n] = (char)byte;
	}
	out[n] = '\0';
	return true;
}

static void acl_names_quote(const char *name, char out[ACL_NAMES_QUOTED_MAX])
{
	for (; *name; name++)
		if (strchr(ACL_NAMES_SPECIAL, *name))
			out += sprintf(out, "\\%03o", (unsigned char)*name);
		else
			*out++ = *name;
	*out = '\0';
}

/* What stands for who it is: 0 or EINVAL. */
static int acl_names_put_one(const struct acl_names_entry *e, char out[ACL_NAMES_QUOTED_MAX])
{
	char name[LOOKUP_NAME_MAX + 1];
	uint64_t number;

	if (!acl_names_is_number(e->who, &number) || number > UINT32_MAX)
		return EINVAL;
	/* one that begins with a digit would be read as a number */
	if (lookup_name(acl_names_kind(e->tag), (uint32_t)number, name) || !*name ||
		isdigit((unsigned char)*name))
		sprintf(out, "%u", (uint32_t)number);
	else
		acl_names_quote(name, out);
	return 0;
}

static int acl_names_get_one(const struct acl_names_entry *e, char out[ACL_NAMES_QUOTED_MAX])
{
	char name[LOOKUP_NAME_MAX + 1];
	uint64_t number;
	uint32_t id;

	if (acl_names_is_number(e->who, &number)) {
		sprintf(out, "%u", (uint32_t)number);
		return number > UINT32_MAX ? EINVAL : 0;
	}
	if (!acl_names_unquote(e->who, name) || lookup_id(acl_names_kind(e->tag), name, &id))
		return EINVAL;
	sprintf(out, "%u", id);
	return 0;
}

static int acl_names_each(const char *text, char *out, size_t size,
	int (*one)(const struct acl_names_entry *, char out[ACL_NAMES_QUOTED_MAX]))
{
	const char *next = text;
	size_t n = 0;

	*out = '\0';
	while (*next) {
		char who[ACL_NAMES_QUOTED_MAX] = "";
		struct acl_names_entry e;
		int err = acl_names_next(&next, &e) ? 0 : EINVAL;

		if (!err && e.who.len)
			err = one(&e, who);
		if (err)
			return err;
		n += (size_t)snprintf(out + n, size - n, "%s%.*s:%s:%.*s", n ? "," : "",
			(int)e.tag.len, e.tag.at, who, (int)e.rights.len, e.rights.at);
		if (n >= size)
			return ENOSPC;
	}
	return 0;
}

int acl_names_put(const char *text, char *out, size_t size)
{
	return acl_names_each(text, out, size, acl_names_put_one);
}

int acl_names_get(const char *text, char *out, size_t size)
{
	return acl_names_each(text, out, size, acl_names_get_one);
}
