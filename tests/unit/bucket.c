/* SPDX-License-Identifier: Apache-2.0 */
/* transfer/bucket: rates, bursts, turns. */
#include "transfer/bucket.h"

#include "block/block.h"
#include "tests/harness.h"

#define S UINT64_C(1000000000)
#define MS UINT64_C(1000000)

static unsigned wanted;

static void wants(void *ctx)
{
	(void)ctx;
	wanted++;
}

static void the_rate_is_kept(void)
{
	struct bucket b;
	uint64_t now = 10 * S, bytes = 0;

	CHECK(!bucket_init(&b, 1000000, 1000));
	/* nothing is saved up at the start */
	CHECK_EQ(bucket_next_ns(&b, now), now);
	/* looked at every 100 us, in steps of 500 bytes */
	for (; now < 11 * S; now += MS / 10)
		for (; bucket_next_ns(&b, now) <= now; bytes += 500)
			bucket_spend(&b, 500, now);
	CHECK(bytes >= 999000 && bytes <= 1002000);
	/* what was not used for long is not saved up */
	now += 60 * S;
	for (bytes = 0; bucket_next_ns(&b, now) <= now; bytes += 500)
		bucket_spend(&b, 500, now);
	CHECK(bytes <= 2000);
	/* less came than was paid for */
	bucket_refund(&b, 1000);
	CHECK(bucket_next_ns(&b, now) <= now);
	/* faster, from now on */
	bucket_set_rate(&b, 1000000000);
	bucket_spend(&b, 500000, now);
	CHECK(bucket_next_ns(&b, now) < now + MS);
	bucket_fini(&b);
}

static void turns_are_asked_for_once(void)
{
	struct bucket b;

	wanted = 0;
	CHECK(!bucket_init(&b, 1000, 1000));
	bucket_ask(&b); /* it has no turns */
	b.left = 0;
	b.wants = wants;
	CHECK(bucket_next_ns(&b, S) == BUCKET_NEVER);
	bucket_ask(&b);
	bucket_ask(&b);
	CHECK_EQ(wanted, 1);
	bucket_tell(&b, 3, S);
	CHECK_EQ(b.position, 3);
	bucket_grant(&b, 5000, 100);
	CHECK_EQ(b.position, 0);
	CHECK_EQ(bucket_next_ns(&b, 2 * S), 2 * S); /* no burst after a pause */
	bucket_count(&b, 120, 2 * S);
	CHECK(bucket_next_ns(&b, 3 * S) == BUCKET_NEVER);
	bucket_ask(&b);
	CHECK_EQ(wanted, 2);
	bucket_grant(&b, 5000, 100); /* 20 of it are gone */
	bucket_count(&b, 79, 4 * S);
	CHECK(bucket_next_ns(&b, 4 * S) != BUCKET_NEVER);
	bucket_count(&b, 1, 4 * S);
	CHECK(bucket_next_ns(&b, 4 * S) == BUCKET_NEVER);
	bucket_grant(&b, 5000, BUCKET_ENDLESS);
	bucket_count(&b, UINT64_C(1) << 40, 4 * S);
	CHECK(bucket_next_ns(&b, 5 * S) != BUCKET_NEVER);
	bucket_stop(&b);
	CHECK(bucket_next_ns(&b, 5 * S) == BUCKET_NEVER);
	bucket_fini(&b);
}

static void sizes(void)
{
	CHECK_EQ(bucket_max_block(0), BLOCK_BYTES_MIN);
	CHECK_EQ(bucket_max_block(UINT64_MAX), BLOCK_BYTES_MAX);
	CHECK_EQ(bucket_max_block(25000000) % BLOCK_ALIGN, 0);
	CHECK_EQ(bucket_max_window(bucket_turn(1250000000, 0)), 3125000);
	CHECK_EQ(bucket_max_window(bucket_turn(1250000000, 50 * MS)), 128125000);
	for (uint64_t turn = 1 << 20; turn < UINT64_C(1) << 40; turn += turn / 3) {
		CHECK(bucket_max_window(turn) <= turn / 8);
		CHECK(2 * (uint64_t)bucket_max_block(turn) <= bucket_max_window(turn));
	}
}

/* Two transfers of one meter have its rate together; what one has paid for and not used is the
 * other's. */
