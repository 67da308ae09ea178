/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/engine_pull: the engine `pull` where the sink fetches: both halves, and each of them
 * against a peer that the test plays: who writes wrong bytes, forges records, or goes away.
 */
#include "../engines.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/pull/pull_engine.h"
#include "proto/message.h"
#include "proto/transfer_expose.h"

#define SLOTS 8u
#define ROUNDS 400u

/* What the source's engine has said on the control channel. */
struct said {
	uint8_t data[64];
	size_t len;
	struct transfer_expose expose;
};

static int hear(void *ctx, uint16_t type, const void *data, size_t len)
{
	struct said *said = ctx;

	/* once, and well-formed */
	assert(type == TRANSFER_EXPOSE && !said->len && len <= sizeof said->data);
	memcpy(said->data, data, len);
	said->len = len;
	if (transfer_get_expose(&said->expose, data, len))
		return -EBADMSG;
	return 0;
}

static void expose_memory(struct half *h, unsigned access)
{
	int r;

	fabric_mr_free(h->mr);
	r = fabric_mr_new(
		control_pd(link_control(h->link)), h->arena.base, h->arena.bytes, access, &h->mr);
	assert(!r);
}

static void open_memory_on(struct rig *rig, const struct loop_faults *faults, unsigned channels,
	uint32_t source_blocks, uint32_t sink_blocks)
{
	rig_open_on(rig, faults, channels, source_blocks, sink_blocks);
	expose_memory(&rig->source, pull_source_ops.access);
	expose_memory(&rig->sink, pull_sink_ops.access);
	rig_land(rig, NULL);
	for (unsigned i = 0; i < channels; i++) {
		channel_reset_counts(link_rail(rig->source.link, 0)->channels[i]);
		channel_reset_counts(link_rail(rig->sink.link, 0)->channels[i]);
	}
}

static void open_memory(struct rig *rig, unsigned channels, uint32_t source, uint32_t sink)
{
	struct loop_faults faults = {.seed = harness_seed()};

	open_memory_on(rig, &faults, channels, source, sink);
}

static void open_source(struct rig *rig, struct said *said)
{
	struct engine_env env = rig_env(rig, &rig->source);
	int r;

	*said = (struct said){0};
	env.put = hear;
	env.put_ctx = said;
	r = pull_source_ops.open(&env, &rig->from);
	assert(!r);
	CHECK(said->len > 0);
}

static void open_sink(struct rig *rig)
{
	struct engine_env env = rig_env(rig, &rig->sink);
	int r = pull_sink_ops.open(&env, &rig->to);

	assert(!r);
}

static int tell(struct rig *rig, const struct transfer_expose *expose)
{
	uint8_t data[64];
	ssize_t len = transfer_put_expose(expose, data, sizeof data);

	assert(len > 0);
	return engine_sink_frame(rig->to, TRANSFER_EXPOSE, data, (size_t)len);
}

static void open_both(struct rig *rig, struct said *said, unsigned channels, uint32_t blocks)
{
	open_memory(rig, channels, blocks, blocks);
	open_source(rig, said);
	open_sink(rig);
	CHECK_EQ(tell(rig, &said->expose), 1);
}

static struct channel_counts counts_of(const struct half *h, unsigned channels)
{
	struct channel_counts sum = {0};

	for (unsigned i = 0; i < channels; i++) {
		const struct channel_counts *n = &link_rail(h->link, 0)->channels[i]->counts;

		sum.writes += n->writes;
		sum.sends += n->sends;
		sum.reads += n->reads;
		sum.receives += n->receives;
	}
	return sum;
}

/* ---- both halves ---- */

static void settle_both(struct rig *rig)
{
	int source = 0, sink = 0;

	for (int i = 0; i < RIG_MS && (!source || !sink); i++) {
		struct block *none[1];

		source = rig->from->ops->settle(rig->from);
		if (source)
			sink = rig->to->ops->settle(rig->to);
		CHECK_EQ(rig->to->ops->poll(rig->to, none, 1), 0);
		CHECK_EQ(rig_poll_source(rig), 0);
		usleep(200);
	}
	CHECK_EQ(source, 1);
	CHECK_EQ(sink, 1);
}

