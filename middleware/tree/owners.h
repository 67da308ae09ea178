/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/owners: users and groups by name and by number, as this host knows them.
 *
 * Remembers what it was told last, so that a tree of one user's files asks once.  Number 0 has no
 * name here: root is root everywhere.  Each call may block for as long as the host's name services
 * do.  One thread at a time.
 */
#ifndef TREE_OWNERS_H
#define TREE_OWNERS_H

#include <stdint.h>

#define OWNERS_NAME_MAX 255u

enum owners_kind { OWNERS_USER, OWNERS_GROUP };

struct owners;

int owners_new(struct owners **out); /* 0 or -ENOMEM */
void owners_free(struct owners *);

/* "" when the number has no name.  Valid until the next call. */
const char *owners_name(struct owners *, enum owners_kind, uint32_t id);
/* The number of a name; `id` when there is none of that name, or the name is "". */
uint32_t owners_id(struct owners *, enum owners_kind, const char *name, uint32_t id);

#endif
