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

/* Source: plans, offers, waits for the answer.  `bundles`: whether the sink takes them. */
int handshake_offer(struct run *, const struct transfer_source *, struct plan *out, bool *bundles);
/* Sink: waits for the offer and answers it; `bundles`: whether it takes them. */
int handshake_accept(struct run *, bool bundles, uint32_t *block_bytes);

#endif
