/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/crew: the worker threads of one transfer.
 *
 * I/O workers move blocks between memory and ends, and do the checksums while the bytes are warm in
 * their CPU's cache.  Job threads do what can wait long and concerns a file as a whole (fsync,
 * rename). The transfer's thread submits and collects; it never waits in here.  The first block for
 * a worker starts its thread.  One job thread is there from the start, so that no job can be left
 * undone; another starts when all that run have a job.
 */
#ifndef TRANSFER_CREW_H
#define TRANSFER_CREW_H

#include "end/end.h"

#include <stdbool.h>

struct crew;

/* What block->owner points to while the crew has the block. */
struct crew_target {
	struct end *end;
};

struct crew_job {
	void (*run)(struct crew_job *); /* in a job thread */
};

/* Many streams, read by one thread (transfer/feeder.h). */
struct crew_feed {
	unsigned streams; /* most of them at once */
	uint64_t flush_ns;
	int stop_fd;
	bool tell_hungry; /* wake the transfer's thread when crew_feed_hungry becomes true */
};

struct crew_params {
	const struct crew_feed *feed; /* reading, in place of I/O threads; NULL = no feed */
	struct seal_key *seal; /* blocks are sealed, or opened, with it; NULL: they are not */
	bool reading;     /* fill blocks and take their leaf; else verify the leaf, then write */
	unsigned workers; /* I/O threads at most, at least 1 */
	bool in_place;   /* crew_submit does buffered I/O of files itself: on few CPUs the hand-over
			    to a   worker and back costs more than it gains */
	unsigned jobs;   /* job threads at most; 0 = none are needed */
	uint32_t blocks; /* most blocks in the crew at once */
	uint32_t queued_jobs; /* most jobs at once */
};

int crew_new(const struct crew_params *, struct crew **out);
/*
 * Ends the threads: what is queued is dropped, what waits on a stream is cancelled, and joins them.
 * Afterwards no block is touched.  Jobs that were submitted and not collected have all run.
 */
void crew_free(struct crew *);

/* How many blocks to give it before looking at what else there is to do: 1 while it works in place.
 */
unsigned crew_batch(const struct crew *);
/*
 * Gives a block to worker `worker` (modulo their number).  Blocks of a stream go to one worker, in
 * order.  Reading: wants payload room, offset, length; gives length, leaf, error.  Writing:
 * block->leaf is the expected leaf; a wrong one gives error -EILSEQ and nothing is written.  Either
 * way a worker's thread that cannot be started gives its -errno.
 */
void crew_submit(struct crew *, unsigned worker, struct block *);
/* Blocks that are done, at most `max`. */
unsigned crew_collect(struct crew *, struct block **done, unsigned max);
/*
 * With a feed: crew_submit gives empty blocks (length: how much is to be filled), crew_collect
 * gives them with owner, length, leaf, error and flags set; see feeder_add.
 */
void crew_feed_add(struct crew *, struct crew_target *);
void crew_feed_stop(struct crew *, struct crew_target *);
bool crew_feed_hungry(const struct crew *); /* a stream has something, and there is no block */
void crew_submit_job(struct crew *, struct crew_job *);
unsigned crew_jobs_out(const struct crew *); /* submitted and not collected */
unsigned crew_collect_jobs(struct crew *, struct crew_job **done, unsigned max);

/* Arm, collect once more, then wait for the fd to be readable. */
void crew_arm(struct crew *);
void crew_disarm(struct crew *);
int crew_fd(const struct crew *);

#endif
