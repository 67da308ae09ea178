/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/engine_status: the engine `status`, both halves, and each of them against a peer that
 * the test plays: who writes wrong status bytes, keeps slots, or goes away.
 */
#include "../engines.h"
#include "../quiet.h"

#include "base/clock.h"

#define SLOTS 8u
#define MANY 64u /* so many that they may wait for each other */
#define ROUNDS 400u

static void blocks_cross_and_the_sink_posts_nothing(void)
{
	for (unsigned channels = 1; channels <= 3; channels++) {
		unsigned landed = 0, sent = 0;
		struct channel_counts source = {0}, sink = {0};
		unsigned seen[256] = {0};
		struct rig rig;
		int settled = 0;

		rig_open(&rig, channels, SLOTS, SLOTS);
		for (unsigned i = 0; i < channels; i++)
			channel_reset_counts(link_rail(rig.source.link, 0)->channels[i]);
		rig_land(&rig, NULL);
		rig_open_sink(&rig, &engine_status, false);
		rig_open_source(&rig, &engine_status, false);
		CHECK_EQ(rig_room(&rig), SLOTS);
		while (landed < ROUNDS) {
			struct block *b = NULL;

			CHECK_EQ(rig_send_to(&rig, &sent, ROUNDS), 0);
			CHECK_EQ(rig_poll_source(&rig), 0);
			if (landed < sent) {
				CHECK_EQ(rig_land(&rig, &b), 0);
				/* not always in the order of sending; but whole, and each once */
				CHECK(rig_holds(b, b->payload[0]));
				seen[b->payload[0]]++;
				landed++;
				CHECK_EQ(rig_drain(&rig, b), 0);
			}
		}
		for (int i = 0; i < RIG_MS && !settled; i++) {
			settled = rig.from->ops->settle(rig.from);
			CHECK_EQ(rig_poll_source(&rig), 0);
			usleep(200);
		}
		CHECK_EQ(settled, 1);
		for (unsigned i = 0; i < 256; i++)
			CHECK_EQ(seen[i], ROUNDS / 256 + (i < ROUNDS % 256));
		for (unsigned i = 0; i < channels; i++) {
			const struct channel_counts *a =
				&link_rail(rig.source.link, 0)->channels[i]->counts;
			const struct channel_counts *k =
				&link_rail(rig.sink.link, 0)->channels[i]->counts;

			source.writes += a->writes;
			source.reads += a->reads;
			source.sends += a->sends;
			source.receives += a->receives;
			source.signalled += a->signalled;
			sink.writes += k->writes + k->sends + k->reads;
			sink.receives += k->receives - 1; /* of the greeting */
		}
		printf("# %u channels: %u blocks, %" PRIu64 " READs, %" PRIu64 " completions\n",
			channels, ROUNDS, source.reads, source.signalled);
		CHECK(source.writes >= 2 * ROUNDS &&
			source.writes <= 2 * ROUNDS + channels); /* the flush */
		CHECK_EQ(source.sends, 0);
		CHECK_EQ(source.receives, 0);
		CHECK(source.reads >= ROUNDS / SLOTS - 1);
		CHECK_EQ(sink.writes, 0);
		CHECK_EQ(sink.receives, 0);
		rig_close(&rig);
	}
}

/* Blocks that are ready together: a WRITE each, and one for each run of neighbouring bytes;
 * whichever slots are free, each block lands once, whole. */
