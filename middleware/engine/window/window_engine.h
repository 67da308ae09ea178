/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/window/window_engine: the sliding window that the status-byte paper compares with (its
 * section 2.3, after Tu et al.).
 *
 * The slots of the sink are a ring: filled in order, and given back in order, each by an ACK: a
 * SEND of its number from the sink, on the data channel on which the block came.  A slot that is
 * still in use holds up all behind it; that is the paper's point.
 *
 * At the source a thread takes the ACKs, as in the paper, when the loop has no time for it
 * (engine/window/window_acks); the loop sees where the window ends, and takes the completions of
 * what it has sent.  The sink has nothing to wait for beside the blocks, and no thread.
 *
 * Each side keeps receives for as many slots as there are on each channel, and posts one again
 * before the other may use it: no SEND finds none.
 */
#ifndef ENGINE_WINDOW_ENGINE_H
#define ENGINE_WINDOW_ENGINE_H

#include "engine/engine.h"

extern const struct engine_source_ops window_source_ops;
extern const struct engine_sink_ops window_sink_ops;

/* Either side keeps receives for all notices, or all ACKs, on each channel.  0 or -errno. */
int window_post_receives(const struct engine_env *, uint32_t slots);

#endif
