/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/ranges: owns a sorted array of spans.  A peer chooses what is added: it is trusted
 * neither to be in order nor to be few.
 */
#include "block/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RANGES_ROOM_FIRST 16u

void ranges_init(struct ranges *r, size_t limit)
{
	*r = (struct ranges){.limit = limit};
}

void ranges_fini(struct ranges *r)
{
	free(r->spans);
	ranges_init(r, r->limit);
}

/* The first span that begins behind `from`; count when there is none. */
static size_t ranges_find(const struct ranges *r, uint64_t from)
{
	size_t low = 0, high = r->count;

	/* nearly always at the end: blocks are sent in order and overtake each other by a few */
	if (!r->count || r->spans[r->count - 1].from <= from)
		return r->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->spans[middle].from <= from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Opens a gap for one span at `at`. */
static int ranges_open(struct ranges *r, size_t at)
{
	if (r->count >= r->limit)
		return -E2BIG;
	if (r->count == r->room) {
		size_t room = r->room ? r->room * 2 : RANGES_ROOM_FIRST;
		struct ranges_span *spans;

		if (room > r->limit)
			room = r->limit;
		if (room > SIZE_MAX / sizeof *spans)
			return -ENOMEM;
		spans = realloc(r->spans, room * sizeof *spans);
		if (!spans)
			return -ENOMEM;
		r->spans = spans;
		r->room = room;
	}
	memmove(&r->spans[at + 1], &r->spans[at], (r->count - at) * sizeof r->spans[0]);
	r->count++;
	return 0;
}

int ranges_add(struct ranges *r, uint64_t from, uint64_t to)
{
	size_t at;
	bool joins_before, joins_after;
	int err;

	if (from >= to)
		return -EINVAL;
	at = ranges_find(r, from);
	if ((at > 0 && r->spans[at - 1].to > from) || (at < r->count && r->spans[at].from < to))
		return -EEXIST;
	joins_before = at > 0 && r->spans[at - 1].to == from;
	joins_after = at < r->count && r->spans[at].from == to;

	if (joins_before && joins_after) {
		r->spans[at - 1].to = r->spans[at].to;
		r->count--;
		memmove(&r->spans[at], &r->spans[at + 1], (r->count - at) * sizeof r->spans[0]);
	} else if (joins_before) {
		r->spans[at - 1].to = to;
	} else if (joins_after) {
		r->spans[at].from = from;
	} else {
		err = ranges_open(r, at);
		if (err)
			return err;
		r->spans[at] = (struct ranges_span){from, to};
	}
	return 0;
}

bool ranges_complete(const struct ranges *r, uint64_t size)
{
	if (!size)
		return r->count == 0;
	return r->count == 1 && r->spans[0].from == 0 && r->spans[0].to == size;
}

uint64_t ranges_bytes(const struct ranges *r)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->count; i++)
		bytes += r->spans[i].to - r->spans[i].from;
	return bytes;
}
