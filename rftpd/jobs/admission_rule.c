/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/admission_rule: see admission_rule.h.
 */
#include "rftpd/jobs/admission_rule.h"

#include "base/number.h"
#include "proto/message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHY_MAX 256u

_Static_assert(ADMISSION_NAME_MAX == MESSAGE_CLASS_MAX, "a class's name may cross");

static int wrong(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int wrong(char *why, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, WHY_MAX, format, ap);
	va_end(ap);
	return -EINVAL;
}

/* ---- reading ---- */

static int set_text(char **field, const char *value, char *why)
{
	free(*field);
	*field = strdup(value);
	return *field ? 0 : (wrong(why, "out of memory"), -ENOMEM);
}

static int set_deadline(struct admission_rule *r, const char *value, char *why)
{
	return number_parse_time(value, &r->deadline_ns)
		       ? wrong(why, "class %s: deadline=%.60s is no time (100ms, 2s, 5m)", r->name,
				 value)
		       : 0;
}

static int set_share(struct admission_rule *r, const char *value, char *why)
{
	return number_parse_rate(value, &r->share) || !r->share
		       ? wrong(why, "class %s: share=%.60s is no rate (bytes a second: 100M, 2.5G)",
				 r->name, value)
		       : 0;
}

static int set_address(struct admission_rule *r, const char *value, char *why)
{
	char host[INET6_ADDRSTRLEN + 1];
	size_t len = strcspn(value, "/");
	uint64_t bits;
	bool good = len < sizeof host;

	snprintf(host, sizeof host, "%.*s", (int)len, value);
	r->family = strchr(host, ':') ? AF_INET6 : AF_INET;
	bits = r->family == AF_INET ? 32 : 128;
	good = good && inet_pton(r->family, host, r->network) == 1;
	if (good && value[len])
		good = !number_parse(value + len + 1, 0, bits, &bits);
	r->network_bits = (unsigned)bits;
	return good ? 0
		    : wrong(why, "class %s: address=%.60s is no address or network (10.0.0.0/8)",
			      r->name, value);
}

static int set_operation(struct admission_rule *r, const char *value, char *why)
{
	static const char *const names[] = {"put", "get", "feed"};

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(value, names[i])) {
			r->operations |= 1u << i;
			return 0;
		}
	return wrong(why, "class %s: operation=%.60s is none of put, get, feed", r->name, value);
}

static int set_user(struct admission_rule *r, const char *value, char *why)
{
	return set_text(&r->user, value, why);
}

static int set_export(struct admission_rule *r, const char *value, char *why)
{
	return set_text(&r->export_name, value, why);
}

static int set_path(struct admission_rule *r, const char *value, char *why)
{
	return set_text(&r->path, value + strspn(value, "/"), why);
}

static int set_ask(struct admission_rule *r, const char *value, char *why)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return wrong(why, "class %s: ask=%.60s is neither yes nor no", r->name, value);
	r->ask = !strcmp(value, "yes");
	return 0;
}

static const struct {
	const char *name;
	int (*set)(struct admission_rule *, const char *value, char *why);
} options[] = {
	{"deadline", set_deadline},
	{"share", set_share},
	{"address", set_address},
	{"user", set_user},
	{"export", set_export},
	{"path", set_path},
	{"operation", set_operation},
	{"ask", set_ask},
};

static int set_option(struct admission_rule *r, char *word, char *why)
{
	char *value = strchr(word, '=');

	if (!value || !value[1])
		return wrong(why, "class %s: %.60s is not NAME=VALUE", r->name, word);
	*value++ = '\0';
	for (unsigned i = 0; i < sizeof options / sizeof *options; i++)
		if (!strcmp(options[i].name, word))
			return options[i].set(r, value, why);
	return wrong(why,
		"class %s: \"%.60s\" is none of deadline, share, address, user, export, path, "
		"operation, ask",
		r->name, word);
}

static int set_name(struct admission_rule *r, const char *word, char *why)
{
	if (!word || !message_class_ok((struct wire_bytes){(const uint8_t *)word, strlen(word)}))
		return wrong(why,
			"class: \"%.60s\" is no name: 1 to %u letters, digits, '-' and '_'",
			word ? word : "", ADMISSION_NAME_MAX);
	strcpy(r->name, word);
	return 0;
}

static int set_rank(struct admission_rule *r, const char *word, char *why)
{
	uint64_t rank;

	if (!word || number_parse(word, 0, ADMISSION_RANK_MAX, &rank))
		return wrong(why, "class %s: the rank, 0 (first) to %u, comes behind the name",
			r->name, ADMISSION_RANK_MAX);
	r->rank = (unsigned)rank;
	return 0;
}

