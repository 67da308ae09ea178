/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/handshake_impl: what both halves of the handshake do.  Only for them.
 */
#ifndef TRANSFER_HANDSHAKE_IMPL_H
#define TRANSFER_HANDSHAKE_IMPL_H

#include "transfer/handshake.h"

const struct fabric_caps *handshake_caps(const struct run *);
/* The most that a window may have: bytes, and blocks. */
uint64_t handshake_window_max(const struct run *);
uint32_t handshake_depth_max(const struct run *);
/* What has to be true of an engine on either side.  0 or a failure. */
int handshake_check_engine(struct run *, uint8_t number, uint8_t notice, unsigned channels);
struct engine_env handshake_make_env(struct run *, unsigned channels, uint8_t notice, bool imm);
/* From now on blocks are sealed, with keys that only the two ends of the session know. */
int handshake_take_keys(struct run *, const struct transfer_offer *);
void handshake_fill_stats(struct run *, const struct engine_ops *, const struct transfer_offer *,
	uint32_t depth, bool imm);
uint8_t handshake_default_notice(const struct transfer_params *);

#endif