static void neighbours_bytes_go_together(void)
{
	for (unsigned channels = 1; channels <= 2; channels++) {
		unsigned landed = 0, sent = 0, marks[256] = {0};
		uint64_t random = harness_seed(), writes = 0;
		struct block *held[MANY];
		unsigned held_count = 0;
		struct rig rig;

		rig_open(&rig, channels, 2 * MANY, MANY);
		for (unsigned i = 0; i < channels; i++)
			channel_reset_counts(link_rail(rig.source.link, 0)->channels[i]);
		rig_land(&rig, NULL);
		rig_open_sink(&rig, &engine_status, false);
		rig_open_source(&rig, &engine_status, false);
		while (landed < ROUNDS) {
			unsigned batch = 1 + (unsigned)(harness_random(&random) % MANY);
			int r = 1;

			while (sent < ROUNDS && batch-- && r > 0) {
				r = rig_queue(&rig, (uint8_t)sent);
				sent += r > 0;
			}
			CHECK(r >= 0);
			CHECK_EQ(rig_leave(&rig), 0);
			CHECK_EQ(rig_poll_source(&rig), 0);
			for (; landed < sent; landed++) {
				struct block **b = &held[held_count++];

				CHECK_EQ(rig_land(&rig, b), 0);
				CHECK(rig_holds(*b, (*b)->payload[0]));
				marks[(*b)->payload[0]]++;
			}
			/* given back in any order, some later: what is free is not always
			 * neighbours */
			while (held_count >
				(landed < ROUNDS ? harness_random(&random) % MANY : 0)) {
				unsigned i = (unsigned)(harness_random(&random) % held_count);
				struct block *b = held[i];

				held[i] = held[--held_count];
				CHECK_EQ(rig_drain(&rig, b), 0);
			}
		}
		for (unsigned i = 0; i < 256; i++)
			CHECK_EQ(marks[i], ROUNDS / 256 + (i < ROUNDS % 256));
		for (unsigned i = 0; i < channels; i++)
			writes += link_rail(rig.source.link, 0)->channels[i]->counts.writes;
		printf("# %u channels: %u blocks, %" PRIu64 " WRITEs\n", channels, ROUNDS, writes);
		CHECK(writes > ROUNDS && writes < 2 * ROUNDS);
		rig_close(&rig);
	}
}

/* All slots are free, in their order: one WRITE has all their bytes. */
static void one_write_for_all_bytes(void)
{
	struct block *b;
	struct rig rig;

	rig_open(&rig, 1, MANY, MANY);
	channel_reset_counts(link_rail(rig.source.link, 0)->channels[0]);
	rig_land(&rig, NULL);
	rig_open_sink(&rig, &engine_status, false);
	rig_open_source(&rig, &engine_status, false);
	for (unsigned i = 0; i < 8; i++)
		CHECK_EQ(rig_queue(&rig, (uint8_t)i), 1);
	CHECK_EQ(rig_leave(&rig), 0);
	CHECK_EQ(link_rail(rig.source.link, 0)->channels[0]->counts.writes, 8 + 1);
	for (unsigned i = 0; i < 8; i++) {
		CHECK_EQ(rig_land(&rig, &b), 0);
		CHECK(rig_holds(b, (uint8_t)i));
	}
	rig_close(&rig);
}

static void retain(struct rig *rig, struct block *b)
{
	engine_sink_retain(rig->to, b);
	CHECK_EQ(engine_sink_flush(rig->to), 0);
}

static void a_kept_block_is_gone_round(void)
{
	struct block *kept = NULL, *b = NULL;
	unsigned sent = 0, after = 0;
	struct rig rig;

	rig_open(&rig, 1, SLOTS, 3);
	rig_land(&rig, NULL);
	rig_open_sink(&rig, &engine_status, false);
	rig_open_source(&rig, &engine_status, false);
	CHECK_EQ(rig_send(&rig, 1), 1);
	CHECK_EQ(rig_land(&rig, &kept), 0);
	retain(&rig, kept);
	/* the two others go on and on */
	for (unsigned landed = 0; landed < 100;) {
		int r = rig_send(&rig, (uint8_t)(sent + 2));

		CHECK(r >= 0);
		sent += r > 0;
		CHECK_EQ(rig_poll_source(&rig), 0);
		if (landed == sent)
			continue;
		CHECK_EQ(rig_land(&rig, &b), 0);
		CHECK(b != kept);
		CHECK(rig_holds(b, (uint8_t)(landed + 2)));
		CHECK_EQ(rig_drain(&rig, b), 0);
		landed++;
	}
	CHECK(rig_holds(kept, 1));
	/* and it comes back into use */
	CHECK_EQ(rig_drain(&rig, kept), 0);
	for (b = NULL; b != kept && after < 100; after++) {
		int r = 0;

		while (!r) {
			r = rig_send(&rig, 7);
			CHECK_EQ(rig_poll_source(&rig), 0);
		}
		CHECK_EQ(r, 1);
		CHECK_EQ(rig_land(&rig, &b), 0);
		CHECK_EQ(rig_drain(&rig, b), 0);
	}
	CHECK(b == kept);
	rig_close(&rig);
}

