/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/filter.c: owns the rules.
 */
#include "tree/filter.h"

#include "tree/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum filter_lines {
	FILTER_LINES_RULES,
	FILTER_LINES_INCLUDE, /* patterns */
	FILTER_LINES_EXCLUDE,
};

#define FILTER_NESTED_MAX 8u /* files of rules that name files of rules */

struct filter_rule {
	char *text;
	struct pattern *pattern;
	struct pattern *within; /* of "dir/" and three stars: what is in the directory */
	bool include;
	bool anchored;  /* against the whole name */
	bool path;      /* against its end, from a '/' on; else its last component */
	bool directory; /* directories only */
};

static void filter_clear(struct filter *f)
{
	for (size_t i = 0; i < f->count; i++) {
		free(f->rules[i].text);
		pattern_free(f->rules[i].pattern);
		pattern_free(f->rules[i].within);
	}
	f->count = 0;
}

void filter_fini(struct filter *f)
{
	filter_clear(f);
	free(f->rules);
	*f = (struct filter){0};
}

/* Room for one more. */
static int filter_grow(struct filter *f)
{
	struct filter_rule *rules;
	size_t room = f->room ? f->room * 2 : 16;

	if (f->count == FILTER_RULES_MAX)
		return -E2BIG;
	if (f->count < f->room)
		return 0;
	rules = realloc(f->rules, room * sizeof *rules);
	if (!rules)
		return -ENOMEM;
	f->rules = rules;
	f->room = room;
	return 0;
}

static int filter_refuse(int err, const char *what, const char *rule, char why[FILTER_WHY_MAX])
{
	snprintf(why, FILTER_WHY_MAX, "%s: %.200s", what, rule);
	return err;
}

int filter_add_pattern(
	struct filter *f, bool include, const char *pattern, char why[FILTER_WHY_MAX])
{
	struct filter_rule rule = {.text = strdup(pattern), .include = include};
	const char *text = pattern;
	size_t len = strlen(text);
	int err = rule.text ? 0 : -ENOMEM;

	if (err)
		goto err_refused;

	if (len > 4 && !strcmp(text + len - 4, "/***")) {
		err = pattern_new(text + (*text == '/'), len - 1 - (*text == '/'), &rule.within);
		if (err)
			goto err_refused;
		rule.directory = true;
		len -= 4;
	} else if (len && text[len - 1] == '/') {
		rule.directory = true;
		len--;
	}
	if (*text == '/') {
		rule.anchored = true;
		text++;
		len -= len > 0;
	}
	if (!len) {
		err = -EINVAL;
		goto err_refused;
	}
	rule.path = memchr(text, '/', len) || memmem(text, len, "**", 2);
	err = pattern_new(text, len, &rule.pattern);
	if (!err)
		err = filter_grow(f);
	if (err)
		goto err_refused;
	f->rules[f->count++] = rule;
	return 0;

err_refused:
	free(rule.text);
	pattern_free(rule.pattern);
	pattern_free(rule.within);
	return filter_refuse(err,
		err == -EINVAL         ? "a rule without a pattern"
		: err == -E2BIG        ? "too many rules"
		: err == -ENAMETOOLONG ? "a pattern that is too long"
				       : "out of memory",
		pattern, why);
}

static const struct {
	const char *word;
	char action;
} words[] = {
	{"+", '+'},
	{"include", '+'},
	{"-", '-'},
	{"exclude", '-'},
	{".", '.'},
	{".-", 'x'},
	{".+", 'i'},
	{"merge", '.'},
	{"!", '!'},
	{"clear", '!'},
};

/* What a rule begins with: its action, and what follows in *rest; 0: no rule begins so. */
static char filter_word(const char *rule, const char **rest)
{
	size_t len = strcspn(rule, " _");

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].word) == len && !memcmp(words[i].word, rule, len)) {
			*rest = rule + len + (rule[len] != '\0');
			return words[i].action;
		}
	return 0;
}

static int filter_add_file(struct filter *, const char *path, enum filter_lines, unsigned nested,
	char why[FILTER_WHY_MAX]);

static int filter_add_rule(
	struct filter *f, const char *rule, unsigned nested, char why[FILTER_WHY_MAX])
{
	const char *rest = "";
	char action = filter_word(rule, &rest);

	switch (action) {
	case '+':
	case '-':
		return filter_add_pattern(f, action == '+', rest, why);
	case '.':
	case 'x':
	case 'i':
		if (!*rest)
			return filter_refuse(-EINVAL, "a rule without a file", rule, why);
		return filter_add_file(f, rest,
			action == 'x'   ? FILTER_LINES_EXCLUDE
			: action == 'i' ? FILTER_LINES_INCLUDE
					: FILTER_LINES_RULES,
			nested + 1, why);
	case '!':
		if (*rest)
			return filter_refuse(-EINVAL, "nothing may follow here", rule, why);
		filter_clear(f);
		return 0;
	default:
		return filter_refuse(
			-EINVAL, "a rule begins with \"+ \", \"- \", \". \" or \"!\"", rule, why);
	}
}