/* Held back and given back in any order, each block lands once, whole; and nothing is posted by the
 * source. */
static void blocks_cross_and_the_source_posts_nothing(void)
{
	for (unsigned channels = 1; channels <= 3; channels++) {
		unsigned sent = 0, landed = 0, held_count = 0, seen[256] = {0};
		uint64_t random = harness_seed();
		struct channel_counts source, sink;
		struct block *held[SLOTS];
		struct said said;
		struct rig rig;

		open_both(&rig, &said, channels, SLOTS);
		while (landed < ROUNDS) {
			CHECK_EQ(rig_send_to(&rig, &sent, ROUNDS), 0);
			for (; landed < sent; landed++) {
				struct block **b = &held[held_count++];

				CHECK_EQ(rig_land(&rig, b), 0);
				CHECK(rig_holds(*b, (*b)->payload[0]));
				seen[(*b)->payload[0]]++;
			}
			while (held_count >
				(landed < ROUNDS ? harness_random(&random) % SLOTS : 0)) {
				unsigned i = (unsigned)(harness_random(&random) % held_count);
				struct block *b = held[i];

				held[i] = held[--held_count];
				CHECK_EQ(rig_drain(&rig, b), 0);
			}
			CHECK_EQ(rig_poll_source(&rig), 0);
		}
		settle_both(&rig);
		for (unsigned i = 0; i < 256; i++)
			CHECK_EQ(seen[i], ROUNDS / 256 + (i < ROUNDS % 256));
		source = counts_of(&rig.source, channels);
		sink = counts_of(&rig.sink, channels);
		printf("# %u channels: %u blocks, %" PRIu64 " READs, %" PRIu64 " WRITEs\n",
			channels, ROUNDS, sink.reads, sink.writes);
		CHECK_EQ(source.writes + source.sends + source.reads + source.receives, 0);
		CHECK_EQ(sink.sends + sink.receives, 0);
		CHECK(sink.reads > ROUNDS);
		CHECK(sink.writes <= ROUNDS);
		CHECK_EQ(pool_free_count(rig.source.pool), SLOTS);
		rig_close(&rig);
	}
}

/* Blocks are fetched in the order of their numbers, and no more of each than is in it. */
static void in_order_and_as_long_as_they_are(void)
{
	uint32_t bytes[SLOTS];
	struct said said;
	struct rig rig;

	open_both(&rig, &said, 2, SLOTS);
	memset(rig.sink.arena.base, 0x5a, rig.sink.arena.bytes);
	for (unsigned i = 0; i < SLOTS; i++) {
		CHECK_EQ(rig_queue(&rig, (uint8_t)i), 1);
		bytes[i] = i * 1000 + 1;
		rig.queued[i]->length = bytes[i];
	}
	CHECK_EQ(rig_leave(&rig), 0);
	for (unsigned i = 0; i < SLOTS; i++) {
		struct block *b = NULL;
		unsigned mark;

		CHECK_EQ(rig_land(&rig, &b), 0);
		mark = b->payload[0];
		CHECK(mark < SLOTS);
		CHECK_EQ(b->payload[bytes[mark] - 1], mark);
		CHECK_EQ(b->payload[bytes[mark]], 0x5a);
	}
	rig_close(&rig);
}

static void a_damaged_block_is_fetched_once_more(void)
{
	struct block *b = NULL, *again = NULL;
	struct said said;
	struct rig rig;

	open_both(&rig, &said, 1, SLOTS);
	for (unsigned round = 0; round < 2 * SLOTS; round++) {
		CHECK_EQ(rig_send(&rig, (uint8_t)round), 1);
		CHECK_EQ(rig_land(&rig, &b), 0);
		memset(b->payload, 0xee, 100);
		pool_move(b, BLOCK_DRAINING);
		CHECK(rig.to->ops->again(rig.to, b));
		CHECK_EQ(rig_land(&rig, &again), 0);
		CHECK(again == b);
		CHECK(rig_holds(b, (uint8_t)round));
		/* twice is enough */
		pool_move(b, BLOCK_DRAINING);
		CHECK(!rig.to->ops->again(rig.to, b));
		CHECK_EQ(rig_drain(&rig, b), 0);
		for (int i = 0; i < RIG_MS && pool_free_count(rig.source.pool) < SLOTS; i++) {
			CHECK_EQ(rig_poll_source(&rig), 0);
			usleep(50);
		}
	}
	settle_both(&rig);
	rig_close(&rig);
}

