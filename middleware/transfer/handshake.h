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
	bool wishes;  /* the request's block and depth are what is offered, if they can be */
	bool invited; /* what is offered is what the request asked for: the answer came with it */
	bool passed;  /* it was not, and that answer has gone by */
};
/* Whether an offer is what the request of an early get asked for: both sides see the same. */
bool handshake_matches(const struct transfer_offer *, const struct transfer_params *);
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
/* Sink: waits for the offer and answers it, where `to` has room.  `invited`: answers what the
 * request asked for at once; set to whether that was what was offered. */
int handshake_accept(
	struct run *, const struct transfer_sink *to, bool *invited, uint32_t *block_bytes);

#endif
