/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/engine_window: the engine `window`, both halves, and each of them against a peer that
 * the test plays: who names slots that are not its to name.
 */
#include "../engines.h"
#include "../quiet.h"

#include "base/clock.h"

#define SLOTS 8u
#define ROUNDS 400u

static void blocks_cross_and_slots_come_back(void)
{
	for (unsigned k = 0; k < 6; k++) {
		unsigned channels = 1 + k / 2, landed = 0, sent = 0, seen[256] = {0};
		bool imm = k & 1;
		uint64_t acks = 0, receives = 0;
		struct rig rig;
		int settled = 0;

		rig_open(&rig, channels, SLOTS, SLOTS);
		rig_land(&rig, NULL);
		rig_open_sink(&rig, &engine_window, imm);
		rig_open_source(&rig, &engine_window, imm);
		while (landed < ROUNDS) {
			struct block *b = NULL;

			CHECK_EQ(rig_send_to(&rig, &sent, ROUNDS), 0);
			CHECK_EQ(rig_poll_source(&rig), 0);
			if (landed == sent)
				continue;
			CHECK_EQ(rig_land(&rig, &b), 0);
			CHECK(rig_holds(b, b->payload[0]));
			if (channels == 1)
				CHECK_EQ(b->payload[0], (uint8_t)landed);
			seen[b->payload[0]]++;
			landed++;
			CHECK_EQ(rig_drain(&rig, b), 0);
		}
		for (int i = 0; i < RIG_MS && !settled; i++) {
			settled = rig.from->ops->settle(rig.from);
			CHECK_EQ(rig_poll_source(&rig), 0);
			usleep(200);
		}
		CHECK_EQ(settled, 1);
		CHECK_EQ(rig_room(&rig), SLOTS);
		for (unsigned i = 0; i < 256; i++)
			CHECK_EQ(seen[i], ROUNDS / 256 + (i < ROUNDS % 256));
		for (unsigned i = 0; i < channels; i++) {
			acks += link_rail(rig.sink.link, 0)->channels[i]->counts.sends;
			receives += link_rail(rig.source.link, 0)->channels[i]->counts.receives;
		}
		CHECK_EQ(acks, ROUNDS);
		CHECK_EQ(receives, ROUNDS + channels * SLOTS);
		rig_close(&rig);
	}
}

/* Emptied from the last to the first: nothing comes back before the first. */
static void a_kept_slot_holds_up_all_behind_it(void)
{
	struct block *blocks[SLOTS] = {0};
	struct engine_source *e;
	struct rig rig;

	rig_open(&rig, 1, SLOTS, SLOTS);
	rig_land(&rig, NULL);
	rig_open_sink(&rig, &engine_window, false);
	rig_open_source(&rig, &engine_window, false);
	e = rig.from;
	for (unsigned i = 0; i < SLOTS; i++)
		CHECK_EQ(rig_send(&rig, (uint8_t)i), 1);
	CHECK_EQ(e->ops->room(e, 0), 0);
	for (unsigned i = 0; i < SLOTS; i++)
		CHECK_EQ(rig_land(&rig, &blocks[i]), 0);
	for (unsigned i = SLOTS - 1; i; i--)
		CHECK_EQ(rig_drain(&rig, blocks[i]), 0);
	for (unsigned i = 0; i < 100; i++) {
		CHECK_EQ(rig_poll_source(&rig), 0);
		CHECK_EQ(e->ops->room(e, 0), 0);
		usleep(50);
	}
	CHECK_EQ(rig_drain(&rig, blocks[0]), 0);
	for (unsigned i = 0; i < RIG_MS && e->ops->room(e, 0) < (int)SLOTS; i++) {
		CHECK_EQ(rig_poll_source(&rig), 0);
		usleep(50);
	}
	CHECK_EQ(e->ops->room(e, 0), SLOTS);
	rig_close(&rig);
}

/* ---- a hostile source ---- */

static int notice(struct rig *rig, uint32_t index, uint32_t bytes)
{
	uint8_t data[8] = {(uint8_t)(index >> 24), (uint8_t)(index >> 16), (uint8_t)(index >> 8),
		(uint8_t)index};
	struct fabric_wr wr = {.opcode = FABRIC_SEND};

	return rig_post(rig, 0, &wr, data, bytes);
}

