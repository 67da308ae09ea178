/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/io_pool: the worker threads of one transfer.
 *
 * I/O workers move blocks between memory and ends, and do the checksums while the bytes are warm in
 * their CPU's cache.  Job threads do what can wait long and concerns a file as a whole (fsync,
 * rename).  The transfer's thread submits and collects; it never waits in here.  The first block
 * for a worker starts its thread.  One job thread is there from the start, so that no job can be
 * left undone; another starts when all that run have a job.
 */
#ifndef TRANSFER_IO_POOL_H
#define TRANSFER_IO_POOL_H

#include "end/end.h"

#include <stdbool.h>

struct io_pool;

/* What block->owner points to while the I/O pool has the block. */
struct io_pool_target {
	struct end *end;
};

struct io_pool_job {
	void (*run)(struct io_pool_job *); /* in a job thread */
};

/* Many streams, read by one thread (transfer/feeder.h). */
struct io_pool_feed {
	unsigned streams; /* most of them at once */
	uint64_t flush_ns;
	int stop_fd;
	bool tell_hungry; /* wake the transfer's thread when io_pool_feed_hungry becomes true */
};

struct io_pool_params {
	const struct io_pool_feed *feed; /* reading, in place of I/O threads; NULL = no feed */
	struct seal_key *seal; /* blocks are sealed, or opened, with it; NULL: they are not */
	unsigned squeeze;      /* level to compress blocks with that are marked; 0 = they are not */
	bool reading;     /* fill blocks and take their leaf; else verify the leaf, then write */
	unsigned workers; /* I/O threads at most, at least 1 */
	bool in_place;    /* io_pool_submit does buffered I/O of files itself: on few CPUs the
			     hand-over to a worker and back costs more than it gains */
	unsigned jobs;    /* job threads at most; 0 = none are needed */
	bool jobs_rare;   /* the first of them is not started before io_pool_can_job */
	uint32_t blocks;  /* most blocks in the I/O pool at once */
	uint32_t queued_jobs; /* most jobs at once */
};

int io_pool_new(const struct io_pool_params *, struct io_pool **out);
/*
 * Ends the threads: what is queued is dropped, what waits on a stream is cancelled, and joins them.
 * Afterwards no block is touched.  Jobs that were submitted and not collected have all run.
 */
void io_pool_free(struct io_pool *);

/* How many blocks to give it before looking at what else there is to do: 1 while it works in place.
 */
unsigned io_pool_batch(const struct io_pool *);
/*
 * Gives a block to worker `worker` (modulo their number).  Blocks of a stream go to one worker, in
 * order.  Reading: wants payload room, offset, length; gives length, leaf, error.  Writing:
 * block->leaf is the expected leaf; a wrong one gives error -EILSEQ and nothing is written.  Either
 * way a worker's thread that cannot be started gives its -errno.
 */
void io_pool_submit(struct io_pool *, unsigned worker, struct block *);
/* Blocks that are done, at most `max`. */
unsigned io_pool_collect(struct io_pool *, struct block **done, unsigned max);
/*
 * With a feed: io_pool_submit gives empty blocks (length: how much is to be filled),
 * io_pool_collect gives them with owner, length, leaf, error and flags set; see feeder_add.
 */
void io_pool_feed_add(struct io_pool *, struct io_pool_target *);
void io_pool_feed_stop(struct io_pool *, struct io_pool_target *);
bool io_pool_feed_hungry(
	const struct io_pool *); /* a stream has something, and there is no block */
/* With `jobs_rare`: whether a job can be submitted. */
bool io_pool_can_job(struct io_pool *);
void io_pool_submit_job(struct io_pool *, struct io_pool_job *);
unsigned io_pool_jobs_out(const struct io_pool *); /* submitted and not collected */
unsigned io_pool_collect_jobs(struct io_pool *, struct io_pool_job **done, unsigned max);

/* Arm, collect once more, then wait for the fd to be readable. */
void io_pool_arm(struct io_pool *);
void io_pool_disarm(struct io_pool *);
int io_pool_fd(const struct io_pool *);

#endif
