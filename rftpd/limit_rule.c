/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/limit_rule: see limit_rule.h.
 */
#include "rftpd/limit_rule.h"

#include "base/number.h"
#include "rftpd/auth/users_file.h"
#include "rftpd/export_rule.h"
#include "transfer/bucket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MIN (UINT64_C(1) << 20)

#define SIZE_MAX_BYTES (UINT64_C(1) << 50)

static const struct kind {
	const char *name;
	uint64_t min, max;
	int (*parse)(const char *, uint64_t *);
	const char *what;
} kinds[LIMIT_KINDS] = {
	[LIMIT_SESSIONS] = {"sessions", 1, 1000000, NULL, "number"},
	[LIMIT_MEMORY] = {"memory", MEMORY_MIN, SIZE_MAX_BYTES, number_parse_size,
		"size (such as 64M)"},
	[LIMIT_OPEN_FILES] = {"open-files", 1, 1000000, NULL, "number"},
	[LIMIT_RATE] = {"rate", BUCKET_RATE_MIN, SIZE_MAX_BYTES, number_parse_rate,
		"rate in bytes a second (such as 500K, 125M)"},
	[LIMIT_QUOTA] = {"quota", 1, UINT64_C(1) << 62, number_parse_size, "size (such as 64M)"},
	[LIMIT_FILES] = {"files", 1, UINT64_C(1) << 62, NULL, "number"},
};

static int wrong(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int wrong(char *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, LIMIT_WHY_MAX, format, args);
	va_end(args);
	return -EINVAL;
}

/* ---- reading ---- */

static int set_text(char **field, const char *value)
{
	*field = strdup(value);
	return *field ? 0 : -ENOMEM;
}

static int set_user(struct limit_rule *r, const char *value, char *why)
{
	if (strcmp(value, "*") != 0 && strcmp(value, EXPORT_RULE_ANONYMOUS) != 0 &&
		!users_name_ok(value))
		return wrong(why,
			"limit: \"%.60s\" is no user (nor " EXPORT_RULE_ANONYMOUS ", nor * for "
			"each)",
			value);
	return set_text(&r->user, value);
}

static int set_address(struct limit_rule *r, const char *value, char *why)
{
	if (strcmp(value, "*") != 0 && network_parse(value, strlen(value), &r->network))
		return wrong(why,
			"limit: \"%.60s\" is no address or network such as 192.0.2.0/24 (nor * for "
			"each)",
			value);
	return set_text(&r->network_text, value);
}

static int set_export(struct limit_rule *r, const char *value, char *why)
{
	if (!*value || strlen(value) > 64)
		return wrong(why, "limit: \"%.60s\" is no name of an export", value);
	return set_text(&r->export_name, value);
}

static const struct {
	const char *name;
	enum limit_condition bit;
	int (*set)(struct limit_rule *, const char *, char *);
} conditions[] = {
	{"user", LIMIT_USER, set_user},
	{"address", LIMIT_ADDRESS, set_address},
	{"export", LIMIT_EXPORT, set_export},
};

static int set_value(struct limit_rule *r, unsigned kind, const char *value, char *why)
{
	const struct kind *k = &kinds[kind];
	uint64_t n = 0;
	int err;

	if (r->values[kind])
		return wrong(why, "limit: %s is given twice", k->name);
	if (!strcmp(value, "none")) {
		r->values[kind] = LIMIT_NONE;
		return 0;
	}
	err = k->parse ? k->parse(value, &n) : number_parse(value, 0, UINT64_MAX, &n);
	if (err == -EINVAL)
		return wrong(
			why, "limit: %s=%.60s is neither a %s nor none", k->name, value, k->what);
	if (err || n < k->min || n > k->max)
		return wrong(why, "limit: %s=%.60s is outside %llu..%llu", k->name, value,
			(unsigned long long)k->min, (unsigned long long)k->max);
	r->values[kind] = n;
	return 0;
}

static int set_word(struct limit_rule *r, char *word, char *why)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	for (unsigned i = 0; value && i < sizeof conditions / sizeof *conditions; i++) {
		if (strcmp(conditions[i].name, word) != 0)
			continue;
		if (r->conditions & conditions[i].bit)
			return wrong(why, "limit: %s is given twice", word);
		r->conditions |= conditions[i].bit;
		return conditions[i].set(r, value, why);
	}
	for (unsigned i = 0; value && i < LIMIT_KINDS; i++)
		if (!strcmp(kinds[i].name, word))
			return set_value(r, i, value, why);
	return wrong(why,
		"limit: \"%.60s\" is none of user=, address=, export=, sessions=, memory=, "
		"open-files=, rate=, quota=, files=",
		word);
}

