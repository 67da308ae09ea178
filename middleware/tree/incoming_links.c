/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_links: see incoming_links.h.
 */
#include "tree/incoming_links.h"

#include <errno.h>
#include <stdlib.h>

#define LINKS_ROOM_FIRST 64u

void incoming_links_fini(struct incoming_links *l)
{
	free(l->slots);
	*l = (struct incoming_links){0};
}

/* The slot of a number, or the empty one where it belongs. */
static struct incoming_landed *links_slot(
	struct incoming_landed *slots, size_t room, uint32_t number)
{
	size_t i = number * 0x9e3779b1u & (room - 1);

	while (slots[i].number && slots[i].number != number)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static int links_grow(struct incoming_links *l)
{
	size_t room = l->room ? l->room * 2 : LINKS_ROOM_FIRST;
	struct incoming_landed *slots = calloc(room, sizeof *slots);

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < l->room; i++)
		if (l->slots[i].number)
			*links_slot(slots, room, l->slots[i].number) = l->slots[i];
	free(l->slots);
	l->slots = slots;
	l->room = room;
	return 0;
}

int incoming_links_add(struct incoming_links *l, const struct incoming_landed *landed)
{
	if (l->count == INCOMING_LINKS_MAX)
		return -ENOSPC;
	if ((l->count + 1) * 2 > l->room && links_grow(l))
		return -ENOMEM;
	*links_slot(l->slots, l->room, landed->number) = *landed;
	l->count++;
	return 0;
}

const struct incoming_landed *incoming_links_find(const struct incoming_links *l, uint32_t number)
{
	const struct incoming_landed *slot = l->room ? links_slot(l->slots, l->room, number) : NULL;

	return slot && slot->number ? slot : NULL;
}