/* On iWARP what is posted behind a READ waits for it: so slots that are free at the same time cost
 * one WRITE, not one each. */
static void slots_are_given_back_together(void)
{
	struct block *landed[SLOTS];
	struct said said;
	struct rig rig;

	open_both(&rig, &said, 1, SLOTS);
	for (unsigned round = 1; round <= 10; round++) {
		for (unsigned i = 0; i < SLOTS; i++)
			CHECK_EQ(rig_send(&rig, (uint8_t)i), 1);
		for (unsigned i = 0; i < SLOTS; i++)
			CHECK_EQ(rig_land(&rig, &landed[i]), 0);
		for (unsigned i = 0; i < SLOTS; i++) {
			pool_move(landed[i], BLOCK_DRAINING);
			pool_give(rig.sink.pool, landed[i]);
		}
		CHECK_EQ(engine_sink_flush(rig.to), 0);
		CHECK_EQ(counts_of(&rig.sink, 1).writes, round);
		for (int i = 0; i < RIG_MS && pool_free_count(rig.source.pool) < SLOTS; i++) {
			CHECK_EQ(rig_poll_source(&rig), 0);
			usleep(50);
		}
		CHECK_EQ(pool_free_count(rig.source.pool), SLOTS);
	}
	settle_both(&rig);
	rig_close(&rig);
}

static void no_slot_out_no_reads(void)
{
	struct block *landed[2], *none[1];
	struct said said;
	uint64_t reads;
	struct rig rig;

	open_both(&rig, &said, 1, 2);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(rig_send(&rig, (uint8_t)i), 1);
		CHECK_EQ(rig_land(&rig, &landed[i]), 0);
	}
	/* with all blocks in the sink's hands nothing can come */
	CHECK_EQ(rig.to->ops->poll(rig.to, none, 1), 0);
	reads = counts_of(&rig.sink, 1).reads;
	usleep(20000);
	CHECK_EQ(rig.to->ops->poll(rig.to, none, 1), 0);
	CHECK_EQ(engine_sleep_ns(&rig.to->common), -1);
	CHECK_EQ(counts_of(&rig.sink, 1).reads, reads);
	rig_close(&rig);
}

static void it_reads_less_and_less_often_in_vain(void)
{
	struct said said;
	uint64_t until;
	struct rig rig;

	open_both(&rig, &said, 1, SLOTS);
	until = clock_now_ns() + 200 * NS_PER_MS;
	while (clock_now_ns() < until) {
		struct block *none[1];

		CHECK_EQ(rig.to->ops->poll(rig.to, none, 1), 0);
		CHECK(engine_sleep_ns(&rig.to->common) <= 5000000);
		usleep(20);
	}
	printf("# %" PRIu64 " READs in 200 ms\n", counts_of(&rig.sink, 1).reads);
	CHECK(counts_of(&rig.sink, 1).reads >= 2 && counts_of(&rig.sink, 1).reads <= 100);
	rig_close(&rig);
}

/* Where the fabric sees WRITEs arrive it wakes the source; elsewhere that looks by itself, as long
 * as there is something to come back. */