/* ---- the sink against a hostile source ---- */

static int write_byte(struct rig *rig, uint32_t index, uint8_t byte)
{
	struct fabric_wr wr = {
		.opcode = FABRIC_WRITE,
		.remote_addr = fabric_mr_base(rig->to->status_mr) + index,
		.remote_key = fabric_mr_key(rig->to->status_mr),
	};

	return rig_post(rig, 0, &wr, &byte, 1);
}

static void bytes_that_no_source_may_write(void)
{
	static const struct {
		uint8_t first, then; /* 0xff: none */
		bool retain;
	} wrongs[] = {
		{2, 0xff, false}, /* a free slot made unavailable */
		{3, 0xff, false},
		{255, 0xff, false},
		{1, 0, false}, /* freed by the source */
		{1, 2, false},
		{1, 77, false},
		{1, 1, true}, /* a kept slot filled again */
		{1, 0, true},
	};

	for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct block *b = NULL;
		struct rig rig;

		rig_open(&rig, 1, 2, 20);
		rig_land(&rig, NULL);
		rig_open_sink(&rig, &engine_status, false);
		CHECK_EQ(write_byte(&rig, 17, wrongs[i].first), 0);
		if (wrongs[i].first == 1) {
			CHECK_EQ(rig_land(&rig, &b), 0);
			CHECK_EQ(b->index, 17);
			if (wrongs[i].retain)
				retain(&rig, b);
			pool_move(b, BLOCK_DRAINING);
			CHECK_EQ(write_byte(&rig, 17, wrongs[i].then), 0);
		}
		CHECK_EQ(rig_poll_sink_until(&rig), -EBADMSG);
		rig_close(&rig);
	}
}

/* However few blocks the loop takes at a time it gets each of them. */
static void it_yields_as_few_as_are_asked_for(void)
{
	for (unsigned max = 1; max <= 20; max += 1 + max / 3) {
		bool seen[20] = {false};
		unsigned landed = 0;
		struct rig rig;

		rig_open(&rig, 1, 2, 20);
		rig_open_sink(&rig, &engine_status, false);
		for (uint32_t i = 0; i < 20; i++)
			CHECK_EQ(write_byte(&rig, i, 1), 0);
		for (int i = 0; i < RIG_MS * 20 && landed < 20; i++) {
			struct block *done[20] = {NULL};
			int n = rig.to->ops->poll(rig.to, done, max);

			CHECK(n >= 0 && (unsigned)n <= max);
			for (int k = 0; k < n; k++) {
				CHECK(!seen[done[k]->index]);
				seen[done[k]->index] = true;
			}
			landed += (unsigned)n;
			if (!n)
				usleep(50);
		}
		CHECK_EQ(landed, 20);
		rig_close(&rig);
	}
}

/* A slot that is filled again and again does not keep its neighbour waiting. */
static void one_at_a_time_is_fair(void)
{
	struct block *done[1] = {NULL};
	struct rig rig;
	bool came = false;

	rig_open(&rig, 1, 2, 8);
	rig_open_sink(&rig, &engine_status, false);
	CHECK_EQ(write_byte(&rig, 0, 1), 0);
	CHECK_EQ(write_byte(&rig, 5, 1), 0);
	for (int i = 0; i < 4 && !came; i++) {
		while (!rig.to->ops->poll(rig.to, done, 1))
			usleep(50);
		CHECK(done[0]);
		came = done[0]->index == 5;
		if (!came) {
			CHECK_EQ(rig_drain(&rig, done[0]), 0);
			CHECK_EQ(write_byte(&rig, 0, 1), 0);
			usleep(2000);
		}
	}
	CHECK(came);
	rig_close(&rig);
}

