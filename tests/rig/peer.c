/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/rig/peer: rftp as a peer that does not keep to what was agreed.
 *
 * It is the client, linked with --wrap for some calls between its modules, so that session,
 * handshake and transfer are the real ones.  What it does wrong is in RIG_PEER:
 *
 *   outside     WRITEs, from the third on, go past the end of all that the daemon granted
 *   key         WRITEs, from the third on, name a key that the daemon did not give
 *   other       they go to the memory and by the key of another session
 *   stale       in the second transfer of a session they go to where the last one of the first
 *               transfer went, by its key
 *   read        they are READs
 *   ungranted   the third block goes to a slot that is not granted, notice and all
 *   silent      it goes there without a notice, and then where it may
 *   replay      the fourth block is the third once more, header and all
 *   swap        it has the bytes of the third, and its own header
 *   token       data channels say that they are of session 1, with the token of their own
 *   late        one more WRITE to where the last one went, after CLOSED
 *   late-read   and a READ
 *   reach       a sink WRITEs to the blocks of its source
 *   reach-read  and READs them
 *   deaf        receives on data channels are not posted: what the daemon sends there finds none
 *
 * The daemon is linked like this as well, to do nothing wrong, but tell what no peer could know:
 *
 *   tell        a line in the file RIG_PEER_FILE for all memory that it registers: base, key,
 * bytes, access. `other` and `reach` find it there
 *
 * Knows nothing of what the other side should do about it.
 */
#include "block/credit.h"
#include "block/seal.h"
#include "engine/notice.h"
#include "proto/message_greeting.h"
#include "proto/transfer.h"
#include "transfer/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD_WRITES 2u                /* before the first bad one: the transfer is well under way */
#define FAR_BYTES (UINT64_C(1) << 40) /* beyond any memory of the daemon */
#define LIST_MAX 64u
#define NOTICE_BYTES_MAX 1024u      /* receives of the control channel are larger */
#define BLOCKS_BYTES_MIN (1u << 20) /* smaller memory is not a transfer's blocks */
#define SLOTS_MAX 65536u
#define REACH_BYTES 64u
#define REFUSED_MS 10000
#define LOOK_MS 50

#define WRAP(type, name, ...)                                                                      \
	type __real_##name(__VA_ARGS__);                                                           \
	type __wrap_##name(__VA_ARGS__);                                                           \
	type __wrap_##name(__VA_ARGS__)

struct told { /* of memory */
	uint64_t base;
	uint32_t key;
	size_t bytes;
	unsigned access;
};

static uint64_t last_addr; /* of the last WRITE */
static uint32_t last_key;

static unsigned transfers; /* that were sent */

static bool peer_is(const char *what)
{
	const char *wanted = getenv("RIG_PEER");

	return wanted && !strcmp(wanted, what);
}

static FILE *told_file(const char *mode)
{
	const char *path = getenv("RIG_PEER_FILE");

	return path ? fopen(path, mode) : NULL;
}

/* The first memory for blocks that was registered with that access. */
static bool find_told(unsigned access, struct told *out)
{
	FILE *f = told_file("r");
	bool found = false;

	while (f && !found &&
		fscanf(f, "%" SCNu64 " %" SCNu32 " %zu %u", &out->base, &out->key, &out->bytes,
			&out->access) == 4)
		found = out->access == access && out->bytes >= BLOCKS_BYTES_MIN;
	if (f)
		fclose(f);
	fprintf(stderr, "peer: %s\n", found ? "knows of the memory" : "was not told of any memory");
	return found;
}

/* ---- what is told ---- */

/* rxe has no key for peers where there is no access for them: the one for local use is the best
 * guess. */
struct verbs_mr;
int verbs_mr_sink_key(struct verbs_mr *, uint32_t *) __attribute__((weak));

WRAP(int, fabric_mr_new, struct fabric_pd *pd, void *addr, size_t bytes, unsigned access,
	struct fabric_mr **out)
{
	int r = __real_fabric_mr_new(pd, addr, bytes, access, out);
	FILE *f = !r && peer_is("tell") ? told_file("a") : NULL;
	uint32_t key;

	if (!f)
		return r;
	key = fabric_mr_key(*out);
	if (!key && verbs_mr_sink_key && verbs_mr_sink_key((struct verbs_mr *)*out, &key))
		key = 0;
	fprintf(f, "%" PRIu64 " %" PRIu32 " %zu %u\n", fabric_mr_base(*out), key, bytes, access);
	fclose(f);
	return r;
}