static void a_source_is_woken_or_looks(void)
{
	for (int watch = 0; watch < 2; watch++) {
		struct loop_faults faults = {.seed = harness_seed(), .no_watch = !watch};
		struct block *b = NULL;
		struct said said;
		struct rig rig;

		open_memory_on(&rig, &faults, 1, 2, 2);
		open_source(&rig, &said);
		open_sink(&rig);
		CHECK_EQ(tell(&rig, &said.expose), 1);
		CHECK_EQ(engine_sleep_ns(&rig.from->common), -1);
		CHECK_EQ(rig_send(&rig, 1), 1);
		CHECK_EQ(rig_land(&rig, &b), 0);
		usleep(2000);
		CHECK_EQ(rig_poll_source(&rig), 0);
		if (watch) {
			struct fabric_cq *cq = link_rail(rig.source.link, 0)->cq;
			struct pollfd fd = {fabric_cq_fd(cq), POLLIN, 0};

			CHECK(engine_sleep_ns(&rig.from->common) > 5000000);
			CHECK_EQ(fabric_cq_arm(cq), 0);
			CHECK_EQ(poll(&fd, 1, 0), 0);
			CHECK_EQ(rig_drain(&rig, b), 0);
			CHECK_EQ(poll(&fd, 1, RIG_MS), 1);
		} else {
			CHECK(engine_sleep_ns(&rig.from->common) >= 0 &&
				engine_sleep_ns(&rig.from->common) <= 5000000);
		}
		rig_close(&rig);
	}
}

/* What the source says in the end. */
static int source_says(struct rig *rig)
{
	struct block *done[SLOTS];
	int n = 0;

	for (int i = 0; i < RIG_MS * 20 && !n; i++) {
		n = rig->from->ops->poll(rig->from, done, SLOTS);
		if (!n)
			usleep(50);
		/* nothing is posted that could fail: a channel that broke shows by its event */
		link_check_events(rig->source.link);
	}
	return n;
}

/* A request ended so, or could not be posted. */
static bool is_broken(int r)
{
	return r == -ECONNRESET || r == -ENOTCONN;
}

static void who_goes_away_is_noticed(void)
{
	struct said said;
	struct rig rig;

	open_both(&rig, &said, 2, 4);
	link_close_channels(rig.source.link, 0);
	CHECK(is_broken(rig_poll_sink_until(&rig)));
	rig_close(&rig);

	open_both(&rig, &said, 2, 4);
	CHECK_EQ(rig_send(&rig, 1), 1);
	link_close_channels(rig.sink.link, 0);
	CHECK_EQ(source_says(&rig), -ECONNRESET);
	rig_close(&rig);
}

static void which_half_is_whose(void)
{
	struct fabric_caps caps = {.write_ordered = true, .has_read = true};

	CHECK(engine_source_half(&engine_pull, true) == &pull_source_ops);
	CHECK(engine_sink_half(&engine_pull, false) == &pull_sink_ops);
	CHECK(engine_source_half(&engine_pull, false) == engine_status.source);
	CHECK(engine_sink_half(&engine_pull, true) == engine_status.sink);
	CHECK(engine_source_half(&engine_credit, true) == engine_credit.source);
	CHECK(engine_by_id(MESSAGE_ENGINE_PULL) == &engine_pull);
	/* who may be read writes to nobody, and who reads can be reached by nobody */
	CHECK_EQ(pull_source_ops.access, FABRIC_REMOTE_READ);
	CHECK_EQ(pull_sink_ops.access, FABRIC_READ_INTO);
	CHECK(!engine_lacks(&engine_pull, &caps));
	caps.has_read = false;
	CHECK(strstr(engine_lacks(&engine_pull, &caps), "READ"));
}

/* ---- the source against a sink that the test plays ---- */

/* A request of the test's own on the sink's first channel.  0 or -errno. */
static int post(
	struct rig *rig, struct fabric_wr *wr, void *data, uint32_t bytes, struct fabric_mr *mr)
{
	struct fabric_sge sge = {data, bytes, mr};

	wr->id = CHANNEL_ID(CHANNEL_ACK, 0);
	wr->flags = FABRIC_SIGNALED | (mr ? 0 : FABRIC_INLINE);
	wr->sge = &sge;
	wr->sge_count = 1;
	return channel_post(link_rail(rig->sink.link, 0)->channels[0], wr, 0);
}

