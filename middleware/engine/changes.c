/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/changes: see changes.h.
 */
#include "engine/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int changes_init(struct changes *c, uint32_t bytes)
{
	int err;

	*c = (struct changes){.bytes = (bytes + CHANGES_WORD - 1) / CHANGES_WORD * CHANGES_WORD};
	c->expected = calloc(c->bytes, 1);
	if (!c->expected)
		return -ENOMEM;
	err = arena_init(&c->arena, c->bytes, false);
	if (err)
		changes_fini(c);
	return err;
}

void changes_fini(struct changes *c)
{
	arena_fini(&c->arena);
	free(c->expected);
	*c = (struct changes){0};
}

static bool word_differs(const struct changes *c, uint32_t at)
{
	uint64_t have = __atomic_load_n((uint64_t *)(void *)changes_at(c, at), __ATOMIC_RELAXED),
		 want;

	memcpy(&want, c->expected + at, sizeof want);
	return have != want;
}

bool changes_next(struct changes *c, uint32_t *left, uint32_t *index, uint8_t *byte)
{
	while (*left) {
		uint32_t i = c->next;
		bool whole = i % CHANGES_WORD == 0 && *left >= CHANGES_WORD;
		uint32_t step = whole && !word_differs(c, i) ? CHANGES_WORD : 1;

		c->next = (i + step) % c->bytes;
		*left -= step;
		if (step > 1)
			continue;
		*byte = __atomic_load_n(changes_at(c, i), __ATOMIC_ACQUIRE);
		*index = i;
		if (*byte != c->expected[i])
			return true;
	}
	return false;
}
