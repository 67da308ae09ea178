/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/export_rule: see export_rule.h.
 */
#include "rftpd/export_rule.h"

#include "rftpd/auth/users_file.h"
#include "tree/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 64u

static const struct {
	const char *name;
	unsigned right;
} right_names[] = {
	{"read", PLACE_READ},
	{"list", PLACE_LIST},
	{"write", PLACE_WRITE},
	{"append", PLACE_APPEND},
	{"delete", PLACE_DELETE},
};

void export_rule_free(struct export_rule *e)
{
	if (!e)
		return;
	while (e->user_count)
		free(e->users[--e->user_count]);
	free(e->users);
	free(e->networks);
	free(e->directory);
	free(e->name);
	free(e->text);
	free(e);
}

/* ---- words ---- */

/* The next word in place, its backslashes resolved; NULL: there is none. */
static char *next_word(char **rest)
{
	char *from = *rest + strspn(*rest, " \t"), *to = from, *word = from;

	if (!*from)
		return NULL;
	for (; *from && *from != ' ' && *from != '\t'; *to++ = *from++)
		if (*from == '\\' && from[1])
			from++;
	*rest = *from ? from + 1 : from;
	*to = '\0';
	return word;
}

static bool is_name(const char *s)
{
	size_t len = strlen(s);

	if (!len || len > NAME_MAX_BYTES || *s == '.' || *s == '-' || *s == '@')
		return false;
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f || strchr("/,:=\\", *s))
			return false;
	return true;
}

static int set_rights(struct export_rule *e, char *list, char *why, size_t size)
{
	char *one;

	e->rights = 0;
	while ((one = strsep(&list, ","))) {
		unsigned right = 0;

		for (size_t i = 0; i < sizeof right_names / sizeof *right_names; i++)
			if (!strcmp(one, right_names[i].name))
				right = right_names[i].right;
		if (!right) {
			snprintf(why, size,
				"export: \"%.60s\" is none of the rights read, list, write, "
				"append, delete",
				one);
			return -EINVAL;
		}
		e->rights |= right;
	}
	return 0;
}

static int add_user(struct export_rule *e, const char *name, char *why, size_t size)
{
	if (strcmp(name, EXPORT_RULE_ANONYMOUS) != 0 && strcmp(name, EXPORT_RULE_USERS) != 0 &&
		!users_name_ok(name)) {
		snprintf(why, size,
			"export: \"%.60s\" is no user (nor " EXPORT_RULE_ANONYMOUS
			", " EXPORT_RULE_USERS ")",
			name);
		return -EINVAL;
	}
	e->users[e->user_count] = strdup(name);
	if (!e->users[e->user_count])
		return -ENOMEM;
	e->user_count++;
	return 0;
}

static int add_network(struct export_rule *e, const char *text, char *why, size_t size)
{
	if (network_parse(text, strlen(text), &e->networks[e->network_count])) {
		snprintf(why, size,
			"export: \"%.60s\" is no address or network such as 192.0.2.0/24", text);
		return -EINVAL;
	}
	e->network_count++;
	return 0;
}

static int add_list(struct export_rule *e, char *list,
	int (*add)(struct export_rule *, const char *, char *, size_t), char *why, size_t size)
{
	unsigned count = 0;
	char *one;
	int err = 0;

	while (!err && (one = strsep(&list, ",")))
		if (++count > EXPORT_RULE_LIST_MAX) {
			snprintf(why, size, "export: more than %u in a list", EXPORT_RULE_LIST_MAX);
			err = -EINVAL;
		} else {
			err = add(e, one, why, size);
		}
	return err;
}

static int set_option(struct export_rule *e, char *word, char *why, size_t size)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	if (value && !strcmp(word, "rights"))
		return set_rights(e, value, why, size);
	if (value && !strcmp(word, "users") && !e->users) {
		e->users = calloc(EXPORT_RULE_LIST_MAX, sizeof *e->users);
		return e->users ? add_list(e, value, add_user, why, size) : -ENOMEM;
	}
	if (value && !strcmp(word, "addresses") && !e->networks) {
		e->networks = calloc(EXPORT_RULE_LIST_MAX, sizeof *e->networks);
		return e->networks ? add_list(e, value, add_network, why, size) : -ENOMEM;
	}
	snprintf(why, size,
		"export: \"%.60s\" is none of rights=..., users=..., addresses=..., or is given "
		"twice "
		"(a blank in the directory has a backslash before it)",
		word);
	return -EINVAL;
}

