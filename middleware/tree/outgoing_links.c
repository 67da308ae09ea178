/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_links: see outgoing_links.h.
 */
#include "tree/outgoing_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINKS_BUCKETS_FIRST 64u

struct outgoing_node {
	struct outgoing_node *next;
	dev_t dev;
	ino_t ino;
	nlink_t left; /* names that have not come */
	uint32_t number;
	char *name;
};

struct outgoing_links {
	struct outgoing_node **buckets;
	size_t room, count; /* room: a power of two */
};

static size_t links_bucket(size_t room, dev_t dev, ino_t ino)
{
	return (size_t)(((uint64_t)ino ^ (uint64_t)dev << 32) * 0x9e3779b97f4a7c15ull >> 32) &
	       (room - 1);
}

int outgoing_links_new(struct outgoing_links **out)
{
	struct outgoing_links *l = calloc(1, sizeof *l);

	*out = l;
	if (!l)
		return -ENOMEM;
	l->room = LINKS_BUCKETS_FIRST;
	l->buckets = calloc(l->room, sizeof(struct outgoing_node *));
	if (l->buckets)
		return 0;
	free(l);
	*out = NULL;
	return -ENOMEM;
}

static void links_free_node(struct outgoing_node *node)
{
	free(node->name);
	free(node);
}

void outgoing_links_free(struct outgoing_links *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->room; i++) {
		while (l->buckets[i]) {
			struct outgoing_node *node = l->buckets[i];

			l->buckets[i] = node->next;
			links_free_node(node);
		}
	}
	free(l->buckets);
	free(l);
}

/* Twice as many buckets; without memory for them it goes on as it is. */
static void links_grow(struct outgoing_links *l)
{
	size_t room = l->room * 2;
	struct outgoing_node **buckets = calloc(room, sizeof(struct outgoing_node *));

	if (!buckets)
		return;
	for (size_t i = 0; i < l->room; i++) {
		while (l->buckets[i]) {
			struct outgoing_node *node = l->buckets[i];
			size_t at = links_bucket(room, node->dev, node->ino);

			l->buckets[i] = node->next;
			node->next = buckets[at];
			buckets[at] = node;
		}
	}
	free(l->buckets);
	l->buckets = buckets;
	l->room = room;
}

static int links_add(
	struct outgoing_links *l, const struct stat *st, uint32_t number, struct wire_bytes name)
{
	struct outgoing_node *node, **bucket;

	if (l->count == OUTGOING_LINKS_MAX)
		return -ENOSPC;
	if (l->count == l->room)
		links_grow(l);
	node = calloc(1, sizeof *node);
	if (!node)
		return -ENOMEM;
	node->name = strndup(name.len ? (const char *)name.data : "", name.len);
	if (!node->name) {
		free(node);
		return -ENOMEM;
	}
	bucket = &l->buckets[links_bucket(l->room, st->st_dev, st->st_ino)];
	node->dev = st->st_dev;
	node->ino = st->st_ino;
	node->left = st->st_nlink - 1;
	node->number = number;
	node->next = *bucket;
	*bucket = node;
	l->count++;
	return 0;
}

int outgoing_links_meet(struct outgoing_links *l, const struct stat *st, uint32_t number,
	struct wire_bytes name, struct outgoing_first *first)
{
	struct outgoing_node **at = &l->buckets[links_bucket(l->room, st->st_dev, st->st_ino)];
	struct outgoing_node *node;

	while (*at && ((*at)->dev != st->st_dev || (*at)->ino != st->st_ino))
		at = &(*at)->next;
	node = *at;
	if (!node)
		return links_add(l, st, number, name);
	first->number = node->number;
	first->name = strdup(node->name);
	if (!first->name)
		return -ENOMEM;
	if (!--node->left) {
		*at = node->next;
		l->count--;
		links_free_node(node);
	}
	return 1;
}