static void nothing_behind_the_bytes_can_be_written(void)
{
	static const uint32_t depths[] = {20, 64, 70};

	for (unsigned i = 0; i < 3; i++) {
		struct rig rig;

		rig_open(&rig, 1, 2, depths[i]);
		rig_open_sink(&rig, &engine_status, false);
		CHECK_EQ(write_byte(&rig, depths[i] < 64 ? 64 : depths[i], 1), 0);
		CHECK_EQ(rig_poll_sink_until(&rig), -ECONNRESET);
		rig_close(&rig);
	}
}

/* A small region goes on behind the bytes of the slots; whoever writes there breaks the rules. */
static void bytes_of_no_slot(void)
{
	static const uint32_t wrongs[] = {20, 24, 63};

	for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct rig rig;

		rig_open(&rig, 1, 2, 20);
		rig_open_sink(&rig, &engine_status, false);
		CHECK_EQ(write_byte(&rig, wrongs[i], 1 + i % 2), 0);
		CHECK_EQ(rig_poll_sink_until(&rig), -EBADMSG);
		rig_close(&rig);
	}
}

static void after_revoke_nobody_reaches_them(void)
{
	struct fabric_wr wr = {.opcode = FABRIC_WRITE};
	uint8_t byte = 1;
	struct rig rig;

	rig_open(&rig, 1, 2, 4);
	rig_open_sink(&rig, &engine_status, false);
	wr.remote_addr = fabric_mr_base(rig.to->status_mr);
	wr.remote_key = fabric_mr_key(rig.to->status_mr);
	engine_sink_revoke(rig.to);
	CHECK_EQ(rig_post(&rig, 0, &wr, &byte, 1), 0);
	CHECK_EQ(rig_poll_sink_until(&rig), -ECONNRESET);
	rig_close(&rig);
}

static void a_source_that_goes_away_is_noticed(void)
{
	struct rig rig;

	rig_open(&rig, 2, 2, 4);
	rig_open_sink(&rig, &engine_status, false);
	CHECK(engine_sleep_ns(&rig.to->common) >= 0); /* it does not sleep for ever */
	CHECK_EQ(rig.to->ops->poll(rig.to, (struct block *[32]){0}, 32), 0);
	link_close_channels(rig.source.link, 0);
	CHECK_EQ(rig_poll_sink_until(&rig), -ECONNRESET);
	rig_close(&rig);
}

static int poll_nothing(struct rig *rig)
{
	return rig->to->ops->poll(rig->to, (struct block *[32]){0}, 32);
}

static void a_sink_sleeps_longer_and_longer(void)
{
	struct loop_faults faults = {.seed = harness_seed(), .no_watch = true};
	struct block *b = NULL;
	int64_t before, after;
	struct rig rig;

	rig_open_on(&rig, &faults, 1, 2, 2);
	rig_land(&rig, NULL);
	rig_open_sink(&rig, &engine_status, false);
	usleep(2000);
	CHECK_EQ(poll_nothing(&rig), 0);
	before = engine_sleep_ns(&rig.to->common);
	usleep(50000);
	CHECK_EQ(poll_nothing(&rig), 0);
	after = engine_sleep_ns(&rig.to->common);
	CHECK(before > 0 && after >= before);
	CHECK(after <= 5000000);
	/* with all blocks in the sink's hands nothing can come */
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(write_byte(&rig, i, 1), 0);
		CHECK_EQ(rig_land(&rig, &b), 0);
	}
	CHECK_EQ(engine_sleep_ns(&rig.to->common), -1);
	rig_close(&rig);
}

