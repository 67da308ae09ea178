/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/bucket: see bucket.h.
 *
 * Owns the time until which what has moved is paid for: it runs ahead of the clock by the bytes
 * that moved, and falls behind it by `burst_bytes` at most.
 */
#include "transfer/bucket.h"

#include "base/clock.h"
#include "block/block.h"

#include <stddef.h>

#define UNDER_WAY_NS (5 * NS_PER_MS / 2)
#define LATE_NS (100 * NS_PER_MS) /* a thread that wakes so late has lost the time */
#define LOOK_NS NS_PER_S          /* a shared rate may be another one by then */

int bucket_init(struct bucket *b, uint64_t rate, uint64_t burst_bytes)
{
	*b = (struct bucket){
		.rate = rate,
		.left = BUCKET_ENDLESS,
		.wait_ns = BUCKET_NEVER,
		.burst_bytes = burst_bytes,
	};
	return wakeup_init(&b->wakeup);
}

void bucket_fini(struct bucket *b)
{
	bucket_refund(b, b->unmoved);
	wakeup_fini(&b->wakeup);
}

static uint64_t time_of(const struct bucket *b, uint64_t bytes)
{
	uint64_t rate = atomic_load_explicit(&b->rate, memory_order_relaxed);

	if (rate == METER_ENDLESS)
		return 0;
	return rate ? (uint64_t)((double)bytes / (double)rate * (double)NS_PER_S) : NS_PER_S;
}

/* ---- the decider ---- */

void bucket_grant(struct bucket *b, uint64_t rate, int64_t bytes)
{
	int64_t left = atomic_load(&b->left);

	atomic_store(&b->rate, rate);
	atomic_store(&b->position, 0);
	if (bytes == BUCKET_ENDLESS || left == BUCKET_ENDLESS)
		atomic_store(&b->left, bytes);
	else
		atomic_fetch_add(&b->left, bytes);
	wakeup_signal(&b->wakeup);
}

void bucket_set_rate(struct bucket *b, uint64_t rate)
{
	atomic_store(&b->rate, rate);
}

void bucket_stop(struct bucket *b)
{
	atomic_store(&b->left, 0);
}

void bucket_tell(struct bucket *b, uint32_t position, uint64_t wait_ns)
{
	atomic_store(&b->wait_ns, wait_ns);
	atomic_store(&b->position, position);
}

/* ---- the transfer's thread ---- */

/* What was not used for long is not saved up. */
static void catch_up(struct bucket *b, uint64_t now_ns)
{
	uint64_t behind_ns = time_of(b, b->burst_bytes);

	if (behind_ns > LATE_NS)
		behind_ns = LATE_NS;
	if (!b->next_ns)
		b->next_ns = now_ns;
	if (b->next_ns + behind_ns < now_ns)
		b->next_ns = now_ns - behind_ns;
}

uint64_t bucket_next_ns(struct bucket *b, uint64_t now_ns)
{
	uint64_t next_ns;

	if (atomic_load(&b->left) <= 0)
		return BUCKET_NEVER;
	catch_up(b, now_ns);
	if (b->asked) { /* it was over: what nobody could use meanwhile is not saved up at all */
		b->asked = false;
		if (b->next_ns < now_ns)
			b->next_ns = now_ns;
	}
	next_ns = b->next_ns;
	for (unsigned i = 0; i < b->meter_count; i++) {
		uint64_t shared_ns = meter_next_ns(b->meters[i], now_ns);

		/* whoever changes its rate wakes nobody */
		if (shared_ns > now_ns + LOOK_NS)
			shared_ns = now_ns + LOOK_NS;
		next_ns = shared_ns > next_ns ? shared_ns : next_ns;
	}
	return next_ns;
}

void bucket_spend(struct bucket *b, uint64_t bytes, uint64_t now_ns)
{
	catch_up(b, now_ns);
	b->next_ns += time_of(b, bytes);
	b->unmoved += bytes;
	for (unsigned i = 0; i < b->meter_count; i++)
		b->owed_ns[i] = meter_spend(b->meters[i], bytes, now_ns);
}

void bucket_refund(struct bucket *b, uint64_t bytes)
{
	uint64_t ns;

	if (bytes > b->unmoved)
		bytes = b->unmoved;
	ns = time_of(b, bytes);
	b->next_ns -= ns < b->next_ns ? ns : b->next_ns;
	b->unmoved -= bytes;
	for (unsigned i = 0; i < b->meter_count; i++) {
		ns = meter_refund(b->meters[i], bytes);
		b->owed_ns[i] -= ns < b->owed_ns[i] ? ns : b->owed_ns[i];
	}
}

uint64_t bucket_paid_ns(struct bucket *b, uint64_t now_ns)
{
	uint64_t paid_ns = now_ns;

	bucket_refund(b, b->unmoved);
	for (unsigned i = 0; i < b->meter_count; i++) {
		/* sooner than it was at first, if others get back what they have not used, or the
		 * rate is a higher one */
		uint64_t ns = meter_next_ns(b->meters[i], now_ns);

		if (ns > b->owed_ns[i])
			ns = b->owed_ns[i];
		if (ns > now_ns + LOOK_NS)
			ns = now_ns + LOOK_NS;
		paid_ns = ns > paid_ns ? ns : paid_ns;
	}
	return paid_ns;
}

void bucket_count(struct bucket *b, uint64_t bytes, uint64_t now_ns)
{
	if (bytes > b->unmoved)
		bucket_spend(b, bytes - b->unmoved, now_ns);
	b->unmoved -= bytes;
	atomic_fetch_add_explicit(&b->moved, bytes, memory_order_relaxed);
	if (atomic_load_explicit(&b->left, memory_order_relaxed) != BUCKET_ENDLESS)
		atomic_fetch_sub(&b->left, (int64_t)bytes);
}

void bucket_ask(struct bucket *b)
{
	if (b->asked || !b->wants || atomic_load(&b->left) > 0)
		return;
	b->asked = true;
	b->wants(b->ctx);
}

/* ---- sizes ---- */

uint64_t bucket_turn(uint64_t rate, uint64_t rtt_ns)
{
	double ns = (double)(BUCKET_PART * (UNDER_WAY_NS + 2 * rtt_ns));

	return (uint64_t)((double)rate * ns / (double)NS_PER_S);
}

/* Two of them are the least that a window has. */
uint32_t bucket_max_block(uint64_t bytes)
{
	uint64_t block = bytes / BUCKET_PART / 2 / BLOCK_ALIGN * BLOCK_ALIGN;

	if (block < BLOCK_BYTES_MIN)
		return BLOCK_BYTES_MIN;
	return block < BLOCK_BYTES_MAX ? (uint32_t)block : BLOCK_BYTES_MAX;
}

uint64_t bucket_max_window(uint64_t bytes)
{
	uint64_t least = 2 * (uint64_t)BLOCK_BYTES_MIN, window = bytes / BUCKET_PART;

	return window < least ? least : window;
}