int filter_add(struct filter *f, const char *rule, char why[FILTER_WHY_MAX])
{
	return filter_add_rule(f, rule, 0, why);
}

static int filter_add_line(struct filter *f, const char *line, enum filter_lines lines,
	unsigned nested, char why[FILTER_WHY_MAX])
{
	if (lines == FILTER_LINES_RULES || !strncmp(line, "+ ", 2) || !strncmp(line, "- ", 2) ||
		!strcmp(line, "!"))
		return filter_add_rule(f, line, nested, why);
	return filter_add_pattern(f, lines == FILTER_LINES_INCLUDE, line, why);
}

/* What is between `text` and `end`, at which there is room for a byte. */
static int filter_add_lines(struct filter *f, char *text, char *end, const char *path,
	enum filter_lines lines, unsigned nested, char why[FILTER_WHY_MAX])
{
	char *next;
	int err = 0;

	for (unsigned number = 1; !err && text < end; number++, text = next) {
		char reason[FILTER_WHY_MAX] = "";
		char *stop = memchr(text, '\n', (size_t)(end - text));

		next = stop ? stop + 1 : end;
		stop = stop ? stop : end;
		if (stop > text && stop[-1] == '\r')
			stop--;
		*stop = '\0';
		if (strlen(text) != (size_t)(stop - text)) {
			err = -EINVAL;
			snprintf(reason, sizeof reason, "a NUL in the line");
		} else if (*text && !strchr("#;", *text)) {
			err = filter_add_line(f, text, lines, nested, reason);
		}
		if (err)
			snprintf(why, FILTER_WHY_MAX, "%.200s:%u: %.280s", path, number, reason);
	}
	return err;
}

/* No more is read than a file may have: one without lines may have no end. */
static int filter_read(struct filter *f, FILE *file, const char *path, enum filter_lines lines,
	unsigned nested, char why[FILTER_WHY_MAX])
{
	char *text = malloc(FILTER_FILE_BYTES_MAX + 1);
	size_t n;
	int err;

	if (!text)
		return filter_refuse(-ENOMEM, "out of memory", path, why);
	n = fread(text, 1, FILTER_FILE_BYTES_MAX + 1, file);
	if (ferror(file)) {
		err = -errno;
		snprintf(why, FILTER_WHY_MAX, "%.200s: %s", path, strerror(-err));
	} else if (n > FILTER_FILE_BYTES_MAX) {
		err = -EFBIG;
		snprintf(why, FILTER_WHY_MAX, "%.200s: longer than %u bytes", path,
			FILTER_FILE_BYTES_MAX);
	} else {
		err = filter_add_lines(f, text, text + n, path, lines, nested, why);
	}
	free(text);
	return err;
}

static int filter_add_file(struct filter *f, const char *path, enum filter_lines lines,
	unsigned nested, char why[FILTER_WHY_MAX])
{
	FILE *file;
	int err;

	if (nested > FILTER_NESTED_MAX)
		return filter_refuse(
			-ELOOP, "files of rules that name each other too deeply", path, why);
	file = fopen(path, "re");
	if (!file) {
		err = -errno;
		snprintf(why, FILTER_WHY_MAX, "%.200s: %s", path, strerror(-err));
		return err;
	}
	err = filter_read(f, file, path, lines, nested, why);
	fclose(file);
	return err;
}

const char *filter_rule_pattern(const struct filter *f, size_t i, bool *include)
{
	*include = f->rules[i].include;
	return f->rules[i].text;
}

static bool filter_matches(
	const struct filter_rule *rule, const struct pattern *pattern, const char *name, size_t len)
{
	const char *last;

	if (rule->anchored)
		return pattern_matches(pattern, name, len);
	if (rule->path || pattern == rule->within)
		return pattern_matches_end(pattern, name, len);
	last = memrchr(name, '/', len);
	last = last ? last + 1 : name;
	return pattern_matches(pattern, last, len - (size_t)(last - name));
}

bool filter_excludes(const struct filter *f, const char *name, bool directory)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < f->count; i++) {
		const struct filter_rule *rule = &f->rules[i];

		if ((directory || !rule->directory) &&
			filter_matches(rule, rule->pattern, name, len))
			return !rule->include;
		if (rule->within && filter_matches(rule, rule->within, name, len))
			return !rule->include;
	}
	return false;
}
