/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine.h: the seam between "a block is filled" and "a block has landed".
 *
 * An engine moves FILLED blocks of the source's pool into blocks of the sink's pool over data
 * channels, and yields them LANDED.  It owns how the sink learns of a block and how the source
 * learns where there is room.  Files are not its business: the loops above it write and read the
 * headers.
 *
 * Each engine has two halves, one for the source and one for the sink.  All operations of a half
 * are set, in every engine.  What only some engines have is said in data: the rights that its
 * memory needs, the frames that it takes, what a data channel must be able to do, when the loop
 * has to look again.
 *
 * One thread owns an engine: the transfer's.  It sleeps on the channels' completion queue, which
 * only the engine polls.  An engine may have a thread of its own behind that, which polls the
 * queue, too: what it learns comes out of `poll`, `room` and `settle` like anything else, errors
 * included.  Errors are -errno and end the transfer.  What a peer may not do, and a channel that
 * broke, ends the session: the verdict of the env says what it was.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "block/pool.h"
#include "engine/channel.h"
#include "engine/slots.h"

#include <stdbool.h>
#include <stddef.h>

#define ENGINE_NEVER UINT64_MAX
#define ENGINE_FRAMES_MAX 2u /* kinds of frames that a half may take, and a row that ends them */

/* What both sides of a transfer know when the engine is opened. */
struct engine_env {
	struct pool *pool;
	struct fabric_pd *pd; /* of the session: for memory of the engine's own */
	struct fabric_mr *mr; /* of the pool's memory, registered with the half's `access` */
	struct fabric_cq
		*cq; /* of all channels; the engine polls it until it is stopped or closed */
	struct channel *const *channels;
	unsigned channel_count;
	uint8_t notice; /* enum transfer_notice */
	bool imm;       /* notices are WRITE_IMM */
	uint32_t
		seal_bytes; /* before a block's header that cross with it (block/seal.h); 0: none */

	/* source: the sink's memory, as ACCEPT named it (checked already) */
	uint32_t remote_depth, remote_stride, remote_key;
	uint64_t remote_base;
	uint32_t remote_first; /* the number of the first slot: 0, or that of early data's */
	struct sender *sender; /* that blocks were sent by already, taken over, also on error; or
				  NULL: the engine makes its own */
	uint64_t remote_status_base; /* its status bytes, if the half wants them */
	uint32_t remote_status_key;

	/* why an operation failed, if it was not for memory or frames: the transfer's own */
	struct verdict *verdict;
	/* queues a frame on the control channel */
	int (*put)(void *ctx, uint16_t type, const void *data, size_t len);
	void *put_ctx;
};

/* What both halves have. */
struct engine {
	/* When the loop is to look again although no completion has woken it, by clock_now_ns;
	 * ENGINE_NEVER: that is soon enough every 100 ms, as it does in any case.  The engine sets
	 * it in its operations. */
	uint64_t wake_ns;
};

/* ---- the source's half ---- */

struct engine_source { /* each embeds it first */
	struct engine common;
	const struct engine_source_ops *ops;
	struct sender *sender; /* its blocks that are with the fabric */
	/* What was sent and has not been given back; `room` brings it up to date. */
	struct slots slots;
};

struct engine_source_ops {
	unsigned access;   /* that its blocks' memory must be registered with: FABRIC_LOCAL, ... */
	bool wants_status; /* the sink has status bytes for it, which ACCEPT names */
	/* It posts nothing: the sink fetches blocks, which stay until it has emptied them, so that
	 * there are as many as the window has */
	bool is_fetched;
	/* All that completions tell of is blocks that have left: the loop may sleep through some
	 * (engine/moderation.h). */
	bool moderate;
	/* Frames of the control channel that it takes: 0 or -errno.  Ended by a type of 0. */
	struct engine_source_frame {
		uint16_t type;
		int (*take)(struct engine_source *, const uint8_t *data, size_t len);
	} frames[ENGINE_FRAMES_MAX];

	/* The env is copied; what it points to outlives the engine. */
	int (*open)(const struct engine_env *, struct engine_source **out);
	/* Takes completions in.  Blocks that were sent and are the caller's again (still SENDING):
	 * how many, at most `max`, which may be 1; 0: nothing is left to take in; -errno. */
	int (*poll)(struct engine_source *, struct block **done, unsigned max);
	/* How many blocks `send` takes now, or -errno.  `wanted` blocks are filled: while there is
	 * room for none of them it is asked each round, and every 100 ms, and the engine may ask
	 * the sink for more. */
	int (*room)(struct engine_source *, unsigned wanted);
	/* FILLED blocks with their prefixes written, no more than there is room for: become
	 * SENDING.  They are posted when it returns, and those that go well together, together. */
	int (*send)(struct engine_source *, struct block *const *blocks, unsigned count);
	/* `send` has had all blocks; the sink may still be emptying the last of them, and saying
	 * its last RESULTs: 1 nothing that was posted, and nothing that the sink posts on the data
	 * channels, is under way; 0 not yet (ask again when woken); -errno */
	int (*settle)(struct engine_source *);
	/* Before the channels go, and before their counts are read: ends the engine's thread if it
	 * has one, and takes in what has completed.  Only itself or `close` may follow. */
	void (*stop)(struct engine_source *);
	/* Stops it, too.  What was posted must not be under way any more. */
	void (*close)(struct engine_source *);
};

