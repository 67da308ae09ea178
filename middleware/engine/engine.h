/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine.h: the seam between "a block is filled" and "a block has landed".
 *
 * An engine moves FILLED blocks of the source's pool into blocks of the sink's pool over data channels,
 * and yields them LANDED.  It owns how the sink learns of a block and how the source learns where there
 * is room.  It knows no files: headers are written and read by the loops above it.
 *
 * One thread owns an engine: the transfer's.  Errors are -errno and end the transfer: -EBADMSG for what
 * a peer may not do, -ENOTCONN / -ECONNRESET for a broken channel.
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
	struct fabric_mr *mr; /* of the pool's memory: the sink's is remotely writable, the source's is not */
	struct fabric_cq *cq; /* of all lanes; the engine polls it */
	struct lane *const *lanes;
	unsigned lane_count;
	uint8_t notice; /* enum transfer_notice */
	bool imm;       /* notices are WRITE_IMM */

	/* source: the sink's memory, as ACCEPT named it (checked already) */
	uint32_t remote_depth, remote_stride, remote_key;
	uint64_t remote_base;

	/* queues a frame on the control channel */
	int (*put)(void *ctx, uint16_t type, const void *data, size_t len);
	void *put_ctx;
};

struct engine; /* each engine embeds `struct engine` first */

struct engine_ops {
	const char *name;
	uint8_t id; /* enum message_engine */
	/* The env is copied; what it points to outlives the engine. */
	int (*source_open)(const struct engine_env *, struct engine **out);
	int (*sink_open)(const struct engine_env *, struct engine **out);
	void (*close)(struct engine *);
	/* A frame of the control channel: 1 it was the engine's, 0 it was not, -errno. */
	int (*message)(struct engine *, uint16_t type, const uint8_t *data, size_t len);
	/* Takes completions in.  Blocks that are the caller's again: source, sent ones (still SENDING);
	 * sink, LANDED ones.  How many (at most `max`), or -errno. */
	int (*poll)(struct engine *, struct block **done, unsigned max);
	/* Sends what is batched: grants, requests.  Once a round of the loop. */
	int (*flush)(struct engine *);

	/* source: how many blocks `send` takes now */
	unsigned (*room)(struct engine *);
	/* source: a FILLED block with its prefix written; becomes SENDING */
	int (*send)(struct engine *, struct block *);
	/* source: a block is filled and there is no room for it */
	int (*starving)(struct engine *);
};

struct engine {
	const struct engine_ops *ops;
};

extern const struct engine_ops engine_credit;

/* By name or by id; NULL when this build has no such engine. */
const struct engine_ops *engine_by_name(const char *name);
const struct engine_ops *engine_by_id(unsigned id);
/* The i-th engine of this build; NULL past the last. */
const struct engine_ops *engine_at(unsigned i);

#endif