/* Where the fabric sees WRITEs arrive, it wakes the sink, which does not nap in between. */
static void a_sink_is_woken_where_that_can_be(void)
{
	struct block *b = NULL;
	struct pollfd fd = {.events = POLLIN};
	struct rig rig;

	rig_open(&rig, 1, 2, 2);
	rig_land(&rig, NULL);
	rig_open_sink(&rig, &engine_status, false);
	CHECK(engine_sleep_ns(&rig.to->common) > 5000000);
	fd.fd = fabric_cq_fd(link_rail(rig.sink.link, 0)->cq);
	CHECK_EQ(fabric_cq_arm(link_rail(rig.sink.link, 0)->cq), 0);
	CHECK_EQ(poll(&fd, 1, 0), 0);
	CHECK_EQ(write_byte(&rig, 0, 1), 0);
	CHECK_EQ(poll(&fd, 1, 10000), 1);
	CHECK_EQ(rig_land(&rig, &b), 0);
	CHECK(b != NULL);
	rig_close(&rig);
}

static void it_refuses_fabrics_that_cannot(void)
{
	struct fabric_caps caps = {.write_ordered = true, .has_read = true};

	CHECK(!engine_lacks(&engine_status, &caps));
	caps.write_ordered = false;
	CHECK(strstr(engine_lacks(&engine_status, &caps), "order"));
	caps = (struct fabric_caps){.write_ordered = true};
	CHECK(strstr(engine_lacks(&engine_status, &caps), "READ"));
}

/* ---- the source against a sink that the test plays ---- */

struct fake {
	struct rig rig;
	uint8_t bytes[TRANSFER_STATUS_BYTES_MIN]; /* of SLOTS slots */
	struct fabric_mr *mr;
};

static void fake_open(struct fake *f)
{
	struct engine_env env;
	int r;

	rig_open(&f->rig, 1, 2 * SLOTS, SLOTS);
	memset(f->bytes, 0, sizeof f->bytes);
	r = fabric_mr_new(control_pd(link_control(f->rig.sink.link)), f->bytes, sizeof f->bytes,
		FABRIC_REMOTE_WRITE | FABRIC_REMOTE_READ, &f->mr);
	assert(!r);
	env = rig_env(&f->rig, &f->rig.source);
	env.remote_status_base = fabric_mr_base(f->mr);
	env.remote_status_key = fabric_mr_key(f->mr);
	r = engine_status.source->open(&env, &f->rig.from);
	assert(!r);
}

static void fake_close(struct fake *f)
{
	/* before the channels: what is in flight is refused from here on */
	fabric_mr_free(f->mr);
	rig_close(&f->rig);
}

static uint8_t fake_byte(struct fake *f, uint32_t i)
{
	return __atomic_load_n(&f->bytes[i], __ATOMIC_ACQUIRE);
}

/* Fills all slots and waits until their bytes say so. */
static void fake_fill(struct fake *f)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		int r = rig_send(&f->rig, 1);

		assert(r == 1);
	}
	for (uint32_t i = 0; i < SLOTS; i++)
		while (fake_byte(f, i) != 1)
			usleep(50);
}

/* Has the source read until it has room, fails, or has read in vain for a while. */
static int fake_sync(struct fake *f)
{
	struct engine_source *e = f->rig.from;

	for (int i = 0; i < 1000; i++) {
		int r = rig_poll_source(&f->rig);

		if (r)
			return r;
		if (e->ops->room(e, 0))
			return e->ops->room(e, 0);
		r = e->ops->room(e, 1);
		if (r)
			return r;
		usleep(50);
	}
	return 0;
}

static void the_source_takes_what_is_free(void)
{
	struct fake f;

	fake_open(&f);
	fake_fill(&f);
	CHECK_EQ(fake_sync(&f), 0);
	__atomic_store_n(&f.bytes[3], 0, __ATOMIC_RELEASE);
	__atomic_store_n(&f.bytes[4], 2, __ATOMIC_RELEASE);
	CHECK_EQ(fake_sync(&f), 1);
	CHECK_EQ(rig_send(&f.rig, 9), 1);
	while (fake_byte(&f, 3) != 1)
		usleep(50);
	CHECK_EQ(fake_byte(&f, 4), 2);
	CHECK_EQ(fake_sync(&f), 0);
	__atomic_store_n(&f.bytes[4], 0, __ATOMIC_RELEASE);
	CHECK_EQ(fake_sync(&f), 1);
	fake_close(&f);
}

