/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/notice: see notice.h.
 */
#include "engine/notice.h"

#include "proto/status.h"
#include "proto/transfer.h"

#include <errno.h>

uint32_t notice_prefix(const struct engine_env *env)
{
	return env->seal_bytes + BLOCK_PREFIX_BYTES;
}

uint64_t notice_slot_addr(const struct engine_env *env, uint32_t index)
{
	return env->remote_base + (uint64_t)(index - env->remote_first) * env->remote_stride +
	       BLOCK_ALIGN - notice_prefix(env);
}

uint8_t *notice_pad(const struct block *b)
{
	return b->payload - BLOCK_ALIGN;
}

int notice_post(const struct engine_env *env, struct sender *sender, struct channel *channel,
	struct block *b, uint32_t index)
{
	bool inlined = fabric_chan_caps(channel->chan)->inline_max >= CHANNEL_NOTICE_BYTES;
	struct transfer_notice_msg msg = {.index = index};
	struct fabric_sge data = {
		b->payload - notice_prefix(env), notice_prefix(env) + block_crossing(b), env->mr};
	struct fabric_sge small = {notice_pad(b), 0, env->mr};
	struct fabric_wr notice = {
		.id = CHANNEL_ID(CHANNEL_DATA, b->index),
		.opcode = FABRIC_SEND,
		.flags = inlined ? FABRIC_INLINE : 0,
		.sge = &small,
		.sge_count = 1,
	};
	struct fabric_wr write = {
		.id = CHANNEL_ID(CHANNEL_DATA, b->index),
		.opcode = env->imm ? FABRIC_WRITE_IMM : FABRIC_WRITE,
		.sge = &data,
		.sge_count = 1,
		.remote_addr = notice_slot_addr(env, index),
		.remote_key = env->remote_key,
		.imm = index,
	};

	if (env->imm)
		return sender_post(sender, channel, &write, &write, &b, 1);
	small.bytes = (uint32_t)transfer_put_notice(&msg, small.addr, CHANNEL_NOTICE_BYTES);
	write.next = &notice;
	return sender_post(sender, channel, &write, &notice, &b, 1);
}

int notice_post_gathered(const struct engine_env *env, struct sender *sender,
	struct channel *channel, struct block *const *blocks, const uint32_t *indices,
	unsigned count)
{
	struct block *last = blocks[count - 1];
	struct fabric_sge data[TRANSFER_GATHERED_MAX];
	struct fabric_wr writes[TRANSFER_GATHERED_MAX];
	uint8_t *entries = notice_pad(last);
	struct fabric_sge headers = {entries, count * TRANSFER_GATHERED_BYTES, env->mr};
	bool inlined = fabric_chan_caps(channel->chan)->inline_max >= headers.bytes;
	struct fabric_wr notice = {
		.id = CHANNEL_ID(CHANNEL_DATA, last->index),
		.opcode = FABRIC_SEND,
		.flags = inlined ? FABRIC_INLINE : 0,
		.sge = &headers,
		.sge_count = 1,
	};

	for (unsigned i = 0; i < count; i++) {
		struct block *b = blocks[i];

		transfer_put_gathered(indices[i], b->payload - BLOCK_PREFIX_BYTES,
			entries + (size_t)i * TRANSFER_GATHERED_BYTES);
		data[i] = (struct fabric_sge){b->payload, block_crossing(b), env->mr};
		writes[i] = (struct fabric_wr){
			.next = i + 1 < count ? &writes[i + 1] : &notice,
			.id = CHANNEL_ID(CHANNEL_DATA, b->index),
			.opcode = FABRIC_WRITE,
			.sge = &data[i],
			.sge_count = 1,
			.remote_addr = notice_slot_addr(env, indices[i]) + notice_prefix(env),
			.remote_key = env->remote_key,
		};
	}
	return sender_post(sender, channel, writes, &notice, blocks, count);
}

int notice_take(const struct fabric_wc *wc, bool imm, uint32_t slots, uint32_t *index,
	struct verdict *verdict)
{
	struct channel *channel = fabric_chan_context(wc->chan);
	struct transfer_notice_msg msg = {.index = wc->imm};
	const uint8_t *bytes = channel_take_notice(channel, CHANNEL_ID_NUMBER(wc->id));

	if (imm != (wc->opcode == FABRIC_RECV_IMM) ||
		(!imm && transfer_get_notice(&msg, bytes, wc->bytes)) || msg.index >= slots) {
		verdict_set(verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"%u bytes on data channel %u are not the number of a slot", wc->bytes,
			channel->number);
		return -EBADMSG;
	}
	*index = msg.index;
	return channel_post_notices(channel, slots);
}
