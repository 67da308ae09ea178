/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine: the engines of this build.
 */
#include "engine/engine.h"

#include <string.h>

static const struct engine_ops *const engines[] = {
	&engine_credit,
};

const struct engine_ops *engine_at(unsigned i)
{
	return i < sizeof engines / sizeof *engines ? engines[i] : NULL;
}

const struct engine_ops *engine_by_name(const char *name)
{
	for (unsigned i = 0; engine_at(i); i++)
		if (!strcmp(engines[i]->name, name))
			return engines[i];
	return NULL;
}

const struct engine_ops *engine_by_id(unsigned id)
{
	for (unsigned i = 0; engine_at(i); i++)
		if (engines[i]->id == id)
			return engines[i];
	return NULL;
}