/* While a block waits, and both answers count: what came free between them, too. */
static void a_second_read_leaves_behind_the_first(void)
{
	struct channel_counts *n;
	struct engine_source *e;
	uint64_t reads;
	struct fake f;

	fake_open(&f);
	fake_fill(&f);
	e = f.rig.from;
	n = &link_rail(f.rig.source.link, 0)->channels[0]->counts;
	reads = n->reads;
	for (unsigned round = 0; round < 20; round++) {
		uint32_t first = round % SLOTS, other = (round + 1) % SLOTS;

		while (n->reads ==
			reads) /* there may be a pause; or one has left with the last slots */
			CHECK_EQ(e->ops->room(e, 1), 0);
		usleep(2000); /* carried out */
		__atomic_store_n(&f.bytes[first], 0, __ATOMIC_RELEASE);
		__atomic_store_n(&f.bytes[other], 0, __ATOMIC_RELEASE);
		for (unsigned i = 0; i < 5; i++)
			CHECK_EQ(e->ops->room(e, 1), 0);
		CHECK_EQ(n->reads, reads + 2);
		for (unsigned i = 0; i < RIG_MS && e->ops->room(e, 0) < 2; i++) {
			CHECK_EQ(rig_poll_source(&f.rig), 0);
			usleep(1000);
		}
		CHECK_EQ(e->ops->room(e, 0), 2);
		CHECK_EQ(n->reads, reads + 2);
		reads = n->reads;
		CHECK_EQ(rig_send(&f.rig, 1), 1);
		CHECK_EQ(rig_send(&f.rig, 1), 1);
		while (fake_byte(&f, first) != 1 || fake_byte(&f, other) != 1)
			usleep(50);
	}
	fake_close(&f);
}

static void it_reads_less_and_less_often_in_vain(void)
{
	struct channel_counts *n;
	struct fake f;
	uint64_t until;

	fake_open(&f);
	n = &link_rail(f.rig.source.link, 0)->channels[0]->counts;
	fake_fill(&f);
	until = clock_now_ns() + 100 * NS_PER_MS;
	while (clock_now_ns() < until) {
		int64_t nap;

		CHECK_EQ(rig_poll_source(&f.rig), 0);
		CHECK_EQ(f.rig.from->ops->room(f.rig.from, 1), 0);
		nap = engine_sleep_ns(&f.rig.from->common);
		CHECK(nap <= 10000000);
	}
	printf("# %" PRIu64 " READs in 100 ms\n", n->reads);
	CHECK(n->reads >= 2 && n->reads <= 60);
	fake_close(&f);
}

static void bytes_that_no_sink_may_show(void)
{
	static const uint8_t wrongs[] = {3, 4, 128, 255};

	for (unsigned i = 0; i < sizeof wrongs; i++) {
		struct fake f;

		fake_open(&f);
		fake_fill(&f);
		__atomic_store_n(&f.bytes[5], wrongs[i], __ATOMIC_RELEASE);
		CHECK_EQ(fake_sync(&f), -EBADMSG);
		fake_close(&f);
	}
}

/* What it reads behind the bytes of the slots says nothing. */
static void bytes_of_no_slot_mean_nothing(void)
{
	struct fake f;

	fake_open(&f);
	memset(f.bytes + SLOTS, 0xff, sizeof f.bytes - SLOTS);
	fake_fill(&f);
	CHECK_EQ(fake_sync(&f), 0);
	__atomic_store_n(&f.bytes[SLOTS - 1], 0, __ATOMIC_RELEASE);
	CHECK_EQ(fake_sync(&f), 1);
	CHECK_EQ(rig_send(&f.rig, 9), 1);
	fake_close(&f);
}

/* So many slots are written to.  These are not all of them where a READ came while they were being
 * freed, and has not seen the last ones. */
static void fake_wait(struct fake *f, unsigned sent)
{
	unsigned written = 0;

	while (written < sent) {
		written = 0;
		for (uint32_t i = 0; i < SLOTS; i++)
			written += fake_byte(f, i) == 1;
		if (written < sent)
			usleep(50);
	}
}

/* One try: what the source said to slots that changed while it held them to be free, or 0 when its
 * READs all came too late to see it.  `*wrong_rig`: the set-up did not work. */
