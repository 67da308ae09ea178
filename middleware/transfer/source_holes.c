/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_holes: what of a file is not there on the source's disk is told, and not sent.
 */
#include "transfer/source_impl.h"

#include <errno.h>

/* Where the hole that begins at the next block ends, by whole blocks, or where the sink has a block
 * already; there: no hole. */
static uint64_t hole_end(struct source *s, struct source_file *f)
{
	const uint64_t at = f->next_offset, size = f->item.file.size;
	uint64_t end;

	if (at >= f->data_to)
		end_file_data(f->target.end, at, &f->data_from, &f->data_to);
	end = f->data_from >= size ? size : f->data_from - f->data_from % s->plan.block;
	if (f->had_next < f->had.count && f->had.spans[f->had_next].from < end)
		end = f->had.spans[f->had_next].from;
	return end;
}

int source_skip_hole(struct source *s, struct source_file *f)
{
	struct transfer_hole hole = {.file = f->number, .offset = f->next_offset};
	uint8_t data[32];
	uint64_t end;
	int err;

	if (!(f->item.file.has & TRANSFER_HAS_HOLES))
		return 0;
	end = hole_end(s, f);
	if (end <= f->next_offset)
		return 0;
	hole.length = end - f->next_offset;
	f->next_offset = end;
	f->bytes += hole.length;
	f->hole_blocks += hole_blocks(hole.length, s->plan.block);
	s->unread_bytes -= hole.length;
	atomic_fetch_add_explicit(&s->run.stats->bytes, hole.length, memory_order_relaxed);
	s->run.stats->hole_bytes += hole.length;
	err = hole_add(&s->hole_leaves, f->tree, hole.offset, hole.length, s->plan.block);
	if (!err)
		err = run_put(
			&s->run, TRANSFER_HOLE, data, transfer_put_hole(&hole, data, sizeof data));
	return err ? err : 1;
}
