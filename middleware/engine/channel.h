/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/channel: one data channel as engines see it: its queue pair, and the small receives that
 * notices land in.
 *
 * Its queue pair has room for 2 * depth + 2 sends (data and notice of each block that can be
 * outstanding, two READs) and depth + 1 receives, and some for early blocks, so neither queue can
 * overflow while no more than `depth` blocks are out.
 *
 * Early blocks (proto/transfer.h) may come before the transfer that they are of, and while an
 * earlier one, in either direction, takes in its last completions.  So whoever meets the notice of
 * one leaves it here, for the sink that it concerns.
 *
 * One thread uses a channel; or one its sending half (channel_post, channel_greet, its send queue,
 * completions of sends) and another its receiving half (channel_post_notices, channel_take_notice,
 * completions of receives).
 */
#ifndef ENGINE_CHANNEL_H
#define ENGINE_CHANNEL_H

#include "base/verdict.h"
#include "engine/send_queue.h"
#include "fabric/fabric.h"
#include "proto/transfer.h"

#include <stdatomic.h>

#define CHANNEL_NOTICE_BYTES 8u    /* room for the 4 bytes of a notice, an ACK or a greeting */
#define CHANNEL_RECEIVE_BYTES 288u /* a receive: room for a gathered notice, too */
#define CHANNEL_RECEIVES 64u       /* receives whose memory is made, and registered, at once */

/* Request ids on data channels: what it was in the high half, a number in the low half. */
enum channel_request {
	CHANNEL_GREETING = 1, /* the connecting side's first SEND, and the receive for it */
	CHANNEL_NOTICE = 2,   /* receive; low half: slot */
	CHANNEL_DATA = 3,     /* WRITE of a block, and what tells of it; low half: its index */
	CHANNEL_STATUS = 4,   /* READ of the sink's status bytes */
	CHANNEL_ACK = 5,      /* SEND of an ACK; low half: the sink's block index */
	CHANNEL_FETCH = 6,    /* READ of a source's block; low half: its slot */
	CHANNEL_RECORDS = 7,  /* READ of a source's records */
	CHANNEL_GIVE = 8,     /* WRITE that gives slots back to a source */
};
#define CHANNEL_ID(what, number) ((uint64_t)(what) << 32 | (uint32_t)(number))
#define CHANNEL_ID_WHAT(id) ((enum channel_request)((id) >> 32))
#define CHANNEL_ID_NUMBER(id) ((uint32_t)(id))

/* Requests that were posted. */
struct channel_counts {
	uint64_t writes; /* WRITE and WRITE_IMM */
	uint64_t sends, reads;
	uint64_t signalled; /* of these three: with a completion */
	uint64_t receives;
	uint32_t send_queue, receive_queue; /* the most that were outstanding at once */
};

/* Memory of CHANNEL_RECEIVES slots, CHANNEL_RECEIVE_BYTES each. */
struct channel_receives {
	uint8_t *bytes; /* NULL: not made yet */
	struct fabric_mr *mr;
};

struct channel {
	struct fabric_pd *pd;
	struct fabric_chan *chan; /* its context is the channel */
	unsigned number;
	uint32_t depth;
	/* receiving: slots, of which the first are used first; memory is made when one is
	 * used */
	struct channel_receives *receives;
	uint32_t *idle; /* slots that are not posted */
	uint32_t idle_count;
	bool greeted; /* accepting side: the peer has sent first */
	/* slots of early blocks that have come and were not taken; most of them, 0: none may come
	 */
	uint32_t early[TRANSFER_EARLY_MAX];
	unsigned early_count, early_most;
	struct send_queue queue;
	uint64_t outstanding_bytes;   /* posted WRITEs without completion: for striping */
	struct channel_counts counts; /* each by its half */
	_Atomic bool dead;            /* set from connection events */
};

/* Completion entries that one channel can need. */
uint32_t channel_completions(uint32_t depth);

/* Sets `chan` (from a dial or REQUEST) up; takes the channel over, also on error. */
int channel_new(struct fabric_chan *chan, struct fabric_pd *, struct fabric_cq *, unsigned number,
	uint32_t depth, struct channel **out);
void channel_free(struct channel *);

/* Posts a list of requests as one, and counts them, and the blocks that the source sends by it.
 * As fabric_post_send. */
int channel_post(struct channel *, const struct fabric_wr *list, uint32_t blocks);
/* Each completion of a channel passes here first: 1 it is the engine's; 0 it was a greeting;
 * -ECONNRESET the request failed, and with it the channel, as the verdict says.  `blocks`: of those
 * that were posted, oldest first, so many are done with it. */
int channel_completion(const struct fabric_wc *, uint32_t *blocks, struct verdict *);
/* 0; -ECONNRESET: the peer has closed one of them, or it broke, as the verdict says. */
int channel_check(struct channel *const *, unsigned count, struct verdict *);
/* For a half that posts nothing: takes in what completes all the same, of the transfers before it,
 * and checks.  0 or -errno. */
int channel_check_idle(
	struct fabric_cq *, struct channel *const *, unsigned count, struct verdict *);
/* Starts counting anew. */
void channel_reset_counts(struct channel *);

/* Connecting side, once connected, before it posts receives: sends the 4 zero bytes that MPA's rule
 * asks for. */
int channel_greet(struct channel *);
/* Accepting side, before it accepts: the receive for the greeting, and those for notices of so many
 * `early` blocks, which are kept posted from then on. */
int channel_expect_greeting(struct channel *, unsigned early);
/* The slot in the area of an early block that has come, oldest first.  false: there is none. */
bool channel_take_early(struct channel *, uint32_t *slot);
/* Posts receives until `count` are there for notices, beside those for early blocks. */
int channel_post_notices(struct channel *, uint32_t count);
/* The bytes of a notice that landed in `slot`; the slot is idle again: copy first, then repost. */
const uint8_t *channel_take_notice(struct channel *, uint32_t slot);

#endif
