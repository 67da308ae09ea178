/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/send_queue: see send_queue.h.
 */
#include "engine/send_queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int send_queue_init(struct send_queue *q, uint32_t size)
{
	*q = (struct send_queue){.size = size, .spans = calloc(size, sizeof *q->spans)};
	return q->spans ? 0 : -ENOMEM;
}

void send_queue_fini(struct send_queue *q)
{
	free(q->spans);
	q->spans = NULL;
}

uint32_t send_queue_room(const struct send_queue *q)
{
	return q->size - q->out;
}

bool send_queue_due(const struct send_queue *q, struct send_count next, struct send_count every)
{
	return q->silent.requests + next.requests >= every.requests ||
	       q->silent.blocks + next.blocks >= every.blocks;
}

void send_queue_post(struct send_queue *q, struct send_count n, bool signalled)
{
	assert(n.requests <= send_queue_room(q));
	q->out += n.requests;
	q->silent.requests += n.requests;
	q->silent.blocks += n.blocks;
	if (!signalled)
		return;
	q->spans[(q->head + q->span_count++) % q->size] = q->silent;
	q->silent = (struct send_count){0};
}

uint32_t send_queue_complete(struct send_queue *q)
{
	struct send_count span;

	assert(q->span_count);
	span = q->spans[q->head];
	q->head = (q->head + 1) % q->size;
	q->span_count--;
	q->out -= span.requests;
	return span.blocks;
}