static int write_given(struct rig *rig, const struct said *said, uint32_t index, uint8_t byte)
{
	struct fabric_wr wr = {
		.opcode = FABRIC_WRITE,
		.remote_addr = said->expose.given_base + index,
		.remote_key = said->expose.given_key,
	};

	return post(rig, &wr, &byte, 1, NULL);
}

static void bytes_that_no_sink_may_write(void)
{
	static const struct {
		uint32_t slot;
		uint8_t byte;
		bool sent;
		int says;
	} wrongs[] = {
		{0, 1, true, 1}, /* as it should be */
		{0, 2, true, -EBADMSG},
		{0, 255, true, -EBADMSG},
		{0, 1, false, -EBADMSG}, /* before it was given */
		{3, 1, true, -EBADMSG},
		{5, 1, true,
			-ECONNRESET}, /* of a slot that there is not: it is no memory of ours */
		{8, 1, true, -ECONNRESET},
		{1u << 20, 1, true, -ECONNRESET},
	};

	for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct said said;
		struct rig rig;

		open_memory(&rig, 1, 5, 5);
		open_source(&rig, &said);
		if (wrongs[i].sent)
			CHECK_EQ(rig_send(&rig, 1), 1); /* in slot 0 */
		CHECK_EQ(write_given(&rig, &said, wrongs[i].slot, wrongs[i].byte), 0);
		CHECK_EQ(source_says(&rig), wrongs[i].says);
		rig_close(&rig);
	}
}

/* A slot that was given back is given back once. */
static void given_back_twice(void)
{
	struct said said;
	struct rig rig;

	open_memory(&rig, 1, 5, 5);
	open_source(&rig, &said);
	CHECK_EQ(rig_send(&rig, 1), 1);
	CHECK_EQ(write_given(&rig, &said, 0, 1), 0);
	CHECK_EQ(source_says(&rig), 1);
	pool_give(rig.source.pool, pool_at(rig.source.pool, 0));
	CHECK_EQ(write_given(&rig, &said, 0, 2), 0);
	CHECK_EQ(source_says(&rig), -EBADMSG);
	rig_close(&rig);
}

/* What the sink may not do with the memory that it knows of: the channel breaks, and nothing has
 * changed or crossed. */
static void memory_is_for_what_it_is_for(void)
{
	enum { SLOT, RECORDS, GIVEN };
	static const struct {
		enum fabric_opcode opcode;
		int where;
	} wrongs[] = {{FABRIC_WRITE, SLOT}, {FABRIC_WRITE, RECORDS}, {FABRIC_READ, GIVEN}};

	for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct fabric_wr wr = {.opcode = wrongs[i].opcode};
		struct fabric_mr *mr = NULL;
		uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
		struct said said;
		struct rig rig;

		open_memory(&rig, 1, SLOTS, SLOTS);
		open_source(&rig, &said);
		CHECK_EQ(rig_send(&rig, 7), 1);
		wr.remote_addr = wrongs[i].where == SLOT      ? said.expose.base + BLOCK_ALIGN
				 : wrongs[i].where == RECORDS ? said.expose.records_base
							      : said.expose.given_base;
		wr.remote_key = wrongs[i].where == SLOT      ? said.expose.key
				: wrongs[i].where == RECORDS ? said.expose.records_key
							     : said.expose.given_key;
		if (wrongs[i].opcode == FABRIC_READ)
			CHECK_EQ(fabric_mr_new(control_pd(link_control(rig.sink.link)), bytes,
					 sizeof bytes, FABRIC_READ_INTO, &mr),
				0);
		CHECK_EQ(post(&rig, &wr, bytes, sizeof bytes, mr), 0);
		CHECK_EQ(source_says(&rig), -ECONNRESET);
		CHECK_EQ(bytes[0], 1);
		CHECK(rig_holds(pool_at(rig.source.pool, 0), 7));
		link_close_channels(rig.sink.link, 0);
		fabric_mr_free(mr);
		rig_close(&rig);
	}
}