static void notices_that_are_not_allowed(void)
{
	static const struct {
		uint32_t index, bytes;
		bool twice;
	} wrongs[] = {{SLOTS, 4, false}, {65535, 4, false}, {0xffffffff, 4, false}, {0, 3, false},
		{0, 0, false}, {0, 8, false}, {3, 4, true}};

	for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct rig rig;

		rig_open(&rig, 1, 2, SLOTS);
		rig_open_sink(&rig, &engine_window, false);
		CHECK_EQ(notice(&rig, wrongs[i].index, wrongs[i].bytes), 0);
		if (wrongs[i].twice) {
			CHECK_EQ(rig_poll_sink_until(&rig), 1);
			CHECK_EQ(notice(&rig, wrongs[i].index, wrongs[i].bytes), 0);
		}
		CHECK_EQ(rig_poll_sink_until(&rig), -EBADMSG);
		rig_close(&rig);
	}
}

/* Emptied, but without its ACK, for one before it is full: not the source's yet. */
static void a_slot_without_its_ack_is_not_the_sources(void)
{
	struct block *first = NULL, *second = NULL;
	struct rig rig;

	rig_open(&rig, 1, 2, SLOTS);
	rig_land(&rig, NULL);
	rig_open_sink(&rig, &engine_window, false);
	CHECK_EQ(notice(&rig, 0, 4), 0);
	CHECK_EQ(rig_land(&rig, &first), 0);
	CHECK_EQ(notice(&rig, 1, 4), 0);
	CHECK_EQ(rig_land(&rig, &second), 0);
	CHECK_EQ(rig_drain(&rig, second), 0);
	CHECK_EQ(notice(&rig, 1, 4), 0);
	CHECK_EQ(rig_poll_sink_until(&rig), -EBADMSG);
	rig_close(&rig);
}

/* ---- a hostile sink ---- */

static int ack(struct rig *rig, uint32_t index)
{
	uint8_t data[4] = {(uint8_t)(index >> 24), (uint8_t)(index >> 16), (uint8_t)(index >> 8),
		(uint8_t)index};
	struct fabric_sge sge = {data, 4, NULL};
	struct fabric_wr wr = {.id = CHANNEL_ID(CHANNEL_ACK, 0),
		.opcode = FABRIC_SEND,
		.flags = FABRIC_SIGNALED | FABRIC_INLINE,
		.sge = &sge,
		.sge_count = 1};

	return channel_post(link_rail(rig->sink.link, 0)->channels[0], &wr, 0);
}

static void acks_that_are_not_allowed(void)
{
	static const struct {
		uint32_t first, then;
	} wrongs[] = {{2, 2} /* not sent */, {SLOTS, 0}, {0xffffffff, 0}, {1, 1} /* twice */,
		{0, 0} /* twice */, {7, 7}};

	for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct rig rig;
		int r = 0;

		rig_open(&rig, 1, 2, SLOTS);
		CHECK_EQ(channel_post_notices(link_rail(rig.sink.link, 0)->channels[0], SLOTS), 0);
		rig_open_source(&rig, &engine_window, false);
		CHECK_EQ(rig_send(&rig, 1), 1);
		CHECK_EQ(rig_send(&rig, 1), 1);
		CHECK_EQ(ack(&rig, wrongs[i].first), 0);
		CHECK_EQ(ack(&rig, wrongs[i].then), 0);
		for (int k = 0; k < RIG_MS && !r; k++) {
			r = rig_poll_source(&rig);
			usleep(50);
		}
		CHECK_EQ(r, -EBADMSG);
		rig_close(&rig);
	}
}

/* ---- the source's thread ---- */

/* Until the thread has seen it. */
static bool comes_to(struct engine_source *e, unsigned room)
{
	for (unsigned i = 0; i < RIG_MS && e->ops->room(e, 0) != (int)room; i++)
		usleep(1000);
	return e->ops->room(e, 0) == (int)room;
}

static bool rings(struct rig *rig, int timeout_ms)
{
	struct pollfd fd = {fabric_cq_fd(link_rail(rig->source.link, 0)->cq), POLLIN, 0};

	return poll(&fd, 1, timeout_ms) == 1;
}

static bool settles(struct rig *rig)
{
	struct engine_source *e = rig->from;
	int r = 0;

	for (unsigned i = 0; i < RIG_MS && !r; i++) {
		r = rig_poll_source(rig);
		if (!r)
			r = e->ops->settle(e);
		usleep(r ? 0 : 100);
	}
	return r > 0;
}

