/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/frame_queue: frames that one thread takes in and another one reads, as they were on the
 * wire, and a descriptor that tells of them.
 *
 * It has no lock of its own.  Functions of the first part are called under a lock of its owner's,
 * those of the second by the one thread that reads, without; frame_queue_turn hands over.
 */
#ifndef SESSION_FRAME_QUEUE_H
#define SESSION_FRAME_QUEUE_H

#include "proto/message.h"
#include "session/buffer.h"

#include <stdbool.h>

struct frame_queue {
	/* under the lock */
	struct buffer incoming;
	int fd;         /* eventfd; -1: not made yet */
	bool signalled; /* it is readable */
	/* the reader's */
	struct buffer reading;
	size_t consumed; /* of `reading`, by the frame that was given last */
};

void frame_queue_init(struct frame_queue *);
void frame_queue_fini(struct frame_queue *);

/* ---- under the lock ---- */

/* Makes the descriptor, if there is none.  0 or -errno. */
int frame_queue_make_fd(struct frame_queue *);
/* Makes it readable, or unreadable; nothing while there is none. */
void frame_queue_wake(struct frame_queue *);
void frame_queue_unwake(struct frame_queue *);
/* Frames that have come and are not the reader's yet. */
size_t frame_queue_incoming_bytes(const struct frame_queue *);
/* 0 or -ENOMEM. */
int frame_queue_append(struct frame_queue *, const struct message_header *, const uint8_t *data);
/* Once the reader has read what it had, it gets what came since.  Whether it has any. */
bool frame_queue_turn(struct frame_queue *);
/* Whether there are frames that were not given.  The reader's thread. */
bool frame_queue_any(const struct frame_queue *);
/* While nobody reads: drops all. */
void frame_queue_clear(struct frame_queue *);
/* Nobody reads it any more: what was not given goes to the end of another one.  0 or -ENOMEM. */
int frame_queue_move(struct frame_queue *, struct frame_queue *to);
/* Frames that were not given, and that are `wanted`, go to the end of another one, or are dropped
 * (`to` is NULL).  What was given last stays where it is, for it may be in use.  The reader's
 * thread.  0 or -ENOMEM. */
int frame_queue_sift(struct frame_queue *, struct frame_queue *to,
	bool (*wanted)(void *ctx, const struct message_header *), void *ctx);

/* ---- of the reader ---- */

/* The next frame: true, and *data is valid until it is consumed; false: none was handed over. */
bool frame_queue_give(struct frame_queue *, struct message_header *, const uint8_t **data);
/* Done with the frame that was given last, if there is one. */
void frame_queue_consume(struct frame_queue *);
/* Not done with it: it is given again. */
void frame_queue_unget(struct frame_queue *);
/* A frame that came another way is given next; no other one was handed over.  0 or -ENOMEM. */
int frame_queue_put_first(struct frame_queue *, const struct message_header *, const uint8_t *data);

#endif