/* A READ of a slot, or of records, that comes after the source has ended brings nothing. */
static void a_late_read_fails(void)
{
	for (int records = 0; records < 2; records++) {
		uint8_t bytes[TRANSFER_STATUS_BYTES_MIN] = {0};
		struct fabric_wr wr = {.opcode = FABRIC_READ};
		struct fabric_mr *mr;
		struct fabric_wc wc;
		struct said said;
		struct rig rig;
		int n = 0;

		open_memory(&rig, 1, SLOTS, SLOTS);
		open_source(&rig, &said);
		CHECK_EQ(rig_send(&rig, 7), 1);
		CHECK_EQ(fabric_mr_new(control_pd(link_control(rig.sink.link)), bytes, sizeof bytes,
				 FABRIC_READ_INTO, &mr),
			0);
		wr.remote_addr =
			records ? said.expose.records_base : said.expose.base + BLOCK_ALIGN;
		wr.remote_key = records ? said.expose.records_key : said.expose.key;
		for (int late = 0; late < 2; late++) {
			memset(bytes, 0, sizeof bytes);
			CHECK_EQ(post(&rig, &wr, bytes, sizeof bytes, mr), 0);
			for (int i = 0; i < RIG_MS * 20 && !n; i++) {
				n = fabric_cq_poll(link_rail(rig.sink.link, 0)->cq, &wc, 1);
				usleep(50);
			}
			CHECK_EQ(n, 1);
			CHECK_EQ(wc.status, late ? FABRIC_REMOTE_ACCESS : FABRIC_OK);
			CHECK_EQ(!bytes[0] && !bytes[3] && !bytes[7], late);
			if (!late) { /* as a transfer ends: slots have a new key, all else goes */
				CHECK_EQ(fabric_mr_rekey(rig.source.mr), 0);
				rig.from->ops->close(rig.from);
				rig.from = NULL;
			}
			n = 0;
		}
		link_close_channels(rig.sink.link, 0);
		fabric_mr_free(mr);
		rig_close(&rig);
	}
}

/* ---- the sink against a source that the test plays ---- */

struct fake {
	struct rig rig;
	uint64_t records[SLOTS];
	uint8_t given[SLOTS];
	struct fabric_mr *records_mr, *given_mr;
	struct transfer_expose expose;
};

static void fake_open(struct fake *f)
{
	struct fabric_pd *pd;

	open_memory(&f->rig, 1, SLOTS, SLOTS);
	pd = control_pd(link_control(f->rig.source.link));
	memset(f->records, 0, sizeof f->records);
	memset(f->given, 0, sizeof f->given);
	CHECK_EQ(fabric_mr_new(
			 pd, f->records, sizeof f->records, FABRIC_REMOTE_READ, &f->records_mr),
		0);
	CHECK_EQ(
		fabric_mr_new(pd, f->given, sizeof f->given, FABRIC_REMOTE_WRITE, &f->given_mr), 0);
	f->expose = (struct transfer_expose){
		.blocks = SLOTS,
		.stride = pool_stride(RIG_BLOCK),
		.base = fabric_mr_base(f->rig.source.mr),
		.key = fabric_mr_key(f->rig.source.mr),
		.records_base = fabric_mr_base(f->records_mr),
		.records_key = fabric_mr_key(f->records_mr),
		.given_base = fabric_mr_base(f->given_mr),
		.given_key = fabric_mr_key(f->given_mr),
	};
	open_sink(&f->rig);
}

static void fake_close(struct fake *f)
{
	link_close_channels(f->rig.sink.link, 0);
	link_close_channels(f->rig.source.link, 0);
	fabric_mr_free(f->records_mr);
	fabric_mr_free(f->given_mr);
	rig_close(&f->rig);
}

static void fake_word(struct fake *f, uint32_t slot, uint64_t word)
{
	__atomic_store_n(&f->records[slot], word, __ATOMIC_RELEASE);
}

