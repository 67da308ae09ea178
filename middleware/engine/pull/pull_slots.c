/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/pull/pull_slots: see pull_slots.h.
 */
#include "engine/pull/pull_slots.h"

#include "proto/status.h"
#include "proto/transfer_expose.h"

#include <errno.h>
#include <stdlib.h>

#define TORN_MAX 3u /* times in a row that a record may be read while it changes */

int pull_slots_init(struct pull_slots *s, uint32_t count)
{
	*s = (struct pull_slots){.order_size = 1, .first = 1};
	while (s->order_size < 2 * count) /* a power of two: sequences may wrap */
		s->order_size *= 2;
	s->slot = calloc(count, sizeof *s->slot);
	s->order = calloc(s->order_size, sizeof *s->order);
	s->repeat = calloc(count, sizeof *s->repeat);
	return s->slot && s->order && s->repeat ? 0 : -ENOMEM;
}

void pull_slots_fini(struct pull_slots *s)
{
	free(s->slot);
	free(s->order);
	free(s->repeat);
}

void pull_slots_give(struct pull_slots *s, uint32_t index)
{
	s->slot[index].out = true;
}

static uint32_t *place(const struct pull_slots *s, uint32_t sequence)
{
	return &s->order[sequence & (s->order_size - 1)];
}

static int broken(const struct pull_slots *s, uint32_t index, const struct transfer_record *r,
	struct verdict *verdict)
{
	verdict_set(verdict, VERDICT_SESSION, STATUS_PROTOCOL,
		"the source's record of slot %u has %u bytes and number %u, where %u is next%s",
		index, r->length, r->sequence, s->first,
		s->slot[index].out ? "" : " and the slot has not been given back");
	return -EBADMSG;
}

int pull_slots_take(struct pull_slots *s, uint32_t index, uint64_t record, uint32_t most_bytes,
	struct verdict *verdict)
{
	struct pull_slot *slot = &s->slot[index];
	struct transfer_record r;
	int err = transfer_get_record(&r, record);

	/* a number is given once: one with another length was read while it changed */
	if (!err && r.sequence == slot->sequence && r.length != slot->length)
		err = -EAGAIN;
	if (err && ++slot->torn > TORN_MAX)
		return broken(s, index, &r, verdict);
	if (err)
		return 0; /* the next READ finds it whole */
	slot->torn = 0;
	if (r.sequence == slot->sequence)
		return 0;
	/* as many can be known and not fetched as there are slots, and as many again may have gone
	 * round meanwhile */
	if (!slot->out || !r.length || r.length > most_bytes ||
		r.sequence - s->first >= s->order_size || *place(s, r.sequence))
		return broken(s, index, &r, verdict);
	slot->sequence = r.sequence;
	slot->length = r.length;
	slot->out = slot->again = false;
	*place(s, r.sequence) = index + 1;
	s->known++;
	return 1;
}

bool pull_slots_can_fetch(const struct pull_slots *s)
{
	return s->repeats || *place(s, s->first);
}

uint32_t pull_slots_next(struct pull_slots *s)
{
	uint32_t *first = place(s, s->first), index = *first - 1;

	if (s->repeats)
		return s->repeat[--s->repeats];
	*first = 0;
	s->first++;
	s->known--;
	return index;
}

uint32_t pull_slots_length(const struct pull_slots *s, uint32_t index)
{
	return s->slot[index].length;
}

bool pull_slots_again(struct pull_slots *s, uint32_t index)
{
	if (s->slot[index].again)
		return false;
	s->slot[index].again = true;
	s->repeat[s->repeats++] = index;
	return true;
}