/* ---- the two forms ---- */

/* Whether the text is NAME DIR...: a name, blanks, and a directory that begins with a slash. */
static bool is_named(const char *text)
{
	size_t first = strcspn(text, " \t");
	const char *second = text + first + strspn(text + first, " \t");

	return *second == '/' && first && !memchr(text, '/', first);
}

static int parse_named(struct export_rule *e, char *rest, char *why, size_t size)
{
	char *word = next_word(&rest);
	int err = 0;

	if (!is_name(word)) {
		snprintf(why, size,
			"export: \"%.60s\" is no name for an export: letters, digits and such, at "
			"most "
			"%u",
			word, NAME_MAX_BYTES);
		return -EINVAL;
	}
	e->name = strdup(word);
	word = next_word(&rest);
	e->directory = strdup(word);
	e->rights = PLACE_READ_ONLY;
	if (!e->name || !e->directory)
		return -ENOMEM;
	while (!err && (word = next_word(&rest)))
		err = set_option(e, word, why, size);
	return err;
}

/* What somebody meant as :rw or :ro, and what would be taken for a part of the directory. */
static bool is_almost_rights(const char *text)
{
	static const char *const forms[] = {":wr", ":or", ":r", ":w", ":rw", ":ro"};
	const char *colon = strrchr(text, ':');

	for (size_t i = 0; colon && i < sizeof forms / sizeof *forms; i++)
		if (!strcasecmp(colon, forms[i]))
			return true;
	return false;
}

static int parse_top(struct export_rule *e, const char *text, char *why, size_t size)
{
	size_t len = strlen(text);

	e->rights = PLACE_READ_ONLY;
	if (len > 3 && !strcmp(text + len - 3, ":rw")) {
		e->rights = PLACE_ALL;
		len -= 3;
	} else if (len > 3 && !strcmp(text + len - 3, ":ro")) {
		len -= 3;
	} else if (len > 3 && is_almost_rights(text)) {
		snprintf(why, size,
			"export: \"%.60s\" ends in neither :ro nor :rw (where the directory is "
			"called "
			"so, write one of these behind it)",
			text);
		return -EINVAL;
	}
	if (!len || (len == 3 && text[0] == ':')) {
		snprintf(why, size, "export: no directory is named");
		return -EINVAL;
	}
	e->directory = strndup(text, len);
	return e->directory ? 0 : -ENOMEM;
}

int export_rule_parse(const char *text, struct export_rule **out, char *why, size_t size)
{
	struct export_rule *e = calloc(1, sizeof *e);
	char *copy = strdup(text);
	int err = e && copy && (e->text = strdup(text)) ? 0 : -ENOMEM;

	if (!err)
		err = is_named(text) ? parse_named(e, copy, why, size)
				     : parse_top(e, text, why, size);
	free(copy);
	if (err)
		export_rule_free(e);
	else
		*out = e;
	return err;
}

/* ---- who ---- */

static bool is_listed(const struct export_rule *e, const char *user)
{
	for (unsigned i = 0; i < e->user_count; i++) {
		const char *one = e->users[i];

		if (!strcmp(one, user ? user : EXPORT_RULE_ANONYMOUS) ||
			(user && !strcmp(one, EXPORT_RULE_USERS)))
			return true;
	}
	return false;
}

static bool is_from(const struct export_rule *e, const struct sockaddr *from)
{
	for (unsigned i = 0; i < e->network_count; i++)
		if (network_has(&e->networks[i], from))
			return true;
	return !e->network_count;
}

static unsigned rights_of(const struct export_rule *e, const char *user, bool open)
{
	if (e->user_count)
		return is_listed(e, user) ? e->rights : 0;
	return user || open ? e->rights : e->rights & PLACE_READ_ONLY;
}

unsigned export_rule_rights(
	const struct export_rule *e, const char *user, const struct sockaddr *from, bool open)
{
	return is_from(e, from) ? rights_of(e, user, open) : 0;
}

bool export_rule_writes(const struct export_rule *r)
{
	return r->rights & ~(unsigned)PLACE_READ_ONLY;
}

bool export_rule_changes(const struct export_rule *e, bool open)
{
	return rights_of(e, NULL, open) & ~PLACE_READ_ONLY;
}