static void fake_publish(struct fake *f, uint32_t slot, uint32_t sequence, uint32_t length)
{
	struct transfer_record record = {.sequence = sequence, .length = length};
	struct block *b = pool_at(f->rig.source.pool, slot);

	memset(b->payload - BLOCK_PREFIX_BYTES, (int)sequence, BLOCK_PREFIX_BYTES + RIG_BLOCK);
	fake_word(f, slot, transfer_put_record(&record));
}

static void records_that_no_source_may_show(void)
{
	static const struct {
		uint32_t slot, sequence, length; /* the first is 1 in slot 2, and lands */
		bool back;                       /* that was given back */
	} wrongs[] = {
		{3, 2, 0, false},
		{3, 2, RIG_BLOCK + 1, false},
		{3, 2, (1u << 25) - 1, false},
		{3, 0, 1, false},          /* was before */
		{3, 1, 1, false},          /* again */
		{3, UINT32_MAX, 1, false}, /* before the first */
		{3, 1000, 1, false},       /* more than can have been */
		{2, 2, 1, false},          /* a slot that was not given back */
		{2, 1, 2, false},          /* that changed */
		{2, 1, 2, true},
		{2, 1, RIG_BLOCK + 1, true},
	};

	for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct block *b = NULL;
		struct fake f;

		fake_open(&f);
		CHECK_EQ(tell(&f.rig, &f.expose), 1);
		fake_publish(&f, 2, 1, RIG_BLOCK);
		CHECK_EQ(rig_land(&f.rig, &b), 0);
		CHECK_EQ(b->index, 2);
		CHECK(rig_holds(b, 1));
		if (wrongs[i].back) {
			CHECK_EQ(rig_drain(&f.rig, b), 0);
			while (!__atomic_load_n(&f.given[2], __ATOMIC_ACQUIRE))
				usleep(50);
			CHECK_EQ(f.given[2], 1);
		}
		fake_publish(&f, wrongs[i].slot, wrongs[i].sequence, wrongs[i].length);
		CHECK_EQ(rig_poll_sink_until(&f.rig), -EBADMSG);
		CHECK(strstr(f.rig.why_to.text, "record"));
		CHECK_EQ(f.rig.why_to.scope, VERDICT_SESSION);
		fake_close(&f);
	}
}

/* One that shows before those that came first waits for them. */
static void a_number_that_is_missing_is_waited_for(void)
{
	struct block *b = NULL, *none[1];
	struct fake f;

	fake_open(&f);
	CHECK_EQ(tell(&f.rig, &f.expose), 1);
	fake_publish(&f, 0, 2, RIG_BLOCK);
	fake_publish(&f, 1, 3, RIG_BLOCK);
	for (int i = 0; i < 200; i++) {
		CHECK_EQ(f.rig.to->ops->poll(f.rig.to, none, 1), 0);
		usleep(50);
	}
	fake_publish(&f, 7, 1, RIG_BLOCK);
	for (unsigned i = 1; i <= 3; i++) {
		CHECK_EQ(rig_land(&f.rig, &b), 0);
		CHECK(rig_holds(b, (uint8_t)i));
	}
	fake_close(&f);
}

