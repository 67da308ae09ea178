/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/notice: one block on its way to a slot of the sink, with the notice behind it: for the
 * engines whose blocks are told of by notices.
 */
#ifndef ENGINE_NOTICE_H
#define ENGINE_NOTICE_H

#include "engine/sender.h"

/* Bytes before a payload that cross with it: seal, header and checksum. */
uint32_t notice_prefix(const struct engine_env *);
/* Remote address of slot `index`, where the block's prefix goes. */
uint64_t notice_slot_addr(const struct engine_env *, uint32_t index);
/* Registered bytes of a source's block that are no part of what crosses: at least
 * CHANNEL_NOTICE_BYTES. */
uint8_t *notice_pad(const struct block *);

/* Posts the block to slot `index` and its notice: WRITE_IMM, or WRITE and SEND. */
int notice_post(const struct engine_env *, struct sender *, struct channel *, struct block *,
	uint32_t index);
/* Payloads to slots of the sink, and one notice of them behind, with their headers: at most
 * TRANSFER_GATHERED_MAX blocks. */
int notice_post_gathered(const struct engine_env *, struct sender *, struct channel *,
	struct block *const *, const uint32_t *indices, unsigned count);

/* A receive brought the number of a slot, as a WRITE_IMM's if `imm`: it must be less than `slots`.
 * Then that many receives are posted on the channel again.  0, -EBADMSG as the verdict says, or as
 * fabric_post_recv. */
int notice_take(
	const struct fabric_wc *, bool imm, uint32_t slots, uint32_t *index, struct verdict *);

#endif