/* ---- a source ---- */

static bool is_write(const struct fabric_wr *wr)
{
	return wr->opcode == FABRIC_WRITE || wr->opcode == FABRIC_WRITE_IMM;
}

static void use_stale_key(struct fabric_wr *wr)
{
	static uint64_t addr;
	static uint32_t key;
	static unsigned writes;

	if (!transfers) {
		addr = wr->remote_addr;
		key = wr->remote_key;
	} else if (++writes > GOOD_WRITES) {
		fprintf(stderr, "peer: %s\n",
			key == wr->remote_key ? "the key is still the same" : "a bad request");
		wr->remote_addr = addr;
		wr->remote_key = key;
	}
}

static void spoil(struct fabric_wr *wr)
{
	static _Atomic unsigned writes;
	struct told told;

	if (!is_write(wr))
		return;
	last_addr = wr->remote_addr;
	last_key = wr->remote_key;
	if (peer_is("stale")) {
		use_stale_key(wr);
		return;
	}
	if (++writes <= GOOD_WRITES)
		return;
	if (peer_is("outside"))
		wr->remote_addr += FAR_BYTES;
	else if (peer_is("key"))
		wr->remote_key ^= 0x5a5a00;
	else if (peer_is("read"))
		wr->opcode = FABRIC_READ;
	else if (peer_is("other") && find_told(FABRIC_REMOTE_WRITE, &told)) {
		wr->remote_addr = told.base;
		wr->remote_key = told.key;
	} else
		return;
	fprintf(stderr, "peer: a bad request\n");
}

WRAP(int, fabric_post_send, struct fabric_chan *chan, const struct fabric_wr *list)
{
	struct fabric_wr copy[LIST_MAX];
	unsigned n = 0;

	for (; list; list = list->next) {
		if (n == LIST_MAX)
			return -EINVAL;
		copy[n] = *list;
		copy[n].next = NULL;
		spoil(&copy[n]);
		if (n)
			copy[n - 1].next = &copy[n];
		n++;
	}
	return __real_fabric_post_send(chan, n ? copy : NULL);
}

/* Data channels are greeted for somebody else. */
WRAP(ssize_t, message_put_greeting, const struct message_greeting *greeting, void *out, size_t size)
{
	struct message_greeting copy = *greeting;

	if (peer_is("token") && copy.kind == MESSAGE_CHANNEL_DATA) {
		fprintf(stderr,
			"peer: a data channel for session 1, with the token of session %u\n",
			copy.session);
		copy.session = 1;
	}
	return __real_message_put_greeting(&copy, out, size);
}

static bool granted[SLOTS_MAX];

WRAP(int, credit_book_add, struct credit_book *book, const uint32_t *indices, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (indices[i] < SLOTS_MAX)
			granted[indices[i]] = true;
	return __real_credit_book_add(book, indices, count);
}

/* The slot that will be granted last, or again.  -1: all are granted. */
static int64_t not_granted(uint32_t slots)
{
	int64_t i = (slots < SLOTS_MAX ? slots : SLOTS_MAX) - 1;

	while (i >= 0 && granted[i])
		i--;
	fprintf(stderr, "peer: slot %" PRId64 " of %u, which is not granted\n", i, slots);
	return i;
}

static int write_silently(
	const struct engine_env *env, struct channel *channel, struct block *b, uint32_t slot)
{
	struct fabric_sge data = {
		b->payload - BLOCK_PREFIX_BYTES, BLOCK_PREFIX_BYTES + b->length, env->mr};
	struct fabric_wr write = {
		.id = CHANNEL_ID(CHANNEL_DATA, b->index),
		.opcode = FABRIC_WRITE,
		.sge = &data,
		.sge_count = 1,
		.remote_addr = notice_slot_addr(env, slot),
		.remote_key = env->remote_key,
	};

	return channel_post(channel, &write, 0);
}

/* The bytes of a block are those of the one before. */
static void repeat(struct block *b)
{
	static uint8_t kept[SEAL_PREFIX_BYTES + BLOCK_BYTES_MAX];
	static uint32_t length;
	static unsigned posts;
	size_t from = peer_is("replay") ? 0 : SEAL_PREFIX_BYTES;

	if (!peer_is("replay") && !peer_is("swap"))
		return;
	posts++;
	if (posts == GOOD_WRITES + 1) {
		length = block_crossing(b);
		memcpy(kept, b->payload - SEAL_PREFIX_BYTES, SEAL_PREFIX_BYTES + length);
	} else if (posts == GOOD_WRITES + 2 && block_crossing(b) == length) {
		memcpy(b->payload - SEAL_PREFIX_BYTES + from, kept + from,
			SEAL_PREFIX_BYTES + length - from);
		fprintf(stderr, "peer: a block comes again\n");
	}
}

