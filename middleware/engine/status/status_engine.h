/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status/status_engine: the engine `status` (Xiao et al., sections 3.2
 * to 3.4).
 *
 * Each slot of the sink has a status byte, in a region of its own at the sink.  The source writes a
 * block, unsignalled, and behind it in the same posting, inline, the slot's byte: 1.  The sink
 * watches its bytes with acquire loads, and makes a byte 0 again when the slot is empty; it sends
 * nothing and posts no receive.  When the source runs out of slots it reads all bytes by one RDMA
 * READ into its own copy; the region is never so small that the READ would be a short one.
 *
 * The region must not be registered for relaxed ordering: a byte may not pass its block.
 */
#ifndef ENGINE_STATUS_ENGINE_H
#define ENGINE_STATUS_ENGINE_H

#include "engine/engine.h"

extern const struct engine_source_ops status_source_ops;
extern const struct engine_sink_ops status_sink_ops;

/* The calling thread's sleeps end within a microsecond of their time, not within the 50 that Linux
 * gives.  Gives how it was, for status_sleeps_coarse. */
int status_sleeps_fine(void);
void status_sleeps_coarse(int before);

#endif
