/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/slots.c: see slots.h.
 */
#include "engine/slots.h"

#include <errno.h>
#include <stdlib.h>

int slots_init(struct slots *s, uint32_t count)
{
	*s = (struct slots){.bytes = calloc(count, sizeof *s->bytes)};
	return s->bytes ? 0 : -ENOMEM;
}

void slots_fini(struct slots *s)
{
	free(s->bytes);
	*s = (struct slots){0};
}
