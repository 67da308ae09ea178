/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_early: early data: what leaves before the sink has answered.
 *
 * OFFER, FILE and FILE_END follow the request at once.  So do blocks of the first file, as far as
 * there are slots for them in the area that the sink has named; each slot is used once, so the area
 * is its own flow control.  What was read for a slot, and not sent when READY comes, goes the way
 * of all others.
 */
#include "transfer/source_impl.h"

#include "base/clock.h"
#include "engine/notice.h"

/* Slots that the area has, of this block size, and that are of use. */
static uint32_t count_slots(const struct source *s, const struct rail_area *area)
{
	uint64_t wanted = (s->run.params->early_bytes + s->plan.block - 1) / s->plan.block;
	uint32_t slots = area->bytes / pool_stride(s->plan.block);

	if (slots > TRANSFER_EARLY_MAX)
		slots = TRANSFER_EARLY_MAX;
	return wanted < slots ? (uint32_t)wanted : slots;
}

int source_early_begin(struct source *s)
{
	const struct rail_area *area = &s->run.rail->remote_area;
	struct source_early *e = &s->early;
	int err = handshake_prepare(&s->run, s->from, &s->handshake, s->plan.depth);

	if (err)
		return err;
	e->env = handshake_env(&s->run, &s->handshake);
	e->env.remote_base = area->base;
	e->env.remote_key = area->key;
	e->env.remote_stride = pool_stride(s->plan.block);
	e->env.remote_first = TRANSFER_EARLY_FIRST;
	e->slots = count_slots(s, area);
	e->after_ns =
		s->run.params->early_after_ns ? clock_now_ns() + s->run.params->early_after_ns : 0;
	return e->slots ? sender_new(&e->env, &s->run.sender) : 0;
}

bool source_early_may_read(const struct source *s, const struct source_file *f, uint64_t left)
{
	if (!s->run.params->early || source_file_open_ended(f) ||
		f->item.file.has & TRANSFER_HAS_HOLES)
		return false;
	if (s->handshake.invited) /* it has given slots of its own, and keeps what comes in them */
		return s->from->total_files == 1 && f->item.file.size < s->run.params->early_resume;
	return !left || s->early.read < s->early.slots;
}

bool source_early_may_send(struct source *s)
{
	struct source_early *e = &s->early;

	if (!e->after_ns || clock_now_ns() >= e->after_ns)
		return true;
	s->run.wake_ns = e->after_ns;
	return false;
}

int source_early_send(struct source *s, struct block *b)
{
	struct sender *sender = s->run.source ? s->run.source->sender : s->run.sender;

	s->run.stats->early_bytes += b->length;
	return notice_post(&s->early.env, sender, sender_pick(sender), b,
		TRANSFER_EARLY_FIRST + s->early.sent++);
}