static void a_meter_is_shared(void)
{
	struct bucket a, b;
	struct meter meter;
	uint64_t now = 10 * S, bytes[2] = {0};

	meter_init(&meter, 1000000);
	CHECK(!bucket_init(&a, METER_ENDLESS, 1000));
	CHECK(!bucket_init(&b, METER_ENDLESS, 1000));
	a.meters[a.meter_count++] = &meter;
	b.meters[b.meter_count++] = &meter;
	for (unsigned turn = 0; now < 11 * S; now += MS / 10, turn++) {
		struct bucket *each[] = {&a, &b};

		for (unsigned i = 0; i < 2; i++) /* whoever wakes first */
			if (bucket_next_ns(each[(turn + i) % 2], now) <= now) {
				bucket_spend(each[(turn + i) % 2], 500, now);
				bucket_count(each[(turn + i) % 2], 500, now);
				bytes[(turn + i) % 2] += 500;
			}
	}
	CHECK(bytes[0] + bytes[1] >= 990000 && bytes[0] + bytes[1] <= 1011000);
	CHECK(bytes[0] > 300000 && bytes[1] > 300000);
	/* it goes with ten seconds of it unused */
	bucket_spend(&a, 10000000, now);
	bucket_refund(&a, 1000);
	CHECK(bucket_next_ns(&b, now) == now + S); /* when it looks again */
	CHECK(meter_next_ns(&meter, now) > now + 9 * S);
	bucket_fini(&a);
	CHECK(bucket_next_ns(&b, now) < now + 10 * MS);
	/* another rate holds at once, and none */
	meter_set_rate(&meter, 2000, now);
	bucket_spend(&b, 2000, now);
	CHECK(bucket_next_ns(&b, now) >= now + S - 20 * MS);
	/* so it does for what was spent before */
	bucket_spend(&b, 2000, now);
	meter_set_rate(&meter, 20000, now);
	CHECK(bucket_next_ns(&b, now) <= now + S / 5 + 10 * MS);
	CHECK(bucket_next_ns(&b, now) >= now + S / 6);
	meter_set_rate(&meter, METER_ENDLESS, now);
	CHECK(bucket_next_ns(&b, now) <= now);
	bucket_fini(&b);
}

/* What others spend once all of a transfer has moved is theirs to wait for. */
static void the_end_waits_for_its_own(void)
{
	const uint64_t now = 10 * S;
	struct bucket a, b;
	struct meter meter;

	meter_init(&meter, 1000000);
	CHECK(!bucket_init(&a, METER_ENDLESS, 1000));
	CHECK(!bucket_init(&b, METER_ENDLESS, 1000));
	a.meters[a.meter_count++] = &meter;
	b.meters[b.meter_count++] = &meter;
	CHECK_EQ(bucket_paid_ns(&a, now), now); /* nothing moved */
	bucket_spend(&a, 300000, now);
	bucket_count(&a, 200000, now);
	bucket_spend(&b, 5000000, now);
	/* the last third did not move */
	CHECK(bucket_paid_ns(&a, now) > now + S / 6);
	CHECK(bucket_paid_ns(&a, now) <= now + S / 5);
	bucket_spend(&b, 5000000, now + S / 10);
	CHECK(bucket_paid_ns(&a, now + S / 10) <= now + S / 5);
	CHECK_EQ(bucket_paid_ns(&a, now + S / 5), now + S / 5);
	CHECK(meter_next_ns(&meter, now + S / 5) > now + 9 * S);
	/* whoever comes behind waits for those before it, and not longer than they take */
	bucket_spend(&a, 1000, now + S / 5);
	bucket_count(&a, 1000, now + S / 5);
	CHECK_EQ(bucket_paid_ns(&a, now + S / 5), now + S / 5 + S); /* when it looks again */
	bucket_fini(&b);                                            /* which has moved nothing */
	CHECK(bucket_paid_ns(&a, now + S / 5) <= now + S / 5 + MS);
	/* nor is an old rate waited for */
	bucket_spend(&a, 500000, now + S);
	bucket_count(&a, 500000, now + S);
	CHECK(bucket_paid_ns(&a, now + S) > now + S + S / 3);
	meter_set_rate(&meter, 10000000, now + S);
	CHECK(bucket_paid_ns(&a, now + S) <= now + S + S / 20);
	bucket_fini(&a);
}

/* Whatever was spent before, and whatever came: what moved is paid for once, and no more. */
static void what_moves_is_paid_for_once(void)
{
	const uint64_t now = 10 * S;
	uint64_t moved = 0;
	struct bucket b;
	struct meter meter;

	meter_init(&meter, 1000000);
	CHECK(!bucket_init(&b, 1000000, 0));
	b.meters[b.meter_count++] = &meter;
	(void)meter_next_ns(&meter, now);
	bucket_spend(&b, 1, now);
	bucket_count(&b, 1, now);
	bucket_refund(&b, 1000000); /* of nothing */
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t bytes = i * 7919 % 1000;

		if (i % 3)
			bucket_spend(&b, 1000, now);
		if (i % 5)
			bucket_refund(&b, 1000 - bytes);
		bucket_count(&b, bytes, now);
		moved += bytes;
	}
	bucket_refund(&b, b.unmoved);
	CHECK(b.next_ns >= now + moved * 1000 && b.next_ns <= now + moved * 1000 + MS);
	CHECK(meter.next_ns + 11 * MS >= now + moved * 1000);
	CHECK(meter.next_ns <= now + moved * 1000 + MS);
	/* what is spent after a long time is spent then */
	bucket_count(&b, 1000, now + 100 * S);
	CHECK(b.next_ns >= now + 100 * S + MS);
	bucket_fini(&b);
}

HARNESS_MAIN({"a_meter_is_shared", a_meter_is_shared}, {"the_rate_is_kept", the_rate_is_kept},
	{"turns_are_asked_for_once", turns_are_asked_for_once}, {"sizes", sizes},
	{"the_end_waits_for_its_own", the_end_waits_for_its_own},
	{"what_moves_is_paid_for_once", what_moves_is_paid_for_once})