/* ---- the sink's half ---- */

struct engine_sink { /* each embeds it first */
	struct engine common;
	const struct engine_sink_ops *ops;
	struct fabric_mr *status_mr; /* status bytes that the source may write and read; NULL: it
					has none */
	struct block *retained;      /* a list, since the last flush */
	bool heard;                  /* a frame came since the last poll that cared */
	uint32_t idle;               /* blocks that are not in the pool, and that the source cannot
					fill yet */
};

struct engine_sink_ops {
	unsigned access; /* as a source's */
	struct engine_sink_frame {
		uint16_t type;
		int (*take)(struct engine_sink *, const uint8_t *data, size_t len);
	} frames[ENGINE_FRAMES_MAX];

	int (*open)(const struct engine_env *, struct engine_sink **out);
	/* As a source's; blocks that have LANDED. */
	int (*poll)(struct engine_sink *, struct block **done, unsigned max);
	/* Gives free blocks to the source.  Once a round of the loop, by engine_sink_flush. */
	int (*flush)(struct engine_sink *);
	/* A DRAINING block is not what the source sealed: whether it is fetched once more; then it
	 * is the engine's, and will land again. */
	bool (*again)(struct engine_sink *, struct block *);
	/* COMPLETE has come, so no block is to come: 1 nothing that was posted reaches into the
	 * source's memory any more; 0 not yet (ask again when woken); -errno */
	int (*settle)(struct engine_sink *);
	void (*close)(struct engine_sink *);
};

/* ---- engines ---- */

/* What an engine needs of each data channel. */
enum engine_need {
	ENGINE_NEEDS_READ = 1,
	ENGINE_NEEDS_ORDER = 2, /* WRITEs become visible in order */
};

struct engine_ops {
	const char *name;
	uint8_t id;     /* enum message_engine */
	unsigned needs; /* bits of enum engine_need */
	bool notices;   /* blocks are told of by notices, which may be WRITE_IMM */
	const struct engine_source_ops *source;
	const struct engine_sink_ops *sink;
	/* of the side that was connected to, the daemon's, where that is another one; NULL: it is
	 * the same */
	const struct engine_source_ops *called_source;
	const struct engine_sink_ops *called_sink;
};

extern const struct engine_ops engine_credit;
extern const struct engine_ops engine_status;
extern const struct engine_ops engine_window;
extern const struct engine_ops engine_pull;

/* The half of a side; `called`: which was connected to. */
const struct engine_source_ops *engine_source_half(const struct engine_ops *, bool called);
const struct engine_sink_ops *engine_sink_half(const struct engine_ops *, bool called);

/* How long the loop may sleep if nothing wakes it: -1 for ever, 0 not at all, else ns. */
int64_t engine_sleep_ns(const struct engine *);
/* How long it goes well if the loop sleeps through completions, too: ns, 0 not at all. */
uint64_t engine_source_moderation_ns(const struct engine_source *);
/* A frame of the control channel: 1 it was the engine's, 0 it was not, -errno. */
int engine_source_frame(struct engine_source *, uint16_t type, const uint8_t *data, size_t len);
int engine_sink_frame(struct engine_sink *, uint16_t type, const uint8_t *data, size_t len);
/* This LANDED block will stay for a while: a source that can be told goes round it. */
void engine_sink_retain(struct engine_sink *, struct block *);
/* Once a round of the loop: grants, ACKs, status bytes.  0 or -errno. */
int engine_sink_flush(struct engine_sink *);
/* `again` and `settle` of a sink that posts nothing which reads or takes. */
bool engine_sink_never_again(struct engine_sink *, struct block *);
int engine_sink_is_settled(struct engine_sink *);
/* Takes the engine's own memory away from the peer. */
void engine_sink_revoke(struct engine_sink *);

/* What a data channel lacks that the engine cannot do without: for people; NULL = nothing. */
const char *engine_lacks(const struct engine_ops *, const struct fabric_caps *);

/* By name or by id; NULL when this build has no such engine. */
const struct engine_ops *engine_by_name(const char *name);
const struct engine_ops *engine_by_id(unsigned id);
/* The i-th engine of this build; NULL past the last. */
const struct engine_ops *engine_at(unsigned i);

#endif
