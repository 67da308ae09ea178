/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine: the engines of this build.
 */
#include "engine/engine.h"

#include <string.h>

static const struct engine_ops *const engines[] = {
	&engine_credit,
	&engine_status,
	&engine_window,
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

int64_t engine_nap_ns(struct engine *e)
{
	return e->ops->nap_ns ? e->ops->nap_ns(e) : -1;
}

uint64_t engine_lull_ns(struct engine *e)
{
	return e->ops->lull_ns ? e->ops->lull_ns(e) : 0;
}

void engine_retain(struct engine *e, struct block *b)
{
	if (e->ops->retain)
		e->ops->retain(e, b);
}

void engine_revoke(struct engine *e)
{
	if (e->ops->revoke)
		e->ops->revoke(e);
}

void engine_stop(struct engine *e)
{
	if (e->ops->stop)
		e->ops->stop(e);
}

const char *engine_lacks(const struct engine_ops *ops, struct lane *const *lanes, unsigned count)
{
	const char *what = NULL;

	for (unsigned i = 0; i < count && ops->lacks && !what; i++)
		what = ops->lacks(fabric_chan_caps(lanes[i]->chan));
	return what;
}
