/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/feeder: reads many streams at once, in one thread.
 *
 * Takes empty blocks, fills each from one stream and hands it out when it is full, when its first
 * byte has waited for flush_ns, or when the stream ends.  A stream that has nothing holds no block
 * for longer than that, so a device that stalls keeps nothing from the others.  When blocks are
 * short the next one goes to the stream that was served the fewest bytes: a slow sink slows all of
 * them alike.
 *
 * Knows no files and no wire.  feeder_add, _stop, _submit and _hungry are for one other thread: the
 * transfer's.
 */
#ifndef TRANSFER_FEEDER_H
#define TRANSFER_FEEDER_H

#include "end/end.h"

struct feeder;
struct io_pool_target;

struct feeder_params {
	unsigned streams; /* most of them at once */
	uint32_t blocks;  /* most blocks in it at once */
	uint64_t flush_ns;
	int stop_fd; /* readable: each stream ends with what lies in its pipe by then; -1 = none */
	bool tell_hungry; /* call `hungry` */
	/* In the feeder's thread: a block is done; a stream waits and there is no block to fill. */
	void (*out)(void *ctx, struct block *);
	void (*hungry)(void *ctx);
	void *ctx;
};

int feeder_new(const struct feeder_params *, struct feeder **out);
/* Joins the thread.  Blocks that were not handed out are nobody's then. */
void feeder_free(struct feeder *);

/*
 * Starts to read a stream: its end is one of end_stream_open, not borrowed.  Its blocks have
 * `target` as their owner.  The last one, which may be empty, has TRANSFER_BLOCK_LAST in its flags,
 * and perhaps an error; afterwards the feeder does not touch the stream.
 */
void feeder_add(struct feeder *, struct io_pool_target *);
/* Its last block comes soon, with no more of its bytes. */
void feeder_stop(struct feeder *, struct io_pool_target *);
/* An empty block: payload and capacity are used; `length` says how much of it is to be filled. */
void feeder_submit(struct feeder *, struct block *);
/* Whether a stream waits for a block. */
bool feeder_hungry(struct feeder *);

#endif
