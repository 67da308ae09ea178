/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/pull/pull_engine: the engine `pull` (the passive server of He et al.; the paradigm is Su
 * et al.'s RFP): the side that was connected to, the daemon's, posts nothing that concerns blocks,
 * in either direction.
 *
 * Where the client is the source it is the engine `status`: it WRITEs blocks and status bytes, and
 * READs the bytes.
 *
 * Where the client is the sink it fetches.  Each block of the source's is a slot, with a record in
 * a region of its own that the client may read: a filled block's sequence and length, stored as one
 * word, by a release store, when the block is whole.  The client READs all records at once, then
 * each block that is new, prefix and payload at once, into its own block of that number; and when
 * that is verified and empty it gives the slot back by a WRITE of the next number into the slot's
 * byte, in a third region, which the source watches.  EXPOSE names the three.
 *
 * Between two READs of the records nothing tells the client of blocks: engine/lookout says when it
 * reads them again.  A record and its block are read one after the other, so nothing that crosses
 * in order is relied upon.
 */
#ifndef ENGINE_PULL_ENGINE_H
#define ENGINE_PULL_ENGINE_H

#include "engine/engine.h"

extern const struct engine_source_ops pull_source_ops; /* that is fetched from */
extern const struct engine_sink_ops pull_sink_ops;     /* that fetches */

#endif
