/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/send_queue: the accounts of a channel's send queue, and selective signalling.  Pure.
 *
 * Requests of a channel complete in order, so that one completion tells of all before it.  Only
 * some postings are therefore signalled; those after the last of them are `silent`.  Whoever posts
 * asks here whether it is time to signal, and here it is known what a completion tells of.
 */
#ifndef ENGINE_SEND_QUEUE_H
#define ENGINE_SEND_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

/* Requests, and the blocks of the source's that they carry. */
struct send_count {
	uint32_t requests, blocks;
};

struct send_queue {
	uint32_t size;             /* requests that it takes */
	uint32_t out;              /* requests that are not known to be done */
	struct send_count silent;  /* of these: behind the last signalled one */
	struct send_count *spans;  /* what each signalled one tells of: a ring */
	uint32_t head, span_count; /* oldest first */
};

/* 0 or -ENOMEM */
int send_queue_init(struct send_queue *, uint32_t size);
void send_queue_fini(struct send_queue *);

/* Requests that it takes now. */
uint32_t send_queue_room(const struct send_queue *);
/* Whether, with `next` posted, so much would be silent as `every` says, in requests or in blocks:
 * then the last request of it is to be signalled. */
bool send_queue_due(const struct send_queue *, struct send_count next, struct send_count every);
/* Was posted; `signalled`: its last request. */
void send_queue_post(struct send_queue *, struct send_count, bool signalled);
/* The oldest signalled request is done, and so are the silent ones before it: how many blocks. */
uint32_t send_queue_complete(struct send_queue *);

#endif
