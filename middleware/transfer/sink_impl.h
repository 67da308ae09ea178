/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_impl.h: the sink's state, and what its files ask of each other.
 *
 *   sink.c        the loop, and the frames it takes in
 *   sink_blocks.c  blocks, from their notice to their free slot
 *   sink_files.c  the table of files: opening them as descriptors allow, telling how they ended
 *   sink_bundles.c  small files that come together
 *   sink_early.c  blocks that come before their file is READY
 *
 * Included by these only.  One thread, the transfer's.
 */
#ifndef TRANSFER_SINK_IMPL_H
#define TRANSFER_SINK_IMPL_H

#include "transfer/handshake.h"
#include "transfer/run.h"
#include "transfer/sink_file.h"

#define SINK_LEAVING_MAX (HANDSHAKE_JOBS_MAX - TRANSFER_OPEN_MAX)

struct sink_flush {
	struct io_pool_job job;
	const struct transfer_sink *to;
	bool begun, done;
	int error;
};

/* The area that the source may fill ahead: its slots, each of which it uses once in a transfer. */
struct sink_early {
	bool on;      /* that was agreed on */
	bool invited; /* of a get: blocks that come early are in slots of the sink itself */
	uint32_t slots;
	struct block blocks[TRANSFER_EARLY_MAX];
	bool used[TRANSFER_EARLY_MAX];
	struct block *waiting; /* until their file is open */
};

struct sink {
	struct run run; /* first */
	const struct transfer_sink *to;
	uint32_t block;                             /* payload bytes */
	struct sink_file *files[TRANSFER_OPEN_MAX]; /* by number modulo that */
	/* failed files that the source is done with: only late blocks and their clean-up are to
	 * come */
	struct sink_file *leaving;
	uint32_t leaving_count;
	uint32_t last_number;
	uint32_t open;
	/* of these: opened, at most so many, and those that wait for it, in order */
	uint32_t opened, opened_max;
	uint64_t lacking_since_ns; /* none is, for want of a descriptor; 0: there was one */
	struct sink_file *waiting, **waiting_tail;
	/* directories that get their mode and time, and hard links, once all announced before them
	 * has ended, in order; of all that is announced, what is below this number has */
	struct sink_file *endings, **endings_tail;
	uint32_t oldest;
	struct transfer_complete source_sums; /* what COMPLETE said */
	bool complete_came, completed;
	struct hole_leaves hole_leaves;
	struct sink_flush flush; /* the last job */
	unsigned next_worker;
	/* with a bucket: slots that are emptied, and not free for the source before their time: a
	 * ring; and all those that the source cannot fill now */
	struct block **held;
	uint32_t held_head, held_count, away;
	unsigned resumes;  /* files that can be gone on with, */
	uint64_t notes_ns; /* and when it is looked at again what of them is to be noted */
	unsigned telling;  /* files whose source is to be told what is there */
	/* blocks of bundles that came before their FILES, by number modulo that; how many */
	struct block *early[TRANSFER_OPEN_MAX];
	unsigned early_count;
	struct sink_early ahead;
	struct end *nowhere; /* what the blocks of bundles are written to: they are verified only */
	/* bundles whose names are being offered to the caller, in order */
	struct sink_file *offering, **offering_tail;
	/* bundles whose files have their names, and whose directories wait to be ended, in order */
	struct sink_file *landed;
};

/* ---- sink.c ---- */

/* Whether a file is all there now: what has to be done with it then.  It may be gone after that. */
int sink_check_finished(struct sink *, struct sink_file *);
/* A failure in the middle of a file: the source is told at once, so that it stops. */
int sink_fail_early(struct sink *, struct sink_file *);

/* ---- sink_blocks.c ---- */

/* With a bucket: all slots are the source's at first.  0 or -ENOMEM. */
int sink_make_held(struct sink *);
/* Its slot is empty: it is free for the source, or will be in its time. */
void sink_give(struct sink *, struct block *);
/* Slots whose time has come.  How many. */
int sink_give_held(struct sink *);
/* Blocks that the engine yields.  How many, or a failure. */
int sink_take_landed(struct sink *);
/* A block has landed.  0 or a failure. */
int sink_take_block(struct sink *, struct block *);
/* The same, once its header was read and found good. */
int sink_accept_block(struct sink *, struct sink_file *, struct block *);
/* Blocks that the I/O pool has verified and written, or has not.  How many, or a failure. */
int sink_take_drained(struct sink *);
/* A block's bytes are verified and handed to the end. */
void sink_count_verified(struct sink *, const struct block *);
/* A transfer that was cut short, whose sink keeps what it has: what has landed is verified and
 * written. */