/* One block of a posting, on its way to slot `index`. */
static int misplace(
	const struct engine_env *env, struct channel *channel, struct block *b, uint32_t *index)
{
	static unsigned posts;
	int64_t slot;
	int r = 0;

	repeat(b);
	if (++posts == GOOD_WRITES + 1 && (peer_is("ungranted") || peer_is("silent"))) {
		slot = not_granted(env->remote_depth);
		if (slot < 0)
			return -EINVAL;
		if (peer_is("silent"))
			r = write_silently(env, channel, b, (uint32_t)slot);
		else
			*index = (uint32_t)slot;
	}
	if (*index < SLOTS_MAX)
		granted[*index] = false;
	return r;
}

WRAP(int, notice_post_gathered, const struct engine_env *env, struct sender *sender,
	struct channel *channel, struct block *const *blocks, const uint32_t *indices,
	unsigned count)
{
	uint32_t ours[TRANSFER_GATHERED_MAX];
	int r = 0;

	for (unsigned i = 0; i < count && !r; i++) {
		ours[i] = indices[i];
		r = misplace(env, channel, blocks[i], &ours[i]);
	}
	return r ? r : __real_notice_post_gathered(env, sender, channel, blocks, ours, count);
}

WRAP(int, notice_post, const struct engine_env *env, struct sender *sender, struct channel *channel,
	struct block *b, uint32_t index)
{
	int r = misplace(env, channel, b, &index);

	return r ? r : __real_notice_post(env, sender, channel, b, index);
}

/* ---- with the memory of the channel's notices ---- */

static int reach(struct channel *channel, enum fabric_opcode opcode, uint64_t addr, uint32_t key)
{
	struct fabric_sge sge = {channel->receives[0].bytes, REACH_BYTES, channel->receives[0].mr};
	struct fabric_wr wr = {
		.opcode = opcode,
		.flags = FABRIC_SIGNALED,
		.sge = &sge,
		.sge_count = 1,
		.remote_addr = addr,
		.remote_key = key,
	};

	fprintf(stderr, "peer: a bad %s\n", opcode == FABRIC_READ ? "read" : "write");
	return channel_post(channel, &wr, 0);
}

/* The daemon has said CLOSED; the channels are still there. */
WRAP(enum verdict_scope, transfer_send, struct link *link, const struct transfer_params *params,
	const struct transfer_source *from, struct transfer_stats *stats)
{
	enum verdict_scope outcome = __real_transfer_send(link, params, from, stats);
	int r;
	struct channel *channel;

	transfers++;
	if (outcome || (!peer_is("late") && !peer_is("late-read")))
		return outcome;
	channel = link_rail(link, 0)->channels[0];
	r = reach(channel, peer_is("late") ? FABRIC_WRITE : FABRIC_READ, last_addr, last_key);
	for (int ms = 0; ms < REFUSED_MS && !r; ms += LOOK_MS) {
		poll(NULL, 0, LOOK_MS);
		link_check_events(link);
		if (channel->dead)
			r = -EACCES;
	}
	fprintf(stderr, "peer: %s\n", r == -EACCES ? "refused" : r ? "not sent" : "not refused");
	if (r != -EACCES)
		return VERDICT_NONE;
	verdict_set(&stats->verdict, VERDICT_SESSION, STATUS_DENIED, "refused");
	return VERDICT_SESSION;
}

/* ---- a sink ---- */

WRAP(const uint8_t *, channel_take_notice, struct channel *channel, uint32_t slot)
{
	static unsigned notices;
	struct told told;

	if (++notices == GOOD_WRITES && (peer_is("reach") || peer_is("reach-read")) &&
		find_told(FABRIC_LOCAL, &told))
		reach(channel, peer_is("reach") ? FABRIC_WRITE : FABRIC_READ, told.base, told.key);
	return __real_channel_take_notice(channel, slot);
}

WRAP(int, fabric_post_recv, struct fabric_chan *chan, uint64_t id, void *addr, uint32_t bytes,
	struct fabric_mr *mr)
{
	if (peer_is("deaf") && bytes <= NOTICE_BYTES_MAX)
		return 0;
	return __real_fabric_post_recv(chan, id, addr, bytes, mr);
}
