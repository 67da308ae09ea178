/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/pattern.c: a pattern is a row of items, and matching goes through the text once with the set
 * of items that could be next (Thompson, 1968), so there is no going back.
 */
#include "tree/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum pattern_kind {
	PATTERN_BYTE,
	PATTERN_ONE,  /* '?' */
	PATTERN_SET,  /* [...] */
	PATTERN_STAR, /* '*' */
	PATTERN_ALL,  /* "**" */
};

struct pattern_item {
	uint8_t kind; /* enum pattern_kind */
	uint8_t byte;
	uint16_t set; /* index */
};

struct pattern_set {
	uint8_t bits[32];
};

struct pattern {
	size_t count;
	size_t plain;  /* that many items in front are bytes */
	size_t behind; /* and so many at the end */
	struct pattern_set *sets;
	struct pattern_item items[];
};

static void set_add(struct pattern_set *set, unsigned byte)
{
	set->bits[byte / 8] |= (uint8_t)(1u << byte % 8);
}

static bool set_has(const struct pattern_set *set, uint8_t byte)
{
	return set->bits[byte / 8] >> byte % 8 & 1;
}

static const struct {
	const char *name;
	int (*is)(int);
} classes[] = {
	{"alnum", isalnum},
	{"alpha", isalpha},
	{"blank", isblank},
	{"cntrl", iscntrl},
	{"digit", isdigit},
	{"graph", isgraph},
	{"lower", islower},
	{"print", isprint},
	{"punct", ispunct},
	{"space", isspace},
	{"upper", isupper},
	{"xdigit", isxdigit},
};

/* A class's name and ":]" at `text`: the bytes taken, or 0. */
static size_t set_add_class(struct pattern_set *set, const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
		size_t n = strlen(classes[i].name);

		if (len < n + 2 || memcmp(text, classes[i].name, n) || text[n] != ':' ||
			text[n + 1] != ']')
			continue;
		for (unsigned byte = 0; byte < 128; byte++)
			if (classes[i].is((int)byte))
				set_add(set, byte);
		return n + 2;
	}
	return 0;
}

/* What stands behind a '[': the bytes taken with its ']', or 0: it has no end. */
static size_t set_read(struct pattern_set *set, const char *text, size_t len)
{
	size_t i = 0, first;
	bool negate = false;

	memset(set, 0, sizeof *set);
	if (i < len && (text[i] == '!' || text[i] == '^')) {
		negate = true;
		i++;
	}
	for (first = i; i < len && (text[i] != ']' || i == first); i++) {
		unsigned from, to;
		size_t n;

		if (text[i] == '[' && i + 1 < len && text[i + 1] == ':' &&
			(n = set_add_class(set, text + i + 2, len - i - 2))) {
			i += 1 + n;
			continue;
		}
		if (text[i] == '\\' && i + 1 < len)
			i++;
		from = to = (uint8_t)text[i];
		if (i + 2 < len && text[i + 1] == '-' && text[i + 2] != ']') {
			i += 2;
			if (text[i] == '\\' && i + 1 < len)
				i++;
			to = (uint8_t)text[i];
		}
		for (; from <= to; from++)
			set_add(set, from);
	}
	if (i >= len)
		return 0;
	for (size_t b = 0; negate && b < sizeof set->bits; b++)
		set->bits[b] = (uint8_t)~set->bits[b];
	set->bits['/' / 8] &= (uint8_t) ~(1u << '/' % 8);
	return i + 1;
}

/* The item at `text`; the bytes taken. */
static size_t pattern_read_item(
	struct pattern *p, struct pattern_item *item, size_t *sets, const char *text, size_t len)
{
	size_t n;

	*item = (struct pattern_item){.kind = PATTERN_BYTE, .byte = (uint8_t)*text};
	switch (*text) {
	case '\\':
		if (len < 2)
			return 1;
		item->byte = (uint8_t)text[1];
		return 2;
	case '?':
		item->kind = PATTERN_ONE;
		return 1;
	case '*':
		n = 1;
		while (n < len && text[n] == '*')
			n++;
		item->kind = n > 1 ? PATTERN_ALL : PATTERN_STAR;
		return n;
	case '[':
		n = set_read(&p->sets[*sets], text + 1, len - 1);
		if (!n)
			return 1;
		item->kind = PATTERN_SET;
		item->set = (uint16_t)(*sets)++;
		return n + 1;
	default:
		return 1;
	}
}

