/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathered notices of the credit engine: what they save, what blocks hold after them, and what a
 * peer may not write in one.
 */
#include "../engines.h"

#include "base/log.h"

#define SLOTS 16u
#define MANY 64u /* so many that they may wait for each other */
#define ROUNDS 400u

/* The sink's grants, taken in by the source's engine at once. */
static int hand_over(void *ctx, uint16_t type, const void *data, size_t len)
{
	struct rig *rig = ctx;

	if (!rig->from)
		return 0; /* the test plays the source */
	return engine_source_frame(rig->from, type, data, len) < 0 ? -EBADMSG : 0;
}

static struct engine_env env_of(struct rig *rig, const struct half *h)
{
	struct engine_env env = rig_env(rig, h);

	env.notice = TRANSFER_NOTICE_GATHERED;
	env.put = hand_over;
	env.put_ctx = rig;
	return env;
}

static void open_engines(struct rig *rig, bool source)
{
	struct engine_env env;

	rig_land(rig, NULL);
	env = env_of(rig, &rig->sink);
	CHECK_EQ(engine_credit.sink->open(&env, &rig->to), 0);
	env = env_of(rig, &rig->source);
	if (source)
		CHECK_EQ(engine_credit.source->open(&env, &rig->from), 0);
	CHECK_EQ(engine_sink_flush(rig->to), 0); /* the first grants */
}

static struct channel_counts sums(const struct rig *rig, const struct half *h)
{
	struct channel_counts sum = {0};

	for (unsigned i = 0; i < rig->channels; i++) {
		const struct channel_counts *n = &link_rail(h->link, 0)->channels[i]->counts;

		sum.writes += n->writes;
		sum.sends += n->sends;
		sum.signalled += n->signalled;
	}
	return sum;
}

/* Blocks that are ready at the same time cross with one notice, and each lands once, whole. */
static void many_blocks_one_notice(void)
{
	for (unsigned channels = 1; channels <= 3; channels++) {
		unsigned sent = 0, landed = 0;
		struct channel_counts n;
		struct rig rig;

		rig_open(&rig, channels, MANY, MANY);
		open_engines(&rig, true);
		for (unsigned i = 0; i < channels; i++)
			channel_reset_counts(link_rail(rig.source.link, 0)->channels[i]);
		while (landed < ROUNDS) {
			int r = 1;

			while (sent < ROUNDS && (r = rig_queue(&rig, (uint8_t)sent)) == 1)
				sent++;
			CHECK(r >= 0);
			CHECK_EQ(rig_leave(&rig), 0);
			while (landed < sent) {
				struct block *b;
				unsigned mark;

				CHECK_EQ(rig_land(&rig, &b), 0);
				mark = b->payload[0];
				/* several channels overtake each other */
				CHECK(channels > 1 || mark == landed % 256);
				CHECK(rig_holds(b, (uint8_t)mark));
				landed++;
				CHECK_EQ(rig_drain(&rig, b), 0);
			}
			CHECK_EQ(rig_poll_source(&rig), 0);
		}
		n = sums(&rig, &rig.source);
		printf("# %u channels: %u blocks, %lu notices, %lu completions\n", channels, ROUNDS,
			(unsigned long)n.sends, (unsigned long)n.signalled);
		CHECK_EQ(n.writes, ROUNDS);
		CHECK(n.sends <= ROUNDS / 4);
		CHECK(n.signalled <= n.sends);
		for (int i = 0, r = 0; r != 1 && i < RIG_MS * 20; i++) {
			r = rig.from->ops->settle(rig.from);
			CHECK(r >= 0);
			CHECK_EQ(rig_poll_source(&rig), 0);
			CHECK(i + 1 < RIG_MS * 20);
			usleep(50);
		}
		CHECK_EQ(pool_free_count(rig.source.pool), MANY);
		rig_close(&rig);
	}
}

/* With few slots a block does not wait for another: the sink would have nothing to do. */
static void few_slots_gather_little(void)
{
	struct rig rig;

	rig_open(&rig, 1, SLOTS, 3);
	open_engines(&rig, true);
	channel_reset_counts(link_rail(rig.source.link, 0)->channels[0]);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(rig_queue(&rig, (uint8_t)i), 1);
	CHECK_EQ(rig_leave(&rig), 0);
	CHECK_EQ(sums(&rig, &rig.source).sends, 3);
	rig_close(&rig);
}

