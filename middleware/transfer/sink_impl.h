/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_impl.h: the sink's state, and what its files ask of each other.
 *
 *   sink.c        the loop, the frames and the blocks it takes in
 *   sink_files.c  the table of files: opening them as descriptors allow, telling how they ended
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
};

/* ---- sink_files.c ---- */

void sink_files_init(struct sink *);
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

#endif
