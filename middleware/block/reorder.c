/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/reorder: owns an array of window slots; slot (sequence - next) from the head holds the
 * block of that number.
 */
#include "block/reorder.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct reorder {
	uint32_t window, head, held;
	uint32_t next; /* wraps: only differences are compared */
	struct block *slots[];
};

int reorder_new(uint32_t window, struct reorder **out)
{
	struct reorder *r = calloc(1, sizeof *r + (size_t)window * sizeof r->slots[0]);

	if (!r)
		return -ENOMEM;
	r->window = window;
	*out = r;
	return 0;
}

void reorder_free(struct reorder *r)
{
	free(r);
}

static struct block **reorder_slot(struct reorder *r, uint32_t ahead)
{
	uint64_t at = (uint64_t)r->head + ahead;

	return &r->slots[at < r->window ? at : at - r->window];
}

int reorder_put(struct reorder *r, struct block *b)
{
	uint32_t ahead = b->sequence - r->next;
	struct block **slot;

	if (ahead >= r->window) /* also a number that was handed out: it is far ahead */
		return -ERANGE;
	slot = reorder_slot(r, ahead);
	if (*slot)
		return -EEXIST;
	*slot = b;
	r->held++;
	return 0;
}

struct block *reorder_get(struct reorder *r)
{
	struct block *b;

	if (!r->held)
		return NULL;
	b = r->slots[r->head];
	if (!b)
		return NULL;
	r->slots[r->head] = NULL;
	r->held--;
	r->next++;
	if (++r->head == r->window)
		r->head = 0;
	return b;
}

struct block *reorder_drain(struct reorder *r)
{
	for (uint32_t ahead = 0; r->held && ahead < r->window; ahead++) {
		struct block **slot = reorder_slot(r, ahead), *b = *slot;

		if (b) {
			*slot = NULL;
			r->held--;
			return b;
		}
	}
	return NULL;
}

uint32_t reorder_held(const struct reorder *r)
{
	return r->held;
}
