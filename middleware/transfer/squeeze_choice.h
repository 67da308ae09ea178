/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/squeeze_choice: whether the next block is worth compressing, as measured while the
 * transfer runs.  Pure: time and what happens are told to it.
 *
 * Compressing is worth it while the link is what the transfer waits for.  While it is not, the link
 * may be faster than the compressor: then some blocks go as they are, and whichever way moved more
 * bytes of files a second is taken, until it is tried again.  And data that does not shrink is not
 * tried block by block.
 */
#ifndef TRANSFER_SQUEEZE_CHOICE_H
#define TRANSFER_SQUEEZE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

struct squeeze_choice {
	bool asked; /* else nothing is ever compressed */
	bool on;    /* what blocks get now */
	bool trial; /* of the other way: to be judged when its window ends */
	bool early; /* nothing was decided yet */
	uint32_t block_bytes;
	uint64_t window_bytes; /* that may be under way: measured is only what comes behind them */
	/* the window that is measured */
	uint64_t since_ns, skip_bytes, bytes, busy_ns, last_ns;
	uint64_t begun_ns, skipped_bytes; /* and what came before it, since the way was changed */
	uint64_t rate;              /* bytes a second of the way that a trial is compared with */
	uint64_t next_ns, pause_ns; /* when there may be another trial */
	uint32_t misses, pass;      /* blocks that did not shrink, in a row; to be passed over */
};

void squeeze_choice_init(
	struct squeeze_choice *, bool asked, uint64_t window_bytes, uint32_t block_bytes);
/* For the next block to be filled. */
bool squeeze_choice_next(struct squeeze_choice *);
/* A block that was to be compressed comes back, and has shrunk or not. */
void squeeze_choice_note(struct squeeze_choice *, bool shrank);
struct squeeze_round {
	uint64_t bytes;           /* of files that have left since the last one */
	uint64_t under_way_bytes; /* of full blocks that have not */
	bool busy;                /* the link has enough to do */
};
/* Once a round. */
void squeeze_choice_round(
	struct squeeze_choice *, uint64_t now_ns, const struct squeeze_round *round);

#endif
