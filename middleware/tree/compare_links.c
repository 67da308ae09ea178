/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/compare_links.c: which names of the first tree are one file, and whether they are one in the
 * second.
 *
 * The names of a file that need a link are told with all others of it, also with those that are
 * right: the first one of them is what the others are linked to.
 */
#include "tree/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_inode(const void *a, const void *b)
{
	const struct compare_entry *x = *(struct compare_entry *const *)a,
				   *y = *(struct compare_entry *const *)b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Names of one file, in their order.  One that the second tree lacks is copied, as a link. */
static bool are_one(struct compare_entry *const *names, size_t count, const struct compare_list *to)
{
	const struct compare_entry *first = compare_list_find(to, names[0]->name);

	for (size_t i = 0; i < count; i++) {
		const struct compare_entry *e = compare_list_find(to, names[i]->name);

		if (!e || e->type != MESSAGE_FILE || e->failed || !first || !e->inode ||
			e->inode != first->inode || e->size != names[i]->size)
			return false;
	}
	return true;
}

static void mark(struct compare_entry **names, size_t count, const struct compare_list *to)
{
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && names[next]->inode == names[i]->inode; next++)
			;
		if (next - i < 2 || are_one(&names[i], next - i, to))
			continue;
		for (size_t k = i; k < next; k++)
			names[k]->leader = names[i];
	}
}

int compare_links(struct compare_list *from, const struct compare_list *to)
{
	struct compare_entry **names;
	size_t count = 0;

	for (size_t i = 0; i < from->count; i++)
		count += from->entries[i].inode != 0;
	if (!count)
		return 0;
	names = malloc(count * sizeof *names);
	if (!names)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < from->count; i++)
		if (from->entries[i].inode)
			names[count++] = &from->entries[i];
	qsort(names, count, sizeof *names, by_inode);
	mark(names, count, to);
	free(names);
	return 0;
}