/* What is ready alone does not wait for others. */
static void one_block_leaves_at_once(void)
{
	struct block *b;
	struct rig rig;

	rig_open(&rig, 1, SLOTS, SLOTS);
	open_engines(&rig, true);
	for (unsigned i = 0; i < 40; i++) {
		CHECK_EQ(rig_send(&rig, (uint8_t)i), 1);
		CHECK_EQ(rig_land(&rig, &b), 0);
		CHECK(rig_holds(b, (uint8_t)i));
		CHECK_EQ(rig_drain(&rig, b), 0);
		CHECK_EQ(rig_poll_source(&rig), 0);
	}
	rig_close(&rig);
}

/* ---- a hostile source ---- */

static size_t put_entries(uint8_t *data, const uint32_t *indices, unsigned count)
{
	static const uint8_t header[TRANSFER_BLOCK_BYTES] = {1};

	for (unsigned i = 0; i < count; i++)
		transfer_put_gathered(
			indices[i], header, data + (size_t)i * TRANSFER_GATHERED_BYTES);
	return (size_t)count * TRANSFER_GATHERED_BYTES;
}

/* The sink's poll must say `answer` to a notice of these blocks, `more` bytes longer than it should
 * be; -1: any error. */
static void check_notice(const uint32_t *indices, unsigned count, int more, int answer)
{
	struct fabric_sge sge = {NULL, 0, NULL};
	struct fabric_wr wr = {
		.id = CHANNEL_ID(CHANNEL_ACK, 0),
		.opcode = FABRIC_SEND,
		.flags = FABRIC_SIGNALED,
		.sge = &sge,
		.sge_count = 1,
	};
	struct rig rig;
	int n;

	rig_open(&rig, 1, 2, SLOTS + 4);
	open_engines(&rig, false); /* 16 of the 20 are granted */
	sge.addr = pool_at(rig.source.pool, 0)->payload;
	sge.mr = rig.source.mr;
	sge.bytes = (uint32_t)((int)put_entries(sge.addr, indices, count) + more);
	CHECK_EQ(channel_post(link_rail(rig.source.link, 0)->channels[0], &wr, 0), 0);
	n = rig_poll_sink_until(&rig);
	rig_close(&rig);
	CHECK(answer == -1 ? n < 0 : n == answer);
}

static void notices_that_are_not_allowed(void)
{
	static const uint32_t in_order[TRANSFER_GATHERED_MAX + 1] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
	static const uint32_t twice[] = {3, 4, 3}, far[] = {0, SLOTS + 4}, wild[] = {UINT32_MAX};

	check_notice(in_order, 1, 0, 1);
	check_notice(in_order, TRANSFER_GATHERED_MAX, 0, TRANSFER_GATHERED_MAX);
	check_notice(in_order, TRANSFER_GATHERED_MAX + 1, 0, -1); /* no receive has room for it */
	check_notice(in_order, 1, -1, -EBADMSG);
	check_notice(in_order, 1, 1, -EBADMSG);
	check_notice(in_order, 2, -(int)TRANSFER_GATHERED_BYTES / 2, -EBADMSG);
	check_notice(in_order, 0, 4, -EBADMSG); /* the size of a notice of one block */
	check_notice(in_order, 0, 0, -EBADMSG);
	check_notice(twice, 3, 0, -EBADMSG);
	check_notice(far, 2, 0, -EBADMSG);
	check_notice(wild, 1, 0, -EBADMSG);
	for (uint32_t i = 0; i < SLOTS + 4; i++)
		check_notice(
			&i, 1, 0, i < SLOTS ? 1 : -EBADMSG); /* the last four are not granted */
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"many blocks, one notice", many_blocks_one_notice},
		{"few slots gather little", few_slots_gather_little},
		{"one block leaves at once", one_block_leaves_at_once},
		{"notices that are not allowed", notices_that_are_not_allowed},
		{NULL, NULL},
	};

	/* provoked errors are no news */
	log_setup("engine_credit", getenv("RFTP_LOG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	return harness_run(cases, argc, argv);
}