/* Both engines; SLOTS blocks are at the sink. */
static void open_full(struct rig *rig, struct block *blocks[SLOTS])
{
	int r = 0;

	rig_open(rig, 1, 2 * SLOTS, SLOTS);
	rig_land(rig, NULL);
	rig_open_sink(rig, &engine_window, false);
	rig_open_source(rig, &engine_window, false);
	for (unsigned i = 0; i < SLOTS && r >= 0; i++)
		r = rig_send(rig, (uint8_t)i);
	for (unsigned i = 0; i < SLOTS && r >= 0; i++)
		r = rig_land(rig, &blocks[i]);
	assert(r >= 0);
}

static void the_window_moves_while_the_loop_does_nothing(void)
{
	struct block *blocks[SLOTS];
	struct engine_source *e;
	struct channel *channel;
	struct rig rig;

	open_full(&rig, blocks);
	e = rig.from;
	channel = link_rail(rig.source.link, 0)->channels[0];
	for (unsigned i = 0; i < SLOTS; i++) {
		CHECK_EQ(e->ops->room(e, 0), i);
		CHECK_EQ(rig_drain(&rig, blocks[i]), 0);
		CHECK(comes_to(e, i + 1));
	}
	/* its own completions, and that of the greeting, wait for the loop; or for the end */
	CHECK(channel->queue.out);
	CHECK(settles(&rig));
	e->ops->stop(e);
	CHECK_EQ(channel->queue.out, 0);
	CHECK_EQ(channel->counts.receives, 2 * SLOTS);
	rig_close(&rig);
}

/* It sleeps on the queue, and the thread may be the first to look into that. */
static void who_sleeps_is_woken(void)
{
	struct block *blocks[SLOTS];
	struct engine_source *e;
	struct rig rig;

	open_full(&rig, blocks);
	e = rig.from;
	/* all that was sent is done, so that nothing but ACKs can come */
	for (unsigned i = 0; i < RIG_MS && pool_free_count(rig.source.pool) < 2 * SLOTS; i++) {
		e->ops->settle(e);
		CHECK_EQ(rig_poll_source(&rig), 0);
		usleep(1000);
	}
	CHECK_EQ(pool_free_count(rig.source.pool), 2 * SLOTS);
	for (unsigned i = 0; i < SLOTS; i++) {
		CHECK_EQ(fabric_cq_arm(link_rail(rig.source.link, 0)->cq), 0);
		CHECK_EQ(rig_poll_source(&rig), 0);
		CHECK_EQ(e->ops->room(e, 0), i);
		CHECK(!rings(&rig, 0));
		CHECK_EQ(rig_drain(&rig, blocks[i]), 0);
		if (i % 2)
			CHECK(comes_to(e, i + 1)); /* the thread has it */
		CHECK(rings(&rig, RIG_MS));
		CHECK_EQ(rig_poll_source(&rig), 0);
		CHECK_EQ(e->ops->room(e, 0), i + 1);
	}
	rig_close(&rig);
}

/* Two look, and each ACK is taken once. */
static void loop_and_thread_look_at_once(void)
{
	unsigned landed = 0, sent = 0;
	struct rig rig;

	rig_open(&rig, 2, SLOTS, SLOTS);
	rig_land(&rig, NULL);
	rig_open_sink(&rig, &engine_window, false);
	rig_open_source(&rig, &engine_window, false);
	while (landed < ROUNDS) {
		struct block *b = NULL;

		CHECK_EQ(rig_send_to(&rig, &sent, ROUNDS), 0);
		/* from not at all to longer than the thread naps */
		usleep(landed * landed % 3 ? 0 : landed % 4 * 1000);
		CHECK_EQ(rig_poll_source(&rig), 0);
		if (landed == sent)
			continue;
		CHECK_EQ(rig_land(&rig, &b), 0);
		landed++;
		CHECK_EQ(rig_drain(&rig, b), 0);
	}
	CHECK(settles(&rig));
	CHECK_EQ(rig_room(&rig), SLOTS);
	rig_close(&rig);
}

