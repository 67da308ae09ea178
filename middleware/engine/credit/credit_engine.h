/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/credit/credit_engine: RFTP's engine (Ren et al., section IV): parallel RDMA WRITEs into
 * blocks that the sink has granted, with proactive feedback.
 *
 * Source: spends a credit for each block: WRITE, and behind it in the same posting the notice.
 * Blocks that are ready at the same time go together: their WRITEs, and one SEND that tells of all
 * and has their headers (TRANSFER_NOTICE_GATHERED).  Small blocks gain most: per block a packet, a
 * completion and a posting less, and payloads that begin and end with their pages.
 *
 * Sink: each landed block earns the source up to two more grants; grants leave in batches.
 *
 * The paper's notice is a message on the control channel after the local completion, one round trip
 * later, and right only where that completion means that the data is there.  Ours goes behind its
 * data on every fabric.
 */
#ifndef ENGINE_CREDIT_ENGINE_H
#define ENGINE_CREDIT_ENGINE_H

#include "engine/engine.h"

extern const struct engine_source_ops credit_source_ops;
extern const struct engine_sink_ops credit_sink_ops;

#endif
