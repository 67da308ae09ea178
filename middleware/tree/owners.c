/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/owners: see owners.h.
 */
#include "tree/owners.h"

#include "base/lookup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OWNERS_KEPT 32u /* of each kind and direction */

_Static_assert(OWNERS_NAME_MAX == LOOKUP_NAME_MAX, "an entry has room for any name");

struct owners_entry {
	bool used, found;
	uint32_t id;
	char name[OWNERS_NAME_MAX + 1];
};

struct owners_table {
	struct owners_entry entries[OWNERS_KEPT];
	unsigned next; /* to be replaced */
};

struct owners {
	struct owners_table names[2], ids[2]; /* by enum owners_kind */
};

static const enum lookup_kind owners_kinds[] = {
	[OWNERS_USER] = LOOKUP_USER, [OWNERS_GROUP] = LOOKUP_GROUP};

int owners_new(struct owners **out)
{
	*out = calloc(1, sizeof **out);
	return *out ? 0 : -ENOMEM;
}

void owners_free(struct owners *o)
{
	free(o);
}

static struct owners_entry *owners_replace(struct owners_table *t)
{
	struct owners_entry *e = &t->entries[t->next++ % OWNERS_KEPT];

	*e = (struct owners_entry){.used = true};
	return e;
}

const char *owners_name(struct owners *o, enum owners_kind kind, uint32_t id)
{
	struct owners_table *t = &o->names[kind];
	struct owners_entry *e;

	if (!id)
		return "";
	for (unsigned i = 0; i < OWNERS_KEPT; i++)
		if (t->entries[i].used && t->entries[i].id == id)
			return t->entries[i].name;
	e = owners_replace(t);
	e->id = id;
	if (lookup_name(owners_kinds[kind], id, e->name))
		*e->name = '\0';
	return e->name;
}

uint32_t owners_id(struct owners *o, enum owners_kind kind, const char *name, uint32_t id)
{
	struct owners_table *t = &o->ids[kind];
	struct owners_entry *e;

	if (!*name || strlen(name) > OWNERS_NAME_MAX)
		return id;
	for (unsigned i = 0; i < OWNERS_KEPT; i++)
		if (t->entries[i].used && !strcmp(t->entries[i].name, name))
			return t->entries[i].found ? t->entries[i].id : id;
	e = owners_replace(t);
	strcpy(e->name, name);
	e->found = !lookup_id(owners_kinds[kind], name, &e->id);
	return e->found ? e->id : id;
}
