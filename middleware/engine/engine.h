/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine.h: the seam between "a block is filled" and "a block has landed".
 *
 * An engine moves FILLED blocks of the source's pool into blocks of the sink's pool over data
 * channels, and yields them LANDED.  It owns how the sink learns of a block and how the source
 * learns where there is room.  It knows no files: headers are written and read by the loops above
 * it.
 *
 * One thread owns an engine: the transfer's.  It sleeps on the lanes' completion queue, which only
 * the engine polls.  An engine may have a thread of its own behind that, which polls the queue,
 * too: what it learns comes out of `poll`, `room` and `settle` like anything else, errors too.
 * Errors are -errno and end the transfer: -EBADMSG for what a peer may not do, -ENOTCONN /
 * -ECONNRESET for a broken channel.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "block/pool.h"
#include "engine/lane.h"

#include <stdbool.h>
#include <stddef.h>

/* What both sides of a transfer know when the engine is opened. */
struct engine_env {
	struct pool *pool;
	struct fabric_pd *pd; /* of the session: for memory of the engine's own */
	struct fabric_mr *
		mr; /* of the pool's memory: the sink's is remotely writable, the source's is not */
	struct fabric_cq *cq; /* of all lanes; the engine polls it until it is stopped or closed */
	struct lane *const *lanes;
	unsigned lane_count;
	uint8_t notice; /* enum transfer_notice */
	bool imm;       /* notices are WRITE_IMM */

	/* source: the sink's memory, as ACCEPT named it (checked already) */
	uint32_t remote_depth, remote_stride, remote_key;
	uint64_t remote_base;
	uint64_t remote_status_base; /* its status bytes, if the engine has them */
	uint32_t remote_status_key;

	/* queues a frame on the control channel */
	int (*put)(void *ctx, uint16_t type, const void *data, size_t len);
	void *put_ctx;
};

struct engine; /* each engine embeds `struct engine` first */

struct engine_ops {
	const char *name;
	uint8_t id;   /* enum message_engine */
	bool notices; /* blocks are told of by notices, which may be WRITE_IMM */
	/* What a data channel lacks that the engine cannot do without: for people; NULL = nothing.
	 * May be NULL: it takes all. */
	const char *(*lacks)(const struct fabric_caps *);
	/* The env is copied; what it points to outlives the engine. */
	int (*source_open)(const struct engine_env *, struct engine **out);
	int (*sink_open)(const struct engine_env *, struct engine **out);
	void (*close)(struct engine *);
	/* A frame of the control channel: 1 it was the engine's, 0 it was not, -errno. */
	int (*message)(struct engine *, uint16_t type, const uint8_t *data, size_t len);
	/* Takes completions in.  Blocks that are the caller's again: source, sent ones (still
	 * SENDING); sink, LANDED ones.  How many (at most `max`, which may be 1), or -errno; 0:
	 * nothing is left to take in. */
	int (*poll)(struct engine *, struct block **done, unsigned max);
	/* Sends what is batched: grants, requests.  Once a round of the loop. */
	int (*flush)(struct engine *);

	/* source: how many blocks `send` takes now */
	unsigned (*room)(struct engine *);
	/* source: a FILLED block with its prefix written; becomes SENDING */
	int (*send)(struct engine *, struct block *);
	/* source: a block is filled and there is no room for it: asked each round, and every 100 ms
	 */
	int (*starving)(struct engine *);
	/* source: no block is to come any more, and the sink has emptied all: 1 nothing that was
	 * posted, and nothing that the sink sends, is under way; 0 not yet (ask again when woken);
	 * -errno */
	int (*settle)(struct engine *);

	/* The rest may be NULL. */

	/* How long the loop may sleep if no completion wakes it: -1 for ever, 0 not at all, else
	 * ns. */
	int64_t (*nap_ns)(struct engine *);
	/* source: how long it goes well if the loop sleeps through completions, too: ns, 0 not at
	 * all. */
	uint64_t (*lull_ns)(struct engine *);
	/* sink: this LANDED block will stay for a while: what cannot wait for it should go round it
	 */
	void (*retain)(struct engine *, struct block *);
	/* sink: takes the engine's own memory away from the peer */
	void (*revoke)(struct engine *);

	/* An engine with a thread of its own: ends it; the queue is for others again.  Before the
	 * lanes go, and before their counts are read; only `close` may follow, which does it too.
	 */
	void (*stop)(struct engine *);
};

struct engine {
	const struct engine_ops *ops;
	/* sink, once open: what ACCEPT tells of the engine's own memory; else 0 */
	uint64_t status_base;
	uint32_t status_key;
};

extern const struct engine_ops engine_credit;
extern const struct engine_ops engine_status;
extern const struct engine_ops engine_window;

int64_t engine_nap_ns(struct engine *);
uint64_t engine_lull_ns(struct engine *);
void engine_retain(struct engine *, struct block *);
void engine_revoke(struct engine *);
void engine_stop(struct engine *);
/* What the lanes lack for it, or NULL. */
const char *engine_lacks(const struct engine_ops *, struct lane *const *lanes, unsigned count);

/* By name or by id; NULL when this build has no such engine. */
const struct engine_ops *engine_by_name(const char *name);
const struct engine_ops *engine_by_id(unsigned id);
/* The i-th engine of this build; NULL past the last. */
const struct engine_ops *engine_at(unsigned i);

#endif