int admission_rule_parse(const char *text, struct admission_rule *r, char *why)
{
	char *copy = strdup(text), *rest = NULL, *word;
	int err;

	*r = (struct admission_rule){.deadline_ns = ADMISSION_NEVER};
	if (!copy) {
		wrong(why, "out of memory");
		return -ENOMEM;
	}
	err = set_name(r, strtok_r(copy, " \t", &rest), why);
	if (!err)
		err = set_rank(r, strtok_r(NULL, " \t", &rest), why);
	while (!err && (word = strtok_r(NULL, " \t", &rest)))
		err = set_option(r, word, why);
	free(copy);
	if (err)
		admission_rule_fini(r);
	return err;
}

void admission_rule_fini(struct admission_rule *r)
{
	free(r->user);
	free(r->export_name);
	free(r->path);
	*r = (struct admission_rule){0};
}

/* ---- choosing ---- */

/* Its bytes; IPv4 in IPv6 is IPv4. */
static const uint8_t *bytes_of(const struct sockaddr *address, sa_family_t *family)
{
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;

	*family = address->sa_family;
	if (address->sa_family == AF_INET)
		return (const uint8_t *)&four->sin_addr;
	if (address->sa_family != AF_INET6)
		return NULL;
	if (!IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		return six->sin6_addr.s6_addr;
	*family = AF_INET;
	return six->sin6_addr.s6_addr + 12;
}

static bool fits_address(const struct admission_rule *r, const struct sockaddr *address)
{
	unsigned whole = r->network_bits / 8, left = r->network_bits % 8;
	sa_family_t family;
	const uint8_t *bytes;

	if (r->family == AF_UNSPEC)
		return true;
	bytes = address ? bytes_of(address, &family) : NULL;
	if (!bytes || family != r->family || memcmp(bytes, r->network, whole))
		return false;
	return !left || bytes[whole] >> (8 - left) == r->network[whole] >> (8 - left);
}

static bool fits_text(const char *wanted, const char *is)
{
	return !wanted || (is && !strcmp(wanted, is));
}

/* Whole components: "a/b" begins "a/b/c", and not "a/bc". */
static bool fits_path(const char *prefix, const char *path)
{
	size_t len = prefix ? strlen(prefix) : 0;

	if (!prefix)
		return true;
	if (!path)
		return false;
	path += strspn(path, "/");
	while (len && prefix[len - 1] == '/')
		len--;
	return !strncmp(prefix, path, len) && (!len || !path[len] || path[len] == '/');
}

static bool fits(const struct admission_rule *r, const struct admission_facts *f)
{
	return (!r->operations || r->operations & f->operation) && fits_address(r, f->address) &&
	       fits_text(r->user, f->user) && fits_text(r->export_name, f->export_name) &&
	       fits_path(r->path, f->path);
}

static bool is_name(const struct admission_rule *rules, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(rules[i].name, name))
			return true;
	return false;
}

const struct admission_rule *admission_rule_choose(const struct admission_rule *rules,
	unsigned count, const struct admission_facts *facts, const char *asked)
{
	const struct admission_rule *given = NULL, *lower = NULL;

	for (unsigned i = 0; i < count && !given; i++)
		if (!rules[i].ask && fits(&rules[i], facts))
			given = &rules[i];
	if (!*asked || (given && !strcmp(given->name, asked)))
		return given;
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(rules[i].name, asked))
			continue;
		if (rules[i].ask && fits(&rules[i], facts))
			return &rules[i];
		if (given && rules[i].rank >= given->rank && !lower)
			lower = &rules[i];
	}
	/* the last of all, if it is not the name of a rule */
	if (!strcmp(asked, ADMISSION_DEFAULT) && !is_name(rules, count, asked))
		return NULL;
	return lower ? lower : given;
}

bool admission_rule_exists(const struct admission_rule *rules, unsigned count, const char *name)
{
	return !strcmp(name, ADMISSION_DEFAULT) || is_name(rules, count, name);
}

static void append(char *out, size_t size, const char *text)
{
	size_t used = strlen(out);

	snprintf(out + used, size - used, "%s%s", used ? ", " : "", text);
}

void admission_rule_names(
	const struct admission_rule *rules, unsigned count, char *out, size_t size)
{
	*out = '\0';
	for (unsigned i = 0; i < count; i++)
		if (!is_name(rules, i, rules[i].name))
			append(out, size, rules[i].name);
	if (!is_name(rules, count, ADMISSION_DEFAULT))
		append(out, size, ADMISSION_DEFAULT);
}
