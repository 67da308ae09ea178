/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/selection.c: see selection.h.
 */
#include "tree/selection.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The end before a '/', and that before any other byte. */
static int rank(char c)
{
	return !c ? 0 : c == '/' ? 1 : (uint8_t)c + 1;
}

int selection_order(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return rank(*a) - rank(*b);
}

void selection_fini(struct selection *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->names[i]);
	free(s->names);
	free(s->way);
	free(s->told);
	*s = (struct selection){0};
}

int selection_add(struct selection *s, const char *name, size_t len)
{
	size_t room = s->room ? s->room * 2 : 64;
	char **names = s->names;

	if (s->count == s->room) {
		names = realloc(s->names, room * sizeof *names);
		if (!names)
			return -ENOMEM;
		s->names = names;
		s->room = room;
	}
	names[s->count] = strndup(name, len);
	if (!names[s->count])
		return -ENOMEM;
	s->count++;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return selection_order(*(char *const *)a, *(char *const *)b);
}

/* Whether `name` is `directory` or in it. */
static bool is_beneath(const char *name, const char *directory)
{
	size_t len = strlen(directory);

	return !strncmp(name, directory, len) && (!name[len] || name[len] == '/');
}

int selection_sort(struct selection *s)
{
	size_t longest = 0, kept = 0;

	if (s->count)
		qsort(s->names, s->count, sizeof *s->names, compare);
	for (size_t i = 0; i < s->count; i++) {
		size_t len = strlen(s->names[i]);

		if (kept && is_beneath(s->names[i], s->names[kept - 1])) {
			free(s->names[i]);
			continue;
		}
		longest = len > longest ? len : longest;
		s->names[kept++] = s->names[i];
	}
	s->count = kept;
	free(s->way);
	free(s->told);
	s->way = calloc(1, longest + 1);
	s->told = calloc(1, longest + 1);
	return s->way && s->told ? 0 : -ENOMEM;
}

enum selection_step selection_next(struct selection *s, const char **name)
{
	const char *next = s->at < s->count ? s->names[s->at] : NULL, *slash;
	size_t way = strlen(s->way);

	*name = s->told;
	if (way && (!next || !is_beneath(next, s->way))) {
		char *last = strrchr(s->way, '/');

		strcpy(s->told, s->way);
		*(last ? last : s->way) = '\0';
		return SELECTION_LEAVE;
	}
	if (!next)
		return SELECTION_END;
	if (way && !strcmp(next + way, "/")) { /* the directory, that was all */
		s->at++;
		return selection_next(s, name);
	}
	slash = strchr(next + way + (way > 0), '/');
	if (slash) {
		memcpy(s->way, next, (size_t)(slash - next));
		s->way[slash - next] = '\0';
		strcpy(s->told, s->way);
		return SELECTION_ENTER;
	}
	strcpy(s->told, next);
	s->at++;
	return SELECTION_NAME;
}

bool selection_is_last(const struct selection *s)
{
	const char *this = s->names[s->at], *next = s->at + 1 < s->count ? s->names[s->at + 1] : "";

	return !strcmp(this + strlen(s->way), "/") && !is_beneath(next, s->way);
}
