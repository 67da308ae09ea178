/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_early: blocks that the source has written into the session's area, perhaps before
 * this side knew of the transfer.
 *
 * They wait in their slots until their file is open, and are written to it from there.  Of a file
 * that is refused they are counted, and go by.
 */
#include "transfer/sink_impl.h"

#include <errno.h>

void sink_early_begin(struct sink *s)
{
	const struct area *area = &s->run.rail->area;
	struct sink_early *e = &s->ahead;

	e->on = s->run.params->early;
	if (!e->on || !area->mr)
		return;
	e->slots = (uint32_t)(area->arena.bytes / pool_stride(s->block));
	if (e->slots > TRANSFER_EARLY_MAX)
		e->slots = TRANSFER_EARLY_MAX;
	for (uint32_t i = 0; i < e->slots; i++)
		e->blocks[i] = (struct block){
			.payload = area->arena.base + pool_bytes(i, s->block) + BLOCK_ALIGN,
			.index = TRANSFER_EARLY_FIRST + i,
			.capacity = s->block,
		};
}

static int take_slot(struct sink *s, uint32_t slot)
{
	struct sink_early *e = &s->ahead;

	if (!e->on)
		return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
			"an early block is not allowed: the request did not say so");
	if (slot >= e->slots || e->used[slot])
		return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
			"early slot %u is not allowed: %s", slot,
			slot < e->slots ? "it was filled twice" : "it is not in the area");
	e->used[slot] = true;
	e->blocks[slot].state = BLOCK_LANDED;
	return sink_take_block(s, &e->blocks[slot]);
}

int sink_early_take(struct sink *s)
{
	int n = 0;

	for (unsigned i = 0; i < s->run.channels; i++) {
		uint32_t slot;

		while (channel_take_early(s->run.rail->channels[i], &slot)) {
			int err = take_slot(s, slot);

			s->run.heard = s->run.moved = true;
			if (err)
				return err;
			n++;
		}
	}
	return n;
}

/* A block of a file that was refused. */
static int go_by(struct sink *s, struct sink_file *f, struct block *b)
{
	f->landed++;
	sink_give(s, b);
	return sink_check_finished(s, f);
}

int sink_early_landed(struct sink *s, struct sink_file *f, struct block *b)
{
	if (!f && (s->complete_came || b->session <= s->last_number ||
			  b->session - s->last_number > TRANSFER_OPEN_MAX))
		return -EBADMSG;
	if (f && f->bundle && s->ahead.invited)
		return sink_take_bundle_block(s, f, b);
	if (f && (f->ready || f->refused) && s->ahead.invited)
		return f->refused ? go_by(s, f, b) : sink_accept_block(s, f, b);
	if (f && (f->bundle || transfer_is_bare(&f->file) || sink_file_is_stream(f)))
		return -EBADMSG; /* their blocks are never early */
	if (f && f->refused)
		return go_by(s, f, b);
	if (f && f->ready)
		return sink_accept_block(s, f, b);
	b->next = s->ahead.waiting;
	s->ahead.waiting = b;
	if (!sink_early_is(b))
		engine_sink_retain(s->run.sink, b);
	return 0;
}

bool sink_early_has(const struct sink *s, uint32_t number)
{
	for (const struct block *b = s->ahead.waiting; b; b = b->next)
		if (b->session == number)
			return true;
	return false;
}

bool sink_early_beyond(const struct sink *s)
{
	for (const struct block *b = s->ahead.waiting; b; b = b->next)
		if (b->session > s->last_number)
			return true;
	return false;
}

struct block *sink_early_waiting(struct sink *s, uint32_t number)
{
	struct block **at = &s->ahead.waiting, *b;

	while (*at && (*at)->session != number)
		at = &(*at)->next;
	b = *at;
	if (b)
		*at = b->next;
	return b;
}

int sink_early_ready(struct sink *s, struct sink_file *f)
{
	struct block *b;
	int err = 0;

	while (!err && (b = sink_early_waiting(s, f->file.file))) {
		if (sink_file_is_stream(f))
			err = -EBADMSG;
		else
			err = sink_accept_block(s, f, b);
	}
	if (err == -EBADMSG)
		return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
			"file %u: an early block that it cannot have", f->file.file);
	return err ? err : sink_check_finished(s, f);
}

int sink_early_refuse(struct sink *s, struct sink_file *f)
{
	struct block *b;
	int err = sink_tell_result(s, f);

	f->refused = true;
	while ((b = sink_early_waiting(s, f->file.file))) {
		f->landed++;
		sink_give(s, b);
	}
	return err ? err : sink_check_finished(s, f);
}
