/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/run: what the source's and the sink's loop share.
 *
 *   run.c       memory, frames, statistics
 *   run_wait.c  sleeping, time-outs, keep-alives
 *   run_end.c   ending in step with the peer
 *
 * All of it is for the transfer's thread.
 */
#ifndef TRANSFER_RUN_H
#define TRANSFER_RUN_H

#include "block/pool.h"
#include "block/seal.h"
#include "engine/engine.h"
#include "engine/sender.h"
#include "transfer/bucket.h"
#include "transfer/io_pool.h"
#include "session/memory.h"
#include "transfer/transfer.h"

#include <errno.h>

#define RUN_FAILED                                                                                 \
	(-ECANCELED) /* the verdict says why; any other -errno says itself what it was             \
		      */

#define RUN_FRAMES_MAX 64u /* taken in before other work has its turn */

/* What a transfer that does not move waits for. */
enum run_wait {
	RUN_WAIT_OURS,   /* this side's disk or stream, or nothing: it may take for ever */
	RUN_WAIT_STREAM, /* a stream of the peer's, which may be silent for as long */
	RUN_WAIT_PEER,   /* the peer, who may have a slow disk */
	RUN_WAIT_BLOCKS, /* blocks that the peer has sent: they are lost, or the way is stuck */
};

struct run {
	struct link *link;
	struct rail *rail;       /* its data channels */
	struct demux_port *port; /* its frames */
	const struct transfer_params *params;
	struct transfer_stats *stats;
	struct memory *memory; /* the session's */
	struct pool *pool;
	const struct engine_ops *engine;
	struct engine_source *source; /* one of these two, */
	struct engine_sink *sink;
	struct engine *common; /* and what both have; NULL: none is open */
	struct sender *sender; /* source: blocks that were sent before that; NULL: there are none */
	bool unanswered;       /* what asks for the transfer is not answered yet */
	uint64_t wake_ns;      /* the loop looks again then; 0: no sooner than it would */
	struct io_pool *io_pool;
	struct seal_key *seal_key; /* blocks are sealed; NULL: they are in the clear */
	struct seal *seal;         /* of this thread */
	uint32_t prefix_bytes;     /* before a payload: what crosses with it */
	int idle_timeout_ms;
	bool heard;        /* the peer did something since the last tick */
	uint64_t heard_ns; /* it last did, as of that tick */
	bool moved;        /* bytes, blocks or files got on since the last tick */
	uint64_t moved_ns; /* they last did, or this side was to blame */
	enum run_wait (*waits)(const struct run *); /* the loop's; NULL: RUN_WAIT_PEER */
	void (*drop_files)(struct run *);           /* the loop's: those that did not end */
	/* the loop's: sets verified_bytes and current of the statistics, before they are told */
	void (*observe)(struct run *);
	uint64_t told_ns;       /* we last sent a frame */
	uint64_t report_ns;     /* when progress is due */
	uint64_t arrived_bytes; /* of the files that arrived well */
	bool peer_aborted;
	unsigned channels; /* that the engine uses */
	/* how fast it may go; NULL: as fast as it can */
	struct bucket *bucket;
	bool held_back;         /* what could move now may not, since the loop last asked */
	uint64_t held_until_ns; /* then it may; BUCKET_NEVER: after a word of the decider's */
	uint32_t told_position; /* of ours in the line for the next turn: what the peer knows */
	uint64_t told_wait_ns;
	bool paused;            /* the peer waits for its turn, and has told so */
	struct verdict verdict; /* the first error: what the peer is told */
	bool told;              /* as in transfer_stats */
};

/* What COMPLETE and CLOSED say, but for what is open: both sides count the same. */
struct transfer_complete run_sums(const struct run *);

/* 0 or -errno; run_end is called either way. */
int run_init(struct run *, struct link *, const struct transfer_params *, struct transfer_stats *);

/* Functions give 0, a number, or a negative one: then the run's verdict says what failed, or, while
 * nothing stands there yet, the -errno does (run_end). */

/* Sends a frame: the encoded length, or a negative number from a put function, comes in `len`. */
int run_put(struct run *, uint16_t type, const void *data, ssize_t len);
/* The same as engine_env.put. */
int run_engine_put(void *run, uint16_t type, const void *data, size_t len);
/* The next frame of the transfer: 1, 0 or a failure.  ABORT is taken in here: a failure with
 * run->peer_aborted; and PAUSED. */
int run_get(struct run *, struct message_header *, const uint8_t **data);
/* Whether what asks for the transfer is answered.  1, 0, or a failure: it is refused. */
int run_answered(struct run *);
/* Waits for the next one. */
int run_get_wait(struct run *, struct message_header *, const uint8_t **data);

/* Memory, registered, and pool of `blocks` blocks; fewer when memory for so many cannot be had (and
 * a warning says so).  -ENOMEM: not even two. */
int run_make_pool(struct run *, uint32_t blocks, uint32_t block_bytes, unsigned access);
/* Takes completions in, as the engine's poll; a failure is recorded. */
int run_poll(struct run *, struct block **done, unsigned max);
/* Whether a block may move now, as far as its rate and its turn go.  If not the loop sleeps no
 * longer than until it may. */
bool run_may_move(struct run *);
/* All has moved: whether what went ahead of a shared rate is paid for, as run_may_move says of what
 * is to move.  A transfer does not end before: else one small file after the other would pay
 * nothing. */
bool run_is_paid_for(struct run *);
/* Before the loop looks for what may move. */
static inline void run_may_all(struct run *run)
{
	run->held_back = false;
}
/* Files that may be open at once: as the caller says, or as descriptors allow. */
unsigned run_open_files(const struct run *);
/* From now on requests on the first `channels` data channels are the transfer's; adds them up. */
void run_count_requests(struct run *, unsigned channels);
void run_sum_requests(struct run *);
/* What `current` of the statistics is now. */
void run_set_current(struct run *, struct wire_bytes name);
/* Tells the statistics. */
void run_report(struct run *, uint64_t now_ns);
/* Sink: nobody reaches the memory any more. */
void run_revoke(struct run *);

/*
 * Once a round of the loop: time-outs, keep-alives, the progress callback, cancelling.  0 or a
 * failure.
 *
 * A peer that is silent is gone.  One that says keep-alives and moves nothing is given longer, as
 * its disk may be slow, and as long as it likes while it waits for a stream of its own.
 */
int run_tick(struct run *);
/*
 * Sleeps until a frame, a completion or a worker's result is there, or the next tick is due.
 * `again` is called after arming: it does what there is to do and says how much it did (-errno is
 * an error); then there is no sleep.  0 or a failure.
 */
int run_wait(struct run *, int (*again)(struct run *));

/* Records what ends the transfer, if it is the first; gives RUN_FAILED. */
int run_fail(struct run *, enum verdict_scope, uint16_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Of a transfer that was cut short: the status of its files that did not end. */
uint16_t run_cut_status(const struct run *);

/*
 * Ends the transfer on this side and frees all that `run` holds.  After an error: sends ABORT,
 * closes the data channels before any memory goes, drops files, and then waits for the peer's ABORT
 * while the session lives.  Gives the outcome; when a data channel broke because the peer has given
 * up, the verdict is the peer's.
 */
enum verdict_scope run_end(struct run *, int error);

#endif