int pattern_new(const char *text, size_t len, struct pattern **out)
{
	struct pattern *p;
	size_t sets = 0;

	*out = NULL;
	if (len > PATTERN_MAX)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < len; i++)
		sets += text[i] == '[';
	p = calloc(1, sizeof *p + len * sizeof *p->items);
	if (!p)
		return -ENOMEM;
	p->sets = calloc(sets + 1, sizeof *p->sets);
	if (!p->sets) {
		free(p);
		return -ENOMEM;
	}
	sets = 0;
	for (size_t i = 0; i < len;)
		i += pattern_read_item(p, &p->items[p->count++], &sets, text + i, len - i);
	while (p->plain < p->count && p->items[p->plain].kind == PATTERN_BYTE)
		p->plain++;
	while (p->behind < p->count - p->plain &&
		p->items[p->count - 1 - p->behind].kind == PATTERN_BYTE)
		p->behind++;
	*out = p;
	return 0;
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	free(p->sets);
	free(p);
}

bool pattern_is_plain(const struct pattern *p)
{
	return p->plain == p->count;
}

static bool item_takes(const struct pattern *p, const struct pattern_item *item, uint8_t byte)
{
	switch ((enum pattern_kind)item->kind) {
	case PATTERN_BYTE:
		return item->byte == byte;
	case PATTERN_SET:
		return set_has(&p->sets[item->set], byte);
	case PATTERN_ONE:
	case PATTERN_STAR:
		return byte != '/';
	case PATTERN_ALL:
		return true;
	}
	return false;
}

static bool item_repeats(const struct pattern_item *item)
{
	return item->kind == PATTERN_STAR || item->kind == PATTERN_ALL;
}

/* Item `at` may be next; one that may stand for nothing lets the one behind it be, too. */
static void reach(const struct pattern *p, uint8_t *next, size_t at, size_t end)
{
	while (!next[at]) {
		next[at] = 1;
		if (at == end || !item_repeats(&p->items[at]))
			return;
		at++;
	}
}

/* Items from..end-1 against the text, which begins and ends as the pattern does.  `again`: or
 * against what is behind any '/' in it, all at the same time. */
static bool match_rest(const struct pattern *p, size_t from, size_t end, const uint8_t *text,
	size_t len, bool again)
{
	uint8_t now[PATTERN_MAX + 1], next[PATTERN_MAX + 1];
	bool any = true;

	memset(now, 0, end + 1);
	reach(p, now, from, end);
	for (size_t i = 0; i < len && (any || again); i++) {
		any = again && text[i] == '/';
		memset(next + from, 0, end + 1 - from);
		for (size_t at = from; at < end; at++) {
			if (!now[at] || !item_takes(p, &p->items[at], text[i]))
				continue;
			any = true;
			reach(p, next, item_repeats(&p->items[at]) ? at : at + 1, end);
		}
		if (again && text[i] == '/')
			reach(p, next, from, end);
		memcpy(now + from, next + from, end + 1 - from);
	}
	return any && now[end];
}

/* So many items from `from` on, which are bytes, and those of the text. */
static bool are_bytes(const struct pattern *p, size_t from, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++)
		if (p->items[from + i].byte != (uint8_t)text[i])
			return false;
	return true;
}

bool pattern_matches(const struct pattern *p, const char *text, size_t len)
{
	size_t end = p->count - p->behind;

	if (len < p->plain + p->behind || (pattern_is_plain(p) && len != p->plain))
		return false;
	if (!are_bytes(p, 0, p->plain, text) ||
		!are_bytes(p, end, p->behind, text + len - p->behind))
		return false;
	return pattern_is_plain(p) || match_rest(p, p->plain, end, (const uint8_t *)text + p->plain,
					      len - p->plain - p->behind, false);
}

bool pattern_matches_end(const struct pattern *p, const char *text, size_t len)
{
	size_t end = p->count - p->behind, left;
	const char *slash;

	if (len < p->plain + p->behind || !are_bytes(p, end, p->behind, text + len - p->behind))
		return false;
	left = len - p->behind;
	if (pattern_is_plain(p))
		return (left == p->plain || text[left - p->plain - 1] == '/') &&
		       are_bytes(p, 0, p->plain, text + left - p->plain);
	/* most names do not begin as it does, anywhere */
	while (left >= p->plain && !are_bytes(p, 0, p->plain, text)) {
		slash = memchr(text, '/', left);
		if (!slash)
			return false;
		left -= (size_t)(slash + 1 - text);
		text = slash + 1;
	}
	return left >= p->plain && match_rest(p, 0, end, (const uint8_t *)text, left, true);
}