/* Read while it changes: the next time it is whole, or the source makes fun of us. */
static void a_torn_record(void)
{
	const struct transfer_record torn = {.sequence = 1, .length = RIG_BLOCK};
	const struct transfer_record mixed = {.sequence = 1, .length = 1156};
	const uint64_t wrong = transfer_put_record(&torn) ^ 1; /* of the sequence, in memory */
	struct block *b = NULL, *none[1];
	struct transfer_record got;
	uint64_t reads;
	struct fake f;

	CHECK_EQ(transfer_get_record(&got, transfer_put_record(&torn)), 0);
	CHECK_EQ(got.sequence, 1);
	CHECK_EQ(got.length, RIG_BLOCK);
	CHECK_EQ(transfer_get_record(&got, wrong), -EBADMSG);
	fake_open(&f);
	fake_word(&f, 4, wrong);
	CHECK_EQ(tell(&f.rig, &f.expose), 1);
	reads = counts_of(&f.rig.sink, 1).reads;
	while (counts_of(&f.rig.sink, 1).reads < reads + 2) /* one answer has come */
		CHECK_EQ(f.rig.to->ops->poll(f.rig.to, none, 1), 0);
	fake_publish(&f, 4, 1, RIG_BLOCK);
	CHECK_EQ(rig_land(&f.rig, &b), 0);
	CHECK(rig_holds(b, 1));

	/* the number is still the old one, and the length not */
	CHECK_EQ(rig_drain(&f.rig, b), 0);
	while (!__atomic_load_n(&f.given[4], __ATOMIC_ACQUIRE))
		usleep(50);
	fake_word(&f, 4, transfer_put_record(&mixed));
	reads = counts_of(&f.rig.sink, 1).reads;
	while (counts_of(&f.rig.sink, 1).reads < reads + 2)
		CHECK_EQ(f.rig.to->ops->poll(f.rig.to, none, 1), 0);
	fake_publish(&f, 4, 2, RIG_BLOCK);
	CHECK_EQ(rig_land(&f.rig, &b), 0);
	CHECK(rig_holds(b, 2));
	fake_close(&f);

	fake_open(&f);
	fake_word(&f, 4, wrong);
	CHECK_EQ(tell(&f.rig, &f.expose), 1);
	CHECK_EQ(rig_poll_sink_until(&f.rig), -EBADMSG);
	fake_close(&f);
}

static void exposes_that_are_wrong(void)
{
	for (unsigned i = 0; i < 6; i++) {
		struct transfer_expose wrong;
		struct fake f;

		fake_open(&f);
		wrong = f.expose;
		wrong.blocks += i == 0;
		wrong.stride += i == 1 ? BLOCK_ALIGN : 0;
		wrong.key += i == 2 ? 77 : 0;
		wrong.records_key += i == 3 ? 77 : 0;
		wrong.records_base += i == 4 ? 8 : 0;
		wrong.given_key += i == 5 ? 77 : 0;
		if (i < 2) {
			CHECK_EQ(tell(&f.rig, &wrong), -EBADMSG);
		} else {
			struct block *b = NULL;
			int r = 0;

			CHECK_EQ(tell(&f.rig, &wrong), 1);
			CHECK_EQ(tell(&f.rig, &wrong), -EBADMSG); /* once only */
			fake_publish(&f, 0, 1, RIG_BLOCK);
			r = rig_land(&f.rig, &b);
			CHECK(i == 5 ? !r : is_broken(r));
			if (i == 5) {
				CHECK_EQ(rig_drain(&f.rig, b), 0);
				CHECK(is_broken(rig_poll_sink_until(&f.rig)));
			}
		}
		fake_close(&f);
	}
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"blocks cross; the source posts nothing",
			blocks_cross_and_the_source_posts_nothing},
		{"in order, and as long as they are", in_order_and_as_long_as_they_are},
		{"a damaged block is fetched once more", a_damaged_block_is_fetched_once_more},
		{"slots are given back together", slots_are_given_back_together},
		{"no slot out, no READs", no_slot_out_no_reads},
		{"it reads less and less often in vain", it_reads_less_and_less_often_in_vain},
		{"a source is woken, or looks", a_source_is_woken_or_looks},
		{"who goes away is noticed", who_goes_away_is_noticed},
		{"which half is whose", which_half_is_whose},
		{"bytes that no sink may write", bytes_that_no_sink_may_write},
		{"given back twice", given_back_twice},
		{"memory is for what it is for", memory_is_for_what_it_is_for},
		{"a late READ fails", a_late_read_fails},
		{"records that no source may show", records_that_no_source_may_show},
		{"a number that is missing is waited for", a_number_that_is_missing_is_waited_for},
		{"a torn record", a_torn_record},
		{"EXPOSEs that are wrong", exposes_that_are_wrong},
		{NULL, NULL},
	};

	/* provoked errors are no news */
	if (!getenv("RFTP_LOG") && !freopen("/dev/null", "w", stderr))
		return 2;
	log_setup("engine_pull", getenv("RFTP_LOG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	return harness_run(cases, argc, argv);
}
