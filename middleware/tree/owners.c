/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/owners: see owners.h.
 */
#include "tree/owners.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OWNERS_KEPT 32u        /* of each kind and direction */
#define OWNERS_ROOM (1u << 16) /* for what the name services say of one */

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
	char room[OWNERS_ROOM];
};

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

/* NULL: it has none. */
static const char *owners_ask_name(struct owners *o, enum owners_kind kind, uint32_t id)
{
	struct passwd user, *u = NULL;
	struct group group, *g = NULL;

	if (kind == OWNERS_USER)
		return getpwuid_r(id, &user, o->room, sizeof o->room, &u) || !u ? NULL : u->pw_name;
	return getgrgid_r(id, &group, o->room, sizeof o->room, &g) || !g ? NULL : g->gr_name;
}

static bool owners_ask_id(struct owners *o, enum owners_kind kind, const char *name, uint32_t *id)
{
	struct passwd user, *u = NULL;
	struct group group, *g = NULL;

	if (kind == OWNERS_USER) {
		if (getpwnam_r(name, &user, o->room, sizeof o->room, &u) || !u)
			return false;
		*id = u->pw_uid;
		return true;
	}
	if (getgrnam_r(name, &group, o->room, sizeof o->room, &g) || !g)
		return false;
	*id = g->gr_gid;
	return true;
}

const char *owners_name(struct owners *o, enum owners_kind kind, uint32_t id)
{
	struct owners_table *t = &o->names[kind];
	struct owners_entry *e;
	const char *name;

	if (!id)
		return "";
	for (unsigned i = 0; i < OWNERS_KEPT; i++)
		if (t->entries[i].used && t->entries[i].id == id)
			return t->entries[i].name;
	e = owners_replace(t);
	e->id = id;
	name = owners_ask_name(o, kind, id);
	if (name && strlen(name) <= OWNERS_NAME_MAX)
		strcpy(e->name, name);
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
	e->found = owners_ask_id(o, kind, name, &e->id);
	return e->found ? e->id : id;
}
