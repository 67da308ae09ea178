/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine: the engines of this build, and what is the same for all of them.
 */
#include "engine/engine.h"

#include "base/clock.h"
#include "engine/sender.h"

#include <string.h>

#define SPIN_NS 10000u /* what is due so soon is not worth sleeping for */

static const struct engine_ops *const engines[] = {
	&engine_credit,
	&engine_status,
	&engine_window,
	&engine_pull,
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

const struct engine_source_ops *engine_source_half(const struct engine_ops *ops, bool called)
{
	return called && ops->called_source ? ops->called_source : ops->source;
}

const struct engine_sink_ops *engine_sink_half(const struct engine_ops *ops, bool called)
{
	return called && ops->called_sink ? ops->called_sink : ops->sink;
}

const char *engine_lacks(const struct engine_ops *ops, const struct fabric_caps *caps)
{
	if ((ops->needs & ENGINE_NEEDS_READ) && !caps->has_read)
		return "RDMA READ";
	if ((ops->needs & ENGINE_NEEDS_ORDER) && !caps->write_ordered)
		return "WRITEs that become visible in order";
	return NULL;
}

int64_t engine_sleep_ns(const struct engine *e)
{
	uint64_t now;

	if (e->wake_ns == ENGINE_NEVER)
		return -1;
	now = clock_now_ns();
	return e->wake_ns <= now + SPIN_NS ? 0 : (int64_t)(e->wake_ns - now);
}

uint64_t engine_source_moderation_ns(const struct engine_source *e)
{
	return e->ops->moderate ? sender_moderation_ns(e->sender) : 0;
}

int engine_source_frame(struct engine_source *e, uint16_t type, const uint8_t *data, size_t len)
{
	for (const struct engine_source_frame *f = e->ops->frames; f->type; f++)
		if (f->type == type) {
			int err = f->take(e, data, len);

			return err ? err : 1;
		}
	return 0;
}

int engine_sink_frame(struct engine_sink *e, uint16_t type, const uint8_t *data, size_t len)
{
	e->heard = true;
	for (const struct engine_sink_frame *f = e->ops->frames; f->type; f++)
		if (f->type == type) {
			int err = f->take(e, data, len);

			return err ? err : 1;
		}
	return 0;
}

void engine_sink_retain(struct engine_sink *e, struct block *b)
{
	b->next = e->retained;
	e->retained = b;
}

int engine_sink_flush(struct engine_sink *e)
{
	int err = e->ops->flush(e);

	e->retained = NULL;
	return err;
}

bool engine_sink_never_again(struct engine_sink *e, struct block *b)
{
	(void)e;
	(void)b;
	return false;
}

int engine_sink_is_settled(struct engine_sink *e)
{
	(void)e;
	return 1;
}

void engine_sink_revoke(struct engine_sink *e)
{
	fabric_mr_free(e->status_mr);
	e->status_mr = NULL;
}
