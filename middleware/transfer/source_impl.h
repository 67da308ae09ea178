/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_impl.h: the source's state, and what its files ask of each other.
 *
 *   source.c         the loop, and the frames it takes in
 *   source_files.c   starting, ending and failing files
 *   source_blocks.c  filling blocks, sending them, getting them back
 *   source_holes.c   telling what need not be sent
 *   source_gathers.c small files, read many at a time
 *   source_bundles.c what is sent together, and how it ended
 *   source_early.c   blocks that leave before their file is READY
 *
 * Included by these only.  One thread, the transfer's.
 */
#ifndef TRANSFER_SOURCE_IMPL_H
#define TRANSFER_SOURCE_IMPL_H

#include "proto/bundle.h"
#include "transfer/handshake.h"
#include "transfer/hole.h"
#include "transfer/run.h"
#include "transfer/squeeze_choice.h"

#include "block/ranges.h"
#include "transfer/reread.h"

struct source_file {
	struct io_pool_target target; /* first: what block->owner points to */
	struct source_file *next; /* in the order of starting, while there is something to read */
	struct transfer_item item;
	uint32_t number;
	bool used, bare, ready, read_all, ended, answered;
	uint64_t next_offset;        /* to read */
	uint64_t bytes;              /* sent, with those of holes and what was there already */
	uint64_t hole_blocks;        /* that were told, and not sent */
	uint64_t data_from, data_to; /* what end_file_data said last, of a file with holes */
	uint64_t had_blocks;         /* that were there already */
	struct ranges had;           /* their bytes: not read */
	size_t had_next;             /* the first of these that lies behind next_offset, or at it */
	uint32_t sequence;           /* blocks sent */
	uint64_t dropped;            /* blocks of a feed that nobody had room for */
	uint32_t in_io;              /* blocks being filled, and filled ones waiting to be sent */
	struct digest_tree *tree;
	uint64_t entry; /* digest of its FILE */
	uint64_t digest;
	/* it is read again, from the disk, before it is ended */
	struct io_pool_job reread;
	bool reread_out, reread_done;
	bool touched; /* it is read again since something about it has changed */
	uint64_t reread_root;
	int reread_error;
	struct source *source;
	struct verdict verdict;       /* the first thing that failed */
	struct source_bundle *bundle; /* it is not one file but many; NULL: it is one */
};

#define SOURCE_GATHERS_MAX 8u

/* Slots of the area that the sink has named, each used once in a transfer. */
struct source_early {
	struct engine_env env;      /* of its slots */
	uint32_t slots, read, sent; /* blocks that were read for them, and those that left */
	uint64_t after_ns;          /* none leaves before */
};

struct source_gather;

struct source {
	struct run run; /* first */
	const struct transfer_source *from;
	struct plan plan;
	struct handshake handshake;
	struct source_early early;
	struct source_file *files; /* TRANSFER_OPEN_MAX slots, by number modulo that */
	struct source_file *reading, **reading_tail;
	uint32_t last_number;
	uint32_t open;         /* files started and not done */
	uint32_t open_max;     /* at once */
	uint64_t unread_bytes; /* of files started */
	bool no_more, completed, closed;
	atomic_bool stop;      /* nothing is read again any further */
	struct block **filled; /* ring of blocks to be sent */
	uint32_t filled_head, filled_count, filled_room;
	struct hole_leaves hole_leaves;
	struct squeeze_choice squeeze;
	uint64_t left_bytes; /* of files, whose blocks have left since the last round */
	uint32_t sending;    /* blocks that are with the fabric */
	unsigned next_worker;
	/* names that are being made into bundles, in order; NULL: the sink wants none */
	struct source_gather *gathers;
	unsigned gather_count, gather_first, gathers_used;
	uint32_t bundles; /* on their way */
};

/* ---- source_files.c ---- */

bool source_file_open_ended(const struct source_file *); /* a stream: its size is not known */
/* Tells the outcome; the slot is free again. */
void source_file_finish(struct source *, struct source_file *);
struct source_file *source_find_file(
	struct source *, uint32_t number); /* NULL: none of that number */
/* Whether another file may be started now; starts the next one, if there is one. */
bool source_may_start(const struct source *);
bool source_may_begin(const struct source *); /* what is known to be there */
int source_start_file(struct source *);
/* HAVE and READY.  0, -EBADMSG, -ENOMEM. */
int source_take_have(struct source *, struct source_file *, const struct transfer_have *);
int source_take_ready(struct source *, struct source_file *, const struct transfer_ready *);
/* Passes over what the sink has at next_offset. */
void source_skip_had(struct source *, struct source_file *);
/* Starts what `next` or a gather has given to the slot of the next number.  0 or -errno. */
int source_begin_file(struct source *, struct source_file *);
/* No more blocks will be filled for it. */
void source_stop_reading(struct source *, struct source_file *);
/* FILE_END, once all of it that will be sent is sent.  Safe to call at any time. */
int source_end_file(struct source *, struct source_file *);
/* Those that were read again.  How many, or -errno. */
int source_take_rereads(struct source *);
/* For run.waits. */
enum run_wait source_waits(const struct run *);
/* A transfer that was cut short: each file that was started is told. */
void source_drop_files(struct source *);

/* ---- source_holes.c ---- */

/* Tells of the hole that begins at the next block of a file.  1; 0: there is none; -errno. */
int source_skip_hole(struct source *, struct source_file *);

/* ---- source_blocks.c: each gives how much it did, or -errno ---- */

int source_make_ring(struct source *);
int source_take_completions(struct source *);
int source_take_filled(struct source *);
int source_fill_blocks(struct source *);
int source_send_blocks(struct source *);
/* A filled block goes to the end of those that wait to be sent. */
void source_queue_block(struct source *, struct block *);

/* ---- source_early.c ---- */

/* After OFFER: memory, workers and slots for what leaves before it is answered.  0 or a failure. */
int source_early_begin(struct source *);
/* Whether a file that is not READY goes on: with a block that is to be read now, or, when nothing
 * is `left` of it, to its end. */
bool source_early_may_read(const struct source *, const struct source_file *, uint64_t left);
/* Whether it may leave now. */
bool source_early_may_send(struct source *);
/* A FILLED block with its prefix written.  0 or -errno. */
int source_early_send(struct source *, struct block *);

/* ---- source_gathers.c ---- */

/* Where source and sink can do with bundles: from now on `next` is asked for names here. */
int source_make_gathers(struct source *, bool wanted);
void source_free_gathers(struct source *);
/* Asks for names, has them read, sends what was read.  How much it did, or -errno. */
int source_gather(struct source *);
/* A gather's block comes back from its worker.  0 or -errno. */
int source_take_gathered(struct source *, struct block *);
/* Nothing is gathered: all bundles are on their way, or there. */
bool source_gathered_all(const struct source *);
bool source_is_gathering(const struct source *); /* something is being read */
/* A transfer that was cut short: those that were not told are. */
void source_drop_gathers(struct source *);

/* ---- source_bundles.c ---- */

/* Of one that is a bundle: the name of its first file. */
struct wire_bytes source_bundle_name(const struct source_file *);
/* RESULTS.  0, or -EBADMSG. */
int source_take_results(struct source *, const uint8_t *data, size_t len);
/* A transfer that was cut short: tells the outcomes of a bundle that was sent. */
void source_drop_bundle(struct source *, struct source_file *);

#endif