static void errors_of_the_thread_reach_the_loop(void)
{
	for (unsigned k = 0; k < 4; k++) {
		struct rig rig;

		rig_open(&rig, 2, 2, SLOTS);
		CHECK_EQ(channel_post_notices(link_rail(rig.sink.link, 0)->channels[0], SLOTS), 0);
		rig_open_source(&rig, &engine_window, false);
		usleep(2000); /* it sleeps */
		CHECK_EQ(fabric_cq_arm(link_rail(rig.source.link, 0)->cq), 0);
		CHECK_EQ(rig_poll_source(&rig), 0);
		if (k % 2)
			CHECK_EQ(ack(&rig, 0), 0);
		else
			link_close_channels(rig.sink.link, 0);
		CHECK(rings(&rig, RIG_MS));
		usleep(k / 2 * 10000);      /* the thread has it, too */
		for (int i = 0; i < 3; i++) /* and stay */
			CHECK_EQ(rig_poll_source(&rig), k % 2 ? -EBADMSG : -ECONNRESET);
		rig_close(&rig);
	}
}

/* After one transfer and before the next, on the same channels. */
static void it_leaves_nothing_behind(void)
{
	struct block *b;
	struct rig rig;

	rig_open(&rig, 1, 2, SLOTS);
	for (unsigned i = 0; i < 100; i++) {
		const struct channel *channel = link_rail(rig.source.link, 0)->channels[0];

		rig_land(&rig, NULL);
		rig_open_sink(&rig, &engine_window, i & 1);
		rig_open_source(&rig, &engine_window, i & 1);
		CHECK_EQ(rig_send(&rig, (uint8_t)i), 1);
		CHECK_EQ(rig_land(&rig, &b), 0);
		CHECK(rig_holds(b, (uint8_t)i));
		CHECK_EQ(rig_drain(&rig, b), 0);
		CHECK(settles(&rig));
		if (i % 4 == 0)
			usleep(300); /* it sleeps */
		if (i % 2)
			rig.from->ops->stop(rig.from);
		rig.from->ops->close(rig.from);
		rig.to->ops->close(rig.to);
		rig.from = NULL;
		rig.to = NULL;
		CHECK_EQ(channel->queue.out, 0);
		CHECK_EQ(channel->depth + TRANSFER_EARLY_MAX + 1 - channel->idle_count, SLOTS);
		while (pool_take(rig.sink.pool, BLOCK_GRANTED))
			;
		for (unsigned k = 0; k < SLOTS; k++)
			pool_give(rig.sink.pool, pool_at(rig.sink.pool, k));
	}
	rig_close(&rig);
}

/* In the middle of it all, as when a transfer is given up. */
static void it_ends_at_any_time(void)
{
	uint64_t random = harness_seed();

	for (unsigned i = 0; i < 100; i++) {
		struct block *blocks[SLOTS];
		uint64_t from;
		struct rig rig;

		open_full(&rig, blocks);
		for (unsigned k = harness_random(&random) % SLOTS; k; k--)
			CHECK_EQ(rig_drain(&rig, blocks[k - 1]), 0);
		if (harness_random(&random) % 2)
			link_close_channels(rig.sink.link, 0);
		if (harness_random(&random) % 2)
			usleep(harness_random(&random) % 300);
		from = clock_now_ns();
		rig.from->ops->stop(rig.from);
		rig.from->ops->stop(rig.from);
		CHECK(clock_now_ns() - from < 5 * NS_PER_S);
		rig_close(&rig);
	}
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"blocks cross and slots come back", blocks_cross_and_slots_come_back},
		{"a slot that is kept holds up all behind it", a_kept_slot_holds_up_all_behind_it},
		{"notices that are not allowed", notices_that_are_not_allowed},
		{"a slot without its ACK is not the source's",
			a_slot_without_its_ack_is_not_the_sources},
		{"ACKs that are not allowed", acks_that_are_not_allowed},
		{"the window moves while the loop does nothing",
			the_window_moves_while_the_loop_does_nothing},
		{"who sleeps is woken, whoever looks first", who_sleeps_is_woken},
		{"loop and thread look at once", loop_and_thread_look_at_once},
		{"errors of the thread reach the loop", errors_of_the_thread_reach_the_loop},
		{"the thread leaves nothing behind", it_leaves_nothing_behind},
		{"the thread ends at any time", it_ends_at_any_time},
		{NULL, NULL},
	};

	/* provoked errors are no news */
	if (!quiet_log("engine_window"))
		return 2;
	return harness_run(cases, argc, argv);
}