static int check(const struct limit_rule *r, char *why)
{
	bool any = false;

	for (unsigned i = 0; i < LIMIT_KINDS; i++)
		any |= r->values[i];
	if (!any)
		return wrong(why, "limit: it limits nothing");
	if ((r->values[LIMIT_QUOTA] || r->values[LIMIT_FILES]) && !(r->conditions & LIMIT_EXPORT))
		return wrong(why,
			"limit: quota and files are of an export: export=NAME or export=* "
			"must be said");
	return 0;
}

int limit_rule_parse(const char *text, struct limit_rule *r, char why[LIMIT_WHY_MAX])
{
	char *copy = strdup(text), *rest = NULL, *word;
	int err = 0;

	*r = (struct limit_rule){0};
	if (!copy || set_text(&r->text, text)) {
		free(copy);
		wrong(why, "out of memory");
		return -ENOMEM;
	}
	for (word = strtok_r(copy, " \t", &rest); word && !err; word = strtok_r(NULL, " \t", &rest))
		err = set_word(r, word, why);
	free(copy);
	if (!err)
		err = check(r, why);
	if (err == -ENOMEM)
		wrong(why, "out of memory");
	if (err)
		limit_rule_fini(r);
	return err;
}

void limit_rule_fini(struct limit_rule *r)
{
	free(r->text);
	free(r->user);
	free(r->export_name);
	free(r->network_text);
	*r = (struct limit_rule){0};
}

/* ---- choosing ---- */

static bool is_each(const char *text)
{
	return !strcmp(text, "*");
}

static bool fits_user(const struct limit_rule *r, const char *user)
{
	if (!user)
		return !strcmp(r->user, EXPORT_RULE_ANONYMOUS);
	return is_each(r->user) || !strcmp(r->user, user);
}

static bool fits(const struct limit_rule *r, const struct limit_facts *f)
{
	if (r->conditions & LIMIT_USER && !fits_user(r, f->user))
		return false;
	if (r->conditions & LIMIT_ADDRESS && !is_each(r->network_text) &&
		!network_has(&r->network, f->address))
		return false;
	return !(r->conditions & LIMIT_EXPORT) || is_each(r->export_name) ||
	       (f->export_name && !strcmp(r->export_name, f->export_name));
}

const struct limit_rule *limit_rule_choose(const struct limit_rule *rules, unsigned count,
	unsigned wanted, enum limit_kind kind, const struct limit_facts *facts)
{
	for (unsigned i = 0; i < count; i++)
		if (rules[i].conditions == wanted && rules[i].values[kind] &&
			fits(&rules[i], facts))
			return &rules[i];
	return NULL;
}

/* A host: of IPv6 what a host does not choose itself, as addr_host has it. */
static void put_host(const struct sockaddr *sa, char *out, socklen_t size)
{
	struct in6_addr six;

	*out = '\0';
	if (sa->sa_family == AF_INET) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, out,
			size);
	} else if (sa->sa_family == AF_INET6) {
		six = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
		if (IN6_IS_ADDR_V4MAPPED(&six)) {
			inet_ntop(AF_INET, six.s6_addr + 12, out, size);
			return;
		}
		memset(six.s6_addr + 8, 0, 8);
		inet_ntop(AF_INET6, &six, out, size);
	}
}

void limit_rule_key(
	const struct limit_rule *r, const struct limit_facts *f, char key[LIMIT_KEY_MAX])
{
	char host[INET6_ADDRSTRLEN] = "";
	const char *address = r->network_text ? r->network_text : "";
	const char *user = r->user ? r->user : "", *name = r->export_name ? r->export_name : "";

	if (r->conditions & LIMIT_ADDRESS && is_each(address)) {
		put_host(f->address, host, sizeof host);
		address = host;
	}
	if (r->conditions & LIMIT_USER && is_each(user))
		user = f->user;
	if (r->conditions & LIMIT_EXPORT && is_each(name))
		name = f->export_name ? f->export_name : "/";
	/* a user's name has no slash */
	snprintf(key, LIMIT_KEY_MAX, "%u/%.255s/%.64s/%.64s", r->conditions, user, name, address);
}
