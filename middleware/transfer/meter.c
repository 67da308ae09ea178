/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/meter: see meter.h.
 */
#include "transfer/meter.h"

#include "base/clock.h"

/* What was not used for longer than this is not saved up; so long may a thread oversleep without
 * a loss of rate. */
#define BEHIND_NS (10 * NS_PER_MS)

void meter_init(struct meter *m, uint64_t rate)
{
	atomic_init(&m->rate, rate);
	atomic_init(&m->next_ns, 0);
}

void meter_set_rate(struct meter *m, uint64_t rate, uint64_t now_ns)
{
	uint64_t before = atomic_exchange_explicit(&m->rate, rate, memory_order_relaxed);
	uint64_t next = atomic_load_explicit(&m->next_ns, memory_order_relaxed);
	double part = before && before != METER_ENDLESS && rate != METER_ENDLESS
			      ? (double)before / (double)rate
			      : 0;

	while (next > now_ns && !atomic_compare_exchange_weak_explicit(&m->next_ns, &next,
					now_ns + (uint64_t)((double)(next - now_ns) * part),
					memory_order_relaxed, memory_order_relaxed))
		;
}

static uint64_t time_of(const struct meter *m, uint64_t bytes)
{
	uint64_t rate = atomic_load_explicit(&m->rate, memory_order_relaxed);

	if (rate == METER_ENDLESS || !rate)
		return 0;
	return (uint64_t)((double)bytes / (double)rate * (double)NS_PER_S);
}

uint64_t meter_next_ns(struct meter *m, uint64_t now_ns)
{
	uint64_t next = atomic_load_explicit(&m->next_ns, memory_order_relaxed);

	if (atomic_load_explicit(&m->rate, memory_order_relaxed) == METER_ENDLESS)
		return 0;
	while (next + BEHIND_NS < now_ns)
		if (atomic_compare_exchange_weak_explicit(&m->next_ns, &next, now_ns - BEHIND_NS,
			    memory_order_relaxed, memory_order_relaxed))
			return now_ns - BEHIND_NS;
	return next;
}

uint64_t meter_spend(struct meter *m, uint64_t bytes, uint64_t now_ns)
{
	uint64_t ns = time_of(m, bytes);

	(void)meter_next_ns(m, now_ns); /* an idle time is over */
	return atomic_fetch_add_explicit(&m->next_ns, ns, memory_order_relaxed) + ns;
}

uint64_t meter_refund(struct meter *m, uint64_t bytes)
{
	uint64_t next = atomic_load_explicit(&m->next_ns, memory_order_relaxed);
	uint64_t ns = time_of(m, bytes);

	while (!atomic_compare_exchange_weak_explicit(&m->next_ns, &next, next > ns ? next - ns : 0,
		memory_order_relaxed, memory_order_relaxed))
		;
	return ns;
}
