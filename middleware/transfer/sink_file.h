/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_file: one arriving file: what of it has landed, whether it is whole, and how it
 * ends.
 *
 * Knows no frames and no other files.  The transfer's thread owns it; a job thread does while
 * job_out.
 */
#ifndef TRANSFER_SINK_FILE_H
#define TRANSFER_SINK_FILE_H

#include "block/digest.h"
#include "block/ranges.h"
#include "block/reorder.h"
#include "transfer/hole.h"
#include "transfer/io_pool.h"
#include "transfer/sink_resume.h"
#include "transfer/transfer.h"

struct sink_file {
	struct io_pool_target target; /* first: what block->owner points to */
	struct io_pool_job job;
	struct sink_file *next; /* the sink's list of leaving files, or of waiting ones */
	const struct transfer_sink *to;
	struct transfer_file file; /* what it points to is in `strings`, each terminated */
	uint8_t *strings;
	void *cookie;
	bool end_known, job_out, told; /* FILE_END came; the job was submitted; RESULT was sent */
	bool waits, opened;            /* to be opened; it has an end, which counts */
	bool ready;                    /* READY was sent */
	bool refused;                  /* it was not opened; what is sent early of it goes by */
	bool cut;                      /* it failed because the transfer was cut short, */
	bool at_source;                /* or at the source, and not here */
	struct sink_resume *resume;    /* NULL: it cannot be gone on with */
	struct ranges ranges;
	struct digest_tree *tree;
	struct reorder *reorder; /* streams */
	uint32_t window;         /* blocks that may be on their way at once */
	uint32_t block;          /* bytes of one */
	uint64_t landed;         /* blocks */
	uint64_t hole_blocks;    /* that were told, and will not land */
	uint64_t in_io;          /* blocks being verified and written */
	struct transfer_file_end end;
	uint64_t entry;             /* digest of its FILE */
	uint64_t digest;            /* ours */
	struct verdict verdict;     /* the first thing that failed */
	atomic_bool stop;           /* it is not read back any further */
	struct sink_bundle *bundle; /* it is not one file but many (sink_bundles.c) */
};

/* `entry`: the digest of the FILE that announced it, as it came. */
int sink_file_new(const struct transfer_sink *, const struct transfer_file *, uint64_t entry,
	struct sink_file **out);
void sink_file_free(struct sink_file *);

/* Asks the caller for the end.  0: open, or a directory (no end); else the file has failed. */
int sink_file_open(struct sink_file *, uint32_t window_blocks);

/* It could not be opened, and will be tried again. */
void sink_file_again(struct sink_file *);
/* As the source sees it: its blocks may be short, so that sequence numbers take the place of a
 * grid. */
bool sink_file_is_stream(const struct sink_file *);

/* Whether that many blocks can make that many bytes, of this file: if not, the last of them would
 * be waited for in vain. */
bool sink_file_ends_well(
	const struct sink_file *, const struct transfer_file_end *, uint32_t block_bytes);

/* A hole of it was told: takes note, may fail the file.  0; -EBADMSG: it may not have that one. */
int sink_file_hole(struct sink_file *, const struct transfer_hole *, struct hole_leaves *,
	uint32_t block_bytes);
/* Whether a header is one that this file may have now: within its size and, but for streams, on the
 * grid of blocks. */
bool sink_file_takes(const struct sink_file *, const struct transfer_block *, uint32_t block_bytes);
/* A block was verified and written (block->error 0), or was not: takes note, may fail the file. */
void sink_file_written(struct sink_file *, const struct block *, uint32_t block_bytes);
/* It is there already, from a transfer before: takes note, may fail the file. */
void sink_file_found(struct sink_file *, const struct transfer_note *, uint32_t block_bytes);
/* Whether FILE_END has come and all its blocks are accounted for. */
bool sink_file_complete(const struct sink_file *);
/* All blocks are accounted for: is it what the source says it is?  May fail the file. */
void sink_file_judge(struct sink_file *);
/* fsync, close, and commit, discard or suspend.  Blocks; as a job, or in place when the transfer
 * was cut short. */
void sink_file_settle(struct sink_file *);
struct sink_file *sink_file_of_job(struct io_pool_job *);

#endif