static int try_changed_slots(uint8_t wrong, int polls, bool *wrong_rig)
{
	struct engine_source *e;
	struct fake f;
	int r = 1;

	fake_open(&f);
	e = f.rig.from;
	/* READs come early enough once blocks had to wait for them */
	for (unsigned round = 0; round < 20 && r >= 0; round++) {
		unsigned sent = 1;

		while (e->ops->room(e, 0) > 1 && (r = rig_send(&f.rig, 1)) == 1)
			sent++;
		*wrong_rig |= e->ops->room(e, 0) != 1;
		r = rig_send(&f.rig, 1);
		*wrong_rig |= r != 1;
		if (!*wrong_rig)
			fake_wait(&f, sent);
		/* blocks wait, and then all slots come free */
		*wrong_rig |= rig_send(&f.rig, 1) != 0;
		*wrong_rig |= rig_send(&f.rig, 1) != 0;
		for (uint32_t i = 0; i < SLOTS; i++)
			__atomic_store_n(&f.bytes[i], 0, __ATOMIC_RELEASE);
		*wrong_rig |= fake_sync(&f) <= 0;
		if (*wrong_rig)
			break;
	}
	/* slots that the source holds to be free; it reads while it still has some */
	for (uint32_t i = 0; i < SLOTS; i++)
		__atomic_store_n(&f.bytes[i], wrong, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < SLOTS && r >= 0 && !*wrong_rig; i++) {
		r = rig_send(&f.rig, 1);
		for (int k = 0; k < polls && r >= 0; k++) {
			r = rig_poll_source(&f.rig);
			usleep(50);
		}
	}
	fake_close(&f);
	return r < 0 ? r : 0;
}

/* A slot that was free, and that the source has not written to, must stay free.  On a busy host a
 * READ may come only after the source has overwritten what was wrong: then it is tried again, with
 * more time. */
static void a_free_slot_that_is_not(void)
{
	for (uint8_t wrong = 1; wrong <= 2; wrong++) {
		bool wrong_rig = false;
		int r = 0;

		for (int tries = 0; tries < 50 && !r && !wrong_rig; tries++)
			r = try_changed_slots(wrong, 40 + 20 * tries, &wrong_rig);
		CHECK(!wrong_rig);
		CHECK_EQ(r, -EBADMSG);
	}
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"blocks cross; the sink posts nothing", blocks_cross_and_the_sink_posts_nothing},
		{"neighbours' bytes go together", neighbours_bytes_go_together},
		{"one WRITE for all bytes", one_write_for_all_bytes},
		{"a block that is kept is gone round", a_kept_block_is_gone_round},
		{"status bytes that no source may write", bytes_that_no_source_may_write},
		{"it yields as few as are asked for", it_yields_as_few_as_are_asked_for},
		{"one at a time is fair", one_at_a_time_is_fair},
		{"nothing behind the bytes can be written",
			nothing_behind_the_bytes_can_be_written},
		{"status bytes of no slot", bytes_of_no_slot},
		{"after revoke nobody reaches them", after_revoke_nobody_reaches_them},
		{"a source that goes away is noticed", a_source_that_goes_away_is_noticed},
		{"a sink sleeps longer and longer", a_sink_sleeps_longer_and_longer},
		{"it refuses fabrics that cannot", it_refuses_fabrics_that_cannot},
		{"a sink is woken where that can be", a_sink_is_woken_where_that_can_be},
		{"the source takes what is free", the_source_takes_what_is_free},
		{"a second READ leaves behind the first", a_second_read_leaves_behind_the_first},
		{"it reads less and less often in vain", it_reads_less_and_less_often_in_vain},
		{"status bytes that no sink may show", bytes_that_no_sink_may_show},
		{"bytes of no slot mean nothing", bytes_of_no_slot_mean_nothing},
		{"a free slot that is not", a_free_slot_that_is_not},
		{NULL, NULL},
	};

	/* provoked errors are no news */
	if (!quiet_log("engine_status"))
		return 2;
	return harness_run(cases, argc, argv);
}
