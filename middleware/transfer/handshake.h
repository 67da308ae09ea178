/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/handshake: OFFER and ACCEPT: what the two sides of a transfer agree on, and the memory,
 * engine and workers that follow from it.
 *
 * Fills run->pool, mr, engine, I/O pool and the fixed part of the stats.  0 or -errno, with the
 * reason in the run (run_fail).
 */
#ifndef TRANSFER_HANDSHAKE_H
#define TRANSFER_HANDSHAKE_H

#include "transfer/plan.h"
#include "transfer/run.h"

#define HANDSHAKE_JOBS_MAX 1280u /* files that a sink may have in its job threads at once */

/* A source's, from OFFER to ACCEPT. */
struct handshake {
	struct plan *plan; /* the source's */
	struct plan_facts facts;
	struct transfer_offer offer;
};
/* Source: plans, and offers. */
int handshake_offer(struct run *, const struct transfer_source *, struct handshake *);
/* Memory, registered, and workers, for a sink of `depth` blocks: once, before or after its answer.
 */
int handshake_prepare(
	struct run *, const struct transfer_source *, struct handshake *, uint32_t depth);
/* The env of an engine that is not told of the sink's memory yet. */
struct engine_env handshake_env(struct run *, const struct handshake *);
/* The answer: checks it, and opens the engine.  `bundles`: whether the sink takes them. */
int handshake_take_accept(struct run *, const struct transfer_source *, struct handshake *,
	const struct message_header *, const uint8_t *data, bool *bundles);
/* Sink: waits for the offer and answers it; `bundles`: whether it takes them. */
int handshake_accept(struct run *, bool bundles, uint32_t *block_bytes);

#endif