void sink_salvage(struct sink *);

/* ---- sink_early.c ---- */

/* After OFFER. */
void sink_early_begin(struct sink *);
static inline bool sink_early_is(const struct block *b)
{
	return b->index >= TRANSFER_EARLY_FIRST;
}
/* Blocks whose notices have come.  How many, or a failure. */
int sink_early_take(struct sink *);
/* One whose header was read; `f`: its file, NULL: not announced.  0, -EBADMSG, or a failure. */
int sink_early_landed(struct sink *, struct sink_file *f, struct block *);
/* Its file is READY.  0 or a failure. */
int sink_early_ready(struct sink *, struct sink_file *);
/* Its file is refused: the source is told, and the record stays until it has ended it.  Nobody else
 * uses the file after that. */
int sink_early_refuse(struct sink *, struct sink_file *);
bool sink_early_has(const struct sink *, uint32_t number);
/* Whether one of them is of a file that was not announced. */
bool sink_early_beyond(const struct sink *);
/* One of these, which is nobody's then; NULL: there is none. */
struct block *sink_early_waiting(struct sink *, uint32_t number);

/* ---- sink_files.c ---- */

void sink_files_init(struct sink *);
/* Takes the slot of the next number, where the protocol allows it.  0 or -EBADMSG. */
int sink_take_slot(struct sink *, uint32_t number, struct sink_file ***slot);
/* Whether all that was announced before a file has ended, or failed and left nothing behind. */
bool sink_is_oldest(struct sink *, const struct sink_file *);
/* There is no descriptor for what was to be opened.  Whether to try again. */
bool sink_may_wait(struct sink *);
void sink_unlink_file(struct sink *, struct sink_file *);
struct sink_file *sink_find_file(struct sink *, uint32_t number); /* NULL: none of that number */
/* A file that was announced: its slot in the table is taken.  0; -EBADMSG: it may not be. */
int sink_add_file(struct sink *, const struct transfer_file *, uint64_t entry);
/* Opens those that wait, while descriptors last, and ends the directories that can be.  How many,
 * or -errno. */
int sink_open_files(struct sink *);
/* Tells what is there of files that are gone on with, and READY.  How much, or -errno. */
int sink_tell_found(struct sink *);
/* Has noted what was gathered a while ago, also when nothing more comes. */
int sink_note_gathered(struct sink *);
/* The transfer is cut short: jobs that read files end soon. */
void sink_stop_reading(struct sink *);
/* Tells the outcome, once a file, as soon as it is known. */
int sink_tell_result(struct sink *, struct sink_file *);
/* Its job is done, or there was none: the record goes. */
int sink_finish_file(struct sink *, struct sink_file *);
/* A transfer that was cut short: what has begun is removed, and each file is told. */
void sink_drop_files(struct sink *);
enum run_wait sink_waits(const struct run *);

/* ---- sink_bundles.c ---- */

bool sink_takes_bundles(const struct sink *);
int sink_take_bundle(struct sink *, const uint8_t *data, size_t len);
/* A block of a bundle has landed.  0 or -errno. */
int sink_take_bundle_block(struct sink *, struct sink_file *, struct block *);
/* A block of what was not announced yet: it is kept.  0, or -EBADMSG: it may not be. */
int sink_keep_early(struct sink *, struct block *);
/* Offers names, in order, while descriptors last.  How many. */
int sink_offer_bundles(struct sink *);
/* Its block was verified, or is not what it should be. */
int sink_bundle_verified(struct sink *, struct sink_file *, struct block *);
/* Its block was damaged, and will land once more. */
void sink_bundle_again(struct sink_file *);
/* Its files have their names, or not. */
int sink_bundle_landed(struct sink *, struct sink_file *);
/* Ends directories of bundles that have landed.  How many, or -errno. */
int sink_end_bundles(struct sink *);
bool sink_bundle_misses_block(const struct sink_file *);
/* Of one that is a bundle: its entries. */
uint32_t sink_bundle_count(const struct sink_file *);
/* A transfer that was cut short: each of its files is told. */
void sink_drop_bundle(struct sink *, struct sink_file *);

#endif
